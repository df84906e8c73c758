// Where the story of the demo goes: a terminal gets symbols and colours, a pipe plain text, and
// with
// --json a reader gets one object a line.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "ample/batch_report.h"
#include "ample/types.h"
#include "demo_scores.h"
#include "scenarios.h"

namespace ample::cli {

class Narrator {
 public:
  explicit Narrator(bool json);

  void begin(double delta) const;
  void begin(const Scenario& scenario) const;
  void tell(const Scenario& scenario, const BatchReport& report) const;
  void wait_for_exact() const;
  void tell(const Scenario& scenario, const Vector& grid, const DemoScores& scores,
            const std::string& summary) const;
  void end(const std::vector<std::string>& summaries, const std::filesystem::path& folder) const;

 private:
  [[nodiscard]] std::string heading(std::string text) const;
  [[nodiscard]] std::string reason(const BatchReport& report) const;
  [[nodiscard]] std::string bar(Index M) const;

  bool json_;
  bool terminal_;
  const char* alpha_ = "alpha";
  const char* delta_ = "delta";
  const char* at_most_ = "<=";
};

}  // namespace ample::cli
