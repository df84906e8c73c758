// The numbers of the paper that ours are set beside (tables 4 to 7 of its appendix, of which the
// tables of its main part are extracts; figures 2b and 7 to 12).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operating_point.h"

namespace ample::experiments {

/// Mean (std) of the number of inducing points after the last batch, and the percentage.
struct PaperCell {
  double inducing;
  double deviation;
  double percent;
};

/// What the paper has for a data set under a criterion; none where its table has a dash.
[[nodiscard]] std::optional<PaperCell> paper_cell(const Criterion& criterion,
                                                  const std::string& data,
                                                  const std::string& method);

/// The paper's operating point; none where it found none.
[[nodiscard]] std::optional<double> paper_operating_point(const Criterion& criterion,
                                                          const std::string& method);

/// Figure 2b: seconds on an RTX 6000 for all of naval.
[[nodiscard]] std::optional<double> paper_naval_seconds(const std::string& method,
                                                        double parameter);

/// The stream of magnetic path 3: M after batches 1, 5, 10, 15 and 20, and the RMSE at the end.
struct PaperMagnetic {
  std::vector<int> inducing;
  double rmse;
};
[[nodiscard]] PaperMagnetic paper_magnetic(const std::string& method);

}  // namespace ample::experiments
