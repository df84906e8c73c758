// Kernel texts: what parses is a kernel whose text parses to the same; what does not is refused.
#include <stdexcept>

#include <fmt/format.h>

#include "adversary.h"
#include "ample/kernel.h"

namespace ample::adversary {
namespace {

std::string some_text(Dice& dice, int depth) {
  static const std::vector<std::string> kLeaves{"se",
                                                "matern12",
                                                "matern32",
                                                "matern52",
                                                "rq",
                                                "periodic",
                                                "linear",
                                                "constant(500)",
                                                "polynomial",
                                                "arccos",
                                                "se(lengthscale=[1, 2])",
                                                "matern32(variance=2 fixed)",
                                                "se(dims=[0])",
                                                "se(lengthscale=0.5)",
                                                "linear(variance=3)"};
  if (depth == 0 || dice.one_in(3)) return dice.one_of(kLeaves);
  switch (dice.below(5)) {
    case 0:
      return some_text(dice, depth - 1) + " + " + some_text(dice, depth - 1);
    case 1:
      return some_text(dice, depth - 1) + "*" + some_text(dice, depth - 1);
    case 2:
      return fmt::format("{}*{}", dice.number(), some_text(dice, depth - 1));
    case 3:
      return fmt::format("({})^{}", some_text(dice, depth - 1), dice.below(5));
    default:
      return "(" + some_text(dice, depth - 1) + ")";
  }
}

}  // namespace

std::string some_kernel(Dice& dice) {
  const std::string text = some_text(dice, 4);
  return dice.one_in(2) ? altered(text, dice) : text;
}

void attack_kernel(std::uint64_t seed) {
  Dice dice(seed);
  const std::string text = some_kernel(dice);
  try {
    const Kernel kernel = Kernel::parse(text);
    const std::string again = kernel.to_string();
    if (Kernel::parse(again).to_string() != again) throw Broken{"its text is not its own: " + text};
    for (const Parameter& p : kernel.parameters()) {
      if (!(p.value >= p.lower && p.value <= p.upper)) throw Broken{"out of its bounds: " + text};
    }
  } catch (const std::invalid_argument&) {
  }
}

}  // namespace ample::adversary
