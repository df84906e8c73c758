// What merging costs: a field in three dimensions learnt in one stream, and in shards apart that
// are then merged. θ comes from a pilot and is held. The shards are drawn at random, or cut from
// rows sorted by the first input, so that each has a region of its own.
//
//   merging [--rows 16000] [--shards 8] [--pilot 500] [--delta 0.002] [--json FILE]
#include <algorithm>
#include <cmath>
#include <fstream>
#include <numbers>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ample/merge.h"
#include "ample/metrics.h"
#include "measure.h"

namespace ample::bench {
namespace {

constexpr Index kBatch = 500;
constexpr Index kTest = 4000;
constexpr double kNoise = 0.2;

/// A function drawn from a squared exponential of lengthscale one (random Fourier features), seen
/// with noise on a cube of side four.
class Field {
 public:
  Field() : frequency_(random_matrix(3, kFeatures, 11)), weight_(random_matrix(kFeatures, 1, 12)) {
    std::mt19937_64 generator(13);
    std::uniform_real_distribution<double> angle(0.0, 2.0 * std::numbers::pi);
    phase_ = Vector::NullaryExpr(kFeatures, [&] { return angle(generator); });
  }

  [[nodiscard]] Batch rows(Index count, unsigned seed) const {
    std::mt19937_64 generator(seed);
    std::uniform_real_distribution<double> place(-2.0, 2.0);
    Batch batch{Matrix::NullaryExpr(count, 3, [&] { return place(generator); }), Vector()};
    const Matrix waves =
        ((batch.X * frequency_).rowwise() + phase_.transpose()).array().cos().matrix();
    batch.y = waves * weight_ * std::sqrt(2.0 / kFeatures) +
              kNoise * random_matrix(count, 1, seed + 1000003U);
    return batch;
  }

 private:
  static constexpr Index kFeatures = 300;
  Matrix frequency_;  // [3,features]
  Vector weight_;
  Vector phase_;
};

ContinualGP pilot_of(const Batch& rows, double delta) {
  ContinualGPOptions options;
  options.start.kernel = SquaredExponential{.lengthscale = std::sqrt(3.0)};
  options.selection = Vips{.delta = delta};
  ContinualGP pilot(options);
  pilot.observe(rows.X, rows.y);
  return pilot;
}

void learn(ContinualGP& model, const Batch& rows) {
  for (Index first = 0; first < rows.X.rows(); first += kBatch) {
    const Index count = std::min(kBatch, rows.X.rows() - first);
    model.observe(rows.X.middleRows(first, count), rows.y.segment(first, count));
  }
}

/// The rows of one shard of so many.
Batch shard_of(const Batch& all, const std::vector<Index>& order, Index shard, Index shards) {
  const auto rows = static_cast<Index>(order.size());
  const auto first = order.begin() + rows * shard / shards;
  const auto end = order.begin() + rows * (shard + 1) / shards;
  const std::vector<Index> mine(first, end);
  return {all.X(mine, Eigen::all), all.y(mine)};
}

class Table {
 public:
  explicit Table(Batch test) : test_(std::move(test)) {
    fmt::print("{:<42} {:>6} {:>8} {:>8} {:>9} {:>8}\n", "", "M", "RMSE", "NLPD", "nats",
               "seconds");
  }

  void add(const std::string& what, const ContinualGP& model, double nats, double time) {
    const Prediction p = model.predict(test_.X, Target::observation);
    const double error = rmse(test_.y, p.mean);
    const double density = nlpd(test_.y, p);
    fmt::print("{:<42} {:>6} {:>8.4f} {:>8.4f} {:>9.3g} {:>8.2f}\n", what, model.size(), error,
               density, nats, time);
    json_.push_back({{"what", what},
                     {"inducing", model.size()},
                     {"rmse", error},
                     {"nlpd", density},
                     {"nats", nats},
                     {"seconds", time}});
  }

  [[nodiscard]] const nlohmann::json& json() const { return json_; }

 private:
  Batch test_;
  nlohmann::json json_ = nlohmann::json::array();
};

int run(Index rows, Index shards, Index pilot_rows, double delta, const std::string& json_path) {
  const Field field;
  const ContinualGP like = empty_like(pilot_of(field.rows(pilot_rows, 1), delta), true);
  const Batch all = field.rows(rows, 2);
  fmt::print("{} rows, {} shards, pilot of {} rows, δ {}: {}, noise {:.3g}\n", rows, shards,
             pilot_rows, delta, like.kernel().to_string(), like.noise_variance());
  Table table(field.rows(kTest, 3));

  ContinualGP stream = like;
  const double stream_time = seconds([&] { learn(stream, all); });
  table.add("one stream", stream, 0.0, stream_time);

  std::vector<Index> order(static_cast<std::size_t>(rows));
  std::iota(order.begin(), order.end(), Index{0});
  for (const std::string how : {"random", "sorted"}) {
    if (how == "sorted") std::ranges::sort(order, {}, [&](Index row) { return all.X(row, 0); });
    std::vector<ContinualGP> models(static_cast<std::size_t>(shards), like);
    double longest = 0.0;
    for (Index s = 0; s < shards; ++s) {
      const Batch mine = shard_of(all, order, s, shards);
      ContinualGP& model = models[static_cast<std::size_t>(s)];
      longest = std::max(longest, seconds([&] { learn(model, mine); }));
    }
    const auto add = [&](const std::string& what, const MergeOptions& options) {
      const Merged merged = merge(models, options);
      table.add(fmt::format("{} shards, {}", how, what), merged.model, merged.report.pruned_nats,
                merged.report.seconds);
    };
    fmt::print("{} shards: the slowest took {:.2f} s\n", how, longest);
    add("merged", {.nats = 0.0});
    add("pruned as by default", {});
    add("pruned to the stream's size", {.max_inducing = stream.size()});
  }
  if (!json_path.empty()) std::ofstream(json_path) << table.json().dump(2) << '\n';
  return 0;
}

}  // namespace
}  // namespace ample::bench

int main(int argc, char** argv) {
  using ample::bench::option;
  return ample::bench::run(std::stol(option(argc, argv, "--rows", "16000")),
                           std::stol(option(argc, argv, "--shards", "8")),
                           std::stol(option(argc, argv, "--pilot", "500")),
                           std::stod(option(argc, argv, "--delta", "0.002")),
                           option(argc, argv, "--json", ""));
}
