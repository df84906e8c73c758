#include "report.h"

#include <cerrno>
#include <cmath>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "errors.h"
#include "json_text.h"
#include "output.h"

namespace ample::cli {
namespace {

using Json = nlohmann::ordered_json;

template <class Value>
Json to_json(const Value& value) {
  return value;
}
Json to_json(const std::optional<double>& value) { return value ? Json(*value) : Json(); }
/// Four digits say all that a residual tells; a line has many.
Json to_json(const Vector& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(std::round(1e4 * value) / 1e4);
  return list;
}
Json to_json(SelectionStop stop) { return to_string(stop); }

}  // namespace

std::string to_json_line(const BatchReport& batch, const std::optional<Score>& score) {
  Json line;
  for_each_report_field(
      [&](const char* name, auto member) { line[name] = to_json(batch.*member); });
  line["evaluations"] = batch.fit.evaluations;
  if (score) {
    line["rmse"] = score->rmse;
    line["nlpd"] = score->nlpd;
  }
  return to_text(line);
}

Report::Report(const std::string& path)
    : path_(path), file_(is_standard_output(path) ? stdout : std::fopen(path.c_str(), "we")) {
  if (file_ == nullptr) {
    throw DataError(fmt::format("{}: cannot write: {}", path, std::strerror(errno)));
  }
}

Report::~Report() {
  if (file_ != stdout) std::fclose(file_);
}

void Report::add(const BatchReport& batch, const std::optional<Score>& score) {
  const std::string line = to_json_line(batch, score) + '\n';
  if (std::fputs(line.c_str(), file_) < 0 || std::fflush(file_) != 0) {
    throw DataError(fmt::format("{}: cannot write: {}", path_, std::strerror(errno)));
  }
}

}  // namespace ample::cli
