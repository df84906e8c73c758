// The three scenarios of figure 1 with 50,000 points in three dimensions, in 50 batches (appendix,
// "Model Size and Data Distribution with Larger Data"). The paper leaves the function open but for
// that few inducing points approximate it; here
//
//   f(x) = sin(x₁/2) + cos(x₂/2) + sin(x₃/2)
//
// for which a lengthscale of about 5 is found, observed with noise of standard deviation 0.2.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "generator.h"
#include "job.h"
#include "protocol.h"

namespace ample::experiments {
namespace {

constexpr Index kRows = 50'000;
constexpr Index kTestRows = 2'000;
constexpr Index kBatches = 50;
constexpr Index kCap = 5000;
constexpr double kNoiseDeviation = 0.2;

using Point = Eigen::Vector3d;

double function(const Point& x) {
  return std::sin(x[0] / 2.0) + std::cos(x[1] / 2.0) + std::sin(x[2] / 2.0);
}

Point uniform_point(double low, double high, cli::Generator& generator) {
  Point x;
  for (double& c : x) c = generator.uniform(low, high);
  return x;
}

/// Each coordinate Cauchy of scale 1 around 10, drawn again until it lies in [5, 15].
Point cauchy_point(cli::Generator& generator) {
  Point x;
  for (double& c : x) {
    do {
      c = generator.cauchy(10.0);
    } while (c < 5.0 || c > 15.0);
  }
  return x;
}

std::vector<Point> growing_domain(Index count, cli::Generator& generator) {
  std::vector<Point> points;
  for (Index i = 0; i < count; ++i) points.push_back(uniform_point(0.0, 20.0, generator));
  std::ranges::sort(points, {}, [](const Point& x) { return x[0]; });
  return points;
}

std::vector<Point> fixed_domain(Index count, cli::Generator& generator) {
  std::vector<Point> points;
  for (Index i = 0; i < count; ++i) points.push_back(uniform_point(0.0, 20.0, generator));
  return points;
}

/// Nine tenths in the middle; of the last three tenths of the stream every third is an outlier.
std::vector<Point> outliers(Index count, cli::Generator& generator) {
  std::vector<Point> points;
  for (Index i = 0; i < count; ++i) {
    const bool outlier = i >= count * 7 / 10 && i % 3 == 0;
    points.push_back(outlier ? uniform_point(0.0, 40.0, generator) : cauchy_point(generator));
  }
  return points;
}

Batch observe(const std::vector<Point>& points, cli::Generator& generator) {
  const auto rows = static_cast<Index>(points.size());
  Batch data{Matrix(rows, 3), Vector(rows)};
  for (Index i = 0; i < rows; ++i) {
    const Point& x = points[static_cast<std::size_t>(i)];
    data.X.row(i) = x.transpose();
    data.y[i] = function(x) + kNoiseDeviation * generator.normal();
  }
  return data;
}

}  // namespace

Job large_job(const Run& run) {
  auto* const draw_points = run.data == "growing-domain" ? growing_domain
                            : run.data == "fixed-domain" ? fixed_domain
                                                         : outliers;
  cli::Generator generator(static_cast<std::uint64_t>(run.fold));
  const Batch data = observe(draw_points(kRows, generator), generator);
  const Batch test = observe(draw_points(kTestRows, generator), generator);

  ContinualGPOptions options;
  options.start.kernel = SquaredExponential{};
  options.start.noise_variance.value = 0.2;
  options.selection = selection_of(run, run.method == "cv" ? kCap : kNoCap);
  // The test set is a small stream of the same kind: after half of the batches, half of it counts.
  return job_of(
      cut(data, kBatches),
      [test](Index seen) {
        const Index rows = test.X.rows() * seen / kBatches;
        return Batch{test.X.topRows(rows), test.y.head(rows)};
      },
      std::move(options));
}

}  // namespace ample::experiments
