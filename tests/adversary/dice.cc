#include <cmath>
#include <limits>

#include "adversary.h"

namespace ample::adversary {

double Dice::number() {
  using Limits = std::numeric_limits<double>;
  static const std::vector<double> kSpecial{0.0,
                                            -0.0,
                                            1.0,
                                            -1.0,
                                            Limits::infinity(),
                                            -Limits::infinity(),
                                            Limits::quiet_NaN(),
                                            1e-8,
                                            1e8,
                                            1e16,
                                            1e150,
                                            1e300,
                                            Limits::max(),
                                            Limits::min(),
                                            1e-16,
                                            1e-300};
  if (one_in(2)) return one_of(kSpecial);
  const double mantissa = static_cast<double>(below(2'000'001)) / 1e6 - 1.0;
  return mantissa * std::pow(10.0, static_cast<double>(below(40)) - 20.0);
}

std::string altered(std::string text, Dice& dice) {
  const std::size_t times = 1 + dice.below(4);
  for (std::size_t i = 0; i < times; ++i) {
    const std::size_t place = dice.below(text.size() + 1);
    const std::size_t count = dice.below(9);
    switch (dice.below(6)) {
      case 0:
        if (!text.empty()) text[place % text.size()] = static_cast<char>(dice.below(256));
        break;
      case 1:
        text.erase(place, count);
        break;
      case 2:
        text.insert(place, text.substr(dice.below(text.size() + 1), count));
        break;
      case 3:
        text.insert(place, count, static_cast<char>(dice.below(256)));
        break;
      case 4:
        if (!text.empty()) text[place % text.size()] ^= static_cast<char>(1U << dice.below(8));
        break;
      default:
        text.resize(place);
    }
  }
  return text;
}

}  // namespace ample::adversary
