#include "drawing.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

namespace ample::experiments {
namespace {

using Json = nlohmann::ordered_json;

// A figure shows no more digits than this, and the file stays small.
constexpr double kSteps = 1e4;

Json list(const Vector& v) {
  Json values = Json::array();
  for (const double value : v) values.push_back(std::round(value * kSteps) / kSteps);
  return values;
}

Json columns(const Matrix& m) {
  Json values = Json::array();
  for (Index c = 0; c < m.cols(); ++c) values.push_back(list(m.col(c)));
  return values;
}

// A path is drawn as a line; more points than this only make it heavy.
constexpr Index kPathPoints = 400;

}  // namespace

Batch grid_of(const std::function<double(double)>& f, double low, double high, Index count) {
  const Vector x = Vector::LinSpaced(count, low, high);
  return {Matrix(x), x.unaryExpr(f)};
}

std::string curve(const ContinualGP& model, const Batch& batch, const Matrix& grid) {
  const Prediction p = model.predict(grid);
  Vector z = model.inducing_inputs().col(0);
  std::ranges::sort(z);
  return Json{
      {"x", list(batch.X.col(0))}, {"y", list(batch.y)},   {"z", list(z)},
      {"grid", list(grid.col(0))}, {"mean", list(p.mean)}, {"std", list(p.variance.cwiseSqrt())}}
      .dump();
}

std::string map(const ContinualGP& model, const Matrix& path, const Vector& low, const Vector& high,
                Index n) {
  Matrix grid(n * n, 2);
  for (Index row = 0; row < n; ++row) {
    const Vector first = Vector::LinSpaced(n, low[0], high[0]);
    grid.col(0).segment(row * n, n) = first;
    grid.col(1)
        .segment(row * n, n)
        .setConstant(low[1] +
                     (high[1] - low[1]) * static_cast<double>(row) / static_cast<double>(n - 1));
  }
  const Prediction p = model.predict(grid);
  const Index stride = std::max<Index>(1, path.rows() / kPathPoints);
  const Matrix thinned = path(Eigen::seq(Index{0}, path.rows() - 1, stride), Eigen::all);
  return Json{{"low", list(low)},
              {"high", list(high)},
              {"n", n},
              {"mean", list(p.mean)},
              {"std", list(p.variance.cwiseSqrt())},
              {"z", columns(model.inducing_inputs())},
              {"path", columns(thinned)}}
      .dump();
}

}  // namespace ample::experiments
