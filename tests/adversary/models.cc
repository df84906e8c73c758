// Model files: bytes altered at random, and contents altered under a right checksum.
#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "adversary.h"
#include "ample/continual_gp.h"
#include "ample/snapshot.h"
#include "columns.h"
#include "safetensors.h"

namespace ample::adversary {
namespace {

double uniform(Dice& dice) { return static_cast<double>(dice.below(6000)) / 1000.0 - 3.0; }

/// Inputs from −3 to 3 and targets from −1 to 1, in the units of a scaling.
Batch some_batch(Dice& dice, Index rows, const Scaling& units = Scaling::identity(2)) {
  const Index D = units.input_mean.size();
  Batch batch{Matrix(rows, D), Vector(rows)};
  for (Index i = 0; i < rows; ++i) {
    for (Index d = 0; d < D; ++d) {
      constexpr double kMost = 1e300;
      const double x = units.input_mean[d] + units.input_scale[d] * uniform(dice);
      batch.X(i, d) = std::clamp(x, -kMost, kMost);
    }
    batch.y[i] = units.target_mean + units.target_scale * (std::sin(uniform(dice)));
  }
  return batch;
}

/// The bytes of a model that has seen batches of so many rows.
std::string model_of(const ContinualGPOptions& options, const std::vector<Index>& batches,
                     bool weighted = false) {
  Dice dice(1);
  ContinualGP gp(options);
  for (const Index rows : batches) {
    const Batch batch = some_batch(dice, rows);
    const Vector y = batch.X.col(0).array().sin() + 0.1 * batch.y.array();
    gp.observe(batch.X, y, {.weights = weighted ? Vector::Constant(rows, 2.0) : Vector()});
  }
  return to_bytes(gp, {{"columns", R"({"count":3,"inputs":[0,1],"names":[],"target":2})"},
                       {"batch_size", "50"}});
}

/// Files with every part that a model may have.
const std::vector<std::string>& sound_files() {
  static const std::vector<std::string> files = [] {
    ContinualGPOptions paper;
    ContinualGPOptions scaled;
    scaled.scaling = Standardize::first_batch;
    scaled.start.kernel = Kernel::parse("matern32 + linear(variance=0.1)");
    ContinualGPOptions given;
    given.scaling = Scaling{Vector{{0.1, 0.2}}, Vector{{1.1, 0.7}}, 0.3, 2.0};
    given.selection = Oips{.rho = 0.8, .max_inducing = 20};
    ContinualGPOptions moving;
    moving.selection = FixedGradient{.size = 5};
    ContinualGPOptions small =
        ContinualGPOptions::out_of_the_box();  // with fewer rows of each kind
    small.warm_up = 20;
    small.refit_rows = 50;
    small.reservoir = 30;
    return std::vector<std::string>{
        model_of(paper, {40, 40}),
        model_of(scaled, {40, 40}),
        model_of(given, {30, 10}),
        model_of(moving, {30, 30}),
        model_of(small, {60, 60}),       // a reservoir
        model_of(small, {60, 10, 10}),   // rows pending
        model_of(small, {7, 5}),         // warming up
        model_of(small, {60, 9}, true),  // with weights
        model_of(small, {}),             // nothing seen
        model_of(given, {}),
    };
  }();
  return files;
}

void alter(Matrix& values, Dice& dice) {
  if (values.size() == 0 || dice.one_in(8)) {
    values.conservativeResize(static_cast<Index>(dice.below(8)), static_cast<Index>(dice.below(8)));
    values.setZero();
    return;
  }
  for (std::size_t i = 0; i <= dice.below(3); ++i) {
    double& value =
        values.reshaped()[static_cast<Index>(dice.below(static_cast<std::size_t>(values.size())))];
    value = dice.one_in(2) ? value * (1.0 + 1e-3 * dice.number()) : dice.number();
  }
}

struct Forgery {
  std::string bytes;
  std::string changed;  // names of the parts
};

/// As one who can compute checksums would.
Forgery forged(const std::string& sound, Dice& dice) {
  TensorFile file = tensors_from_bytes(sound);
  std::string changed;
  for (std::size_t i = 0; i <= dice.below(2); ++i) {
    if (dice.one_in(2) && !file.tensors.empty()) {
      auto it = file.tensors.begin();
      std::advance(it, dice.below(file.tensors.size()));
      changed += " " + it->first;
      if (dice.one_in(10)) {
        file.tensors.erase(it);
      } else {
        alter(it->second.values, dice);
        if (it->second.values.cols() != 1) it->second.rank = 2;
      }
    } else {
      auto it = file.metadata.begin();
      std::advance(it, dice.below(file.metadata.size()));
      changed += " " + it->first;
      switch (dice.below(it->first.ends_with("kernel") ? 4 : 3)) {
        case 0:
          it->second = altered(it->second, dice);
          break;
        case 1:
          it->second = fmt::format("{}", dice.number());
          break;
        case 2:
          it->second = fmt::format("{}", dice.below(1000));
          break;
        default:
          it->second = some_kernel(dice);
      }
    }
  }
  return {tensors_to_bytes(file), changed};
}

void check_predictions(const ContinualGP& model, const Matrix& X, const char* when) {
  const Prediction p = model.predict(X, Target::observation);
  if (!p.mean.allFinite() || !p.variance.allFinite() || !(p.variance.array() >= 0.0).all()) {
    throw Broken{fmt::format("{} it predicts what is not finite", when)};
  }
}

void check_report(const BatchReport& report) {
  for (const auto& value : {report.optimum, report.lower_bound, report.noise_bound,
                            report.threshold, report.gap, std::optional(report.elbo)}) {
    if (value && !std::isfinite(*value)) throw Broken{"its report has numbers that are not finite"};
  }
}

/// What loads is a model: it predicts and learns, finite numbers come of it, and what it has become
/// is saved and loads again.
void check_usable(const Snapshot& snapshot, Dice& dice) {
  ContinualGP model = snapshot.model;
  const Index D = model.dimension() > 0 ? model.dimension() : 2;
  const auto predictor = model.predictor();
  const ContinualGPOptions options = model.checkpoint()->options;
  const auto* given = std::get_if<Scaling>(&options.scaling);
  const Scaling units = predictor          ? predictor->scaling()
                        : given != nullptr ? *given
                                           : Scaling::identity(D);
  const Batch batch = some_batch(dice, 1 + static_cast<Index>(dice.below(60)), units);
  static_cast<void>(from_bytes(to_bytes(model, snapshot.notes)));
  check_predictions(model, batch.X, "loaded,");
  check_report(model.observe(batch.X, batch.y));
  check_predictions(model, batch.X, "updated,");
  const ContinualGP again = from_bytes(to_bytes(model, snapshot.notes));
  if (again.predict(batch.X).mean != model.predict(batch.X).mean) {
    throw Broken{"updated and saved, it predicts something else"};
  }
}

}  // namespace

void attack_model(std::uint64_t seed) {
  Dice dice(seed);
  const bool with_checksum = dice.one_in(2);
  const std::string& sound = dice.one_of(sound_files());
  Forgery file;
  try {
    file = with_checksum ? forged(sound, dice) : Forgery{altered(sound, dice), " bytes"};
  } catch (const std::invalid_argument&) {
    return;  // texts that are not UTF-8 cannot be written
  }
  std::optional<Snapshot> snapshot;
  try {
    snapshot = snapshot_from_bytes(file.bytes);
    if (!with_checksum && file.bytes != sound) throw Broken{"altered bytes were taken for sound"};
    static_cast<void>(cli::columns_of(*snapshot, "file"));  // as all commands do
  } catch (const ModelFileError&) {
    return;
  }
  const auto broken = [&](const std::string& how) {
    return Broken{fmt::format("{}; changed:{}; kernel: {}", how, file.changed,
                              snapshot->model.kernel().to_string())};
  };
  try {
    check_usable(*snapshot, dice);
  } catch (const Broken& b) {
    throw broken(b.how);
  } catch (const std::exception& error) {
    throw broken(error.what());
  }
}

}  // namespace ample::adversary
