// Model files: bytes altered at random, and contents altered under a right checksum.
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "adversary.h"
#include "ample/continual_gp.h"
#include "ample/snapshot.h"
#include "safetensors.h"

namespace ample::adversary {
namespace {

Batch some_batch(Dice& dice, Index rows) {
  Batch batch{Matrix(rows, 2), Vector(rows)};
  const auto uniform = [&] { return static_cast<double>(dice.below(6000)) / 1000.0 - 3.0; };
  for (Index i = 0; i < rows; ++i) {
    batch.X(i, 0) = uniform();
    batch.X(i, 1) = uniform();
    batch.y[i] = std::sin(batch.X(i, 0)) + 0.03 * uniform();
  }
  return batch;
}

const std::string& sound_file() {
  static const std::string bytes = [] {
    Dice dice(1);
    ContinualGPOptions options;
    options.scaling = Standardize::first_batch;
    ContinualGP gp(options);
    for (int i = 0; i < 2; ++i) {
      const Batch batch = some_batch(dice, 40);
      gp.observe(batch.X, batch.y);
    }
    return to_bytes(gp, {{"columns", R"({"count":3,"inputs":[0,1],"names":[],"target":2})"}});
  }();
  return bytes;
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

/// As one who can compute checksums would.
std::string forged(Dice& dice) {
  TensorFile file = tensors_from_bytes(sound_file());
  for (std::size_t i = 0; i <= dice.below(2); ++i) {
    if (dice.one_in(2)) {
      auto it = file.tensors.begin();
      std::advance(it, dice.below(file.tensors.size()));
      if (dice.one_in(10)) {
        file.tensors.erase(it);
      } else {
        alter(it->second.values, dice);
        if (it->second.values.cols() != 1) it->second.rank = 2;
      }
    } else {
      auto it = file.metadata.begin();
      std::advance(it, dice.below(file.metadata.size()));
      it->second = dice.one_in(2) ? fmt::format("{}", dice.number()) : altered(it->second, dice);
    }
  }
  return tensors_to_bytes(file);
}

/// What loads must be a model: it predicts, learns or says why not, and is saved again.
void check_usable(ContinualGP model, Dice& dice) {
  const Batch batch = some_batch(dice, 20);
  const Index D = model.dimension();
  if (D != 0 && D != 2) throw Broken{"a model of other dimensions came of it"};
  static_cast<void>(to_bytes(model));
  const auto finite = [](const Prediction& p) {
    return p.mean.allFinite() && p.variance.allFinite() && (p.variance.array() >= 0.0).all();
  };
  try {
    if (D != 0 && !finite(model.predict(batch.X))) throw Broken{"it predicts what is not finite"};
    model.observe(batch.X, batch.y);
    if (!finite(model.predict(batch.X))) throw Broken{"updated, it predicts what is not finite"};
  } catch (const NumericalError&) {  // said, not shown as a number
  } catch (const std::invalid_argument&) {
  }
}

}  // namespace

void attack_model(std::uint64_t seed) {
  Dice dice(seed);
  const bool with_checksum = dice.one_in(2);
  std::string bytes;
  try {
    bytes = with_checksum ? forged(dice) : altered(sound_file(), dice);
  } catch (const std::invalid_argument&) {
    return;  // texts that are not UTF-8 cannot be written
  }
  try {
    ContinualGP model = from_bytes(bytes);
    if (!with_checksum && bytes != sound_file()) throw Broken{"altered bytes were taken for sound"};
    check_usable(std::move(model), dice);
  } catch (const ModelFileError&) {
  }
}

}  // namespace ample::adversary
