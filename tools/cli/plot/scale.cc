#include "tools/cli/plot/scale.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace strata {
namespace {

// A little room for the rounding of divisions.
constexpr double kRounding = 1e-9;

// The least of 1, 2, 5, 10, 20, ... of some power of ten that is no less.
double NiceStep(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double times : {1.0, 2.0, 5.0}) {
    if (times * power >= least * (1 - kRounding)) return times * power;
  }
  return 10 * power;
}

// So many digits that steps can be told apart.
int DigitsOf(double step) {
  return std::clamp(static_cast<int>(std::ceil(-std::log10(step) - kRounding)), 0, 15);
}

std::string WithoutZeros(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

// `most`: the greatest of the axis without its sign, which decides how all are written.
std::string TickText(double value, double step, double most) {
  if (value == 0) return "0";
  if (most >= 1e15 || most < 1e-3) {
    const int digits = std::max(0, static_cast<int>(std::floor(std::log10(std::abs(value)))) -
                                       static_cast<int>(std::floor(std::log10(step))));
    const std::string text = absl::StrFormat("%.*e", std::min(digits, 15), value);
    const size_t e = text.find('e');
    return absl::StrCat(text.substr(0, e), "e", std::atoi(text.c_str() + e + 1));
  }
  if (most < 1e4) return absl::StrFormat("%.*f", DigitsOf(step), value);
  double unit = 1;
  const char* name = "";
  for (const auto& [size, letter] : {std::pair(1e3, "k"), {1e6, "M"}, {1e9, "G"}, {1e12, "T"}}) {
    if (std::abs(value) < size * (1 - kRounding)) break;
    unit = size;
    name = letter;
  }
  return WithoutZeros(absl::StrFormat("%.*f", DigitsOf(step / unit), value / unit)) + name;
}

std::vector<Tick> LinearTicks(const Range& range, int most) {
  double step = NiceStep((range.high - range.low) / most);
  double first = 0, last = 0;
  for (;; step = NiceStep(step * 1.5)) {
    first = std::ceil(range.low / step - kRounding);
    last = std::floor(range.high / step + kRounding);
    if (last - first < most) break;
  }
  const double greatest = std::max(std::abs(first), std::abs(last)) * step;
  std::vector<Tick> ticks;
  for (double i = first; i <= last; ++i) {
    ticks.push_back({i * step, TickText(i * step, step, greatest)});
  }
  return ticks;
}

// Powers of ten between, each of `every`, times each of `times`.
std::vector<Tick> LogTicks(const Range& range, int every, const std::vector<double>& times) {
  std::vector<Tick> ticks;
  const int first = static_cast<int>(std::floor(std::log10(range.low)));
  const int last = static_cast<int>(std::floor(std::log10(range.high) + kRounding));
  for (int power = first; power <= last; ++power) {
    if (power % every != 0) continue;
    for (const double part : times) {
      const double value = part * std::pow(10, power);
      if (value < range.low * (1 - kRounding) || value > range.high * (1 + kRounding)) continue;
      ticks.push_back({value, TickText(value, std::pow(10, power), value)});
    }
  }
  return ticks;
}

}  // namespace

std::vector<Tick> Ticks(const Range& range, int most, bool log) {
  if (log) {
    std::vector<Tick> ticks = LogTicks(range, 1, {1, 2, 5});
    for (int every = 1; ticks.size() > static_cast<size_t>(most); ++every) {
      ticks = LogTicks(range, every, {1});
    }
    if (ticks.size() >= 2) return ticks;
  }
  return LinearTicks(range, most);
}

TimeUnit UnitOf(double most_seconds) {
  if (most_seconds > 7200) return {"h", 3600};
  if (most_seconds > 120) return {"min", 60};
  return {"s", 1};
}

Range Widened(const Range& range, double margin, bool log) {
  if (log) {
    const Range powers =
        Widened({std::log10(range.low), std::log10(range.high)}, margin, /*log=*/false);
    return {std::pow(10, powers.low), std::pow(10, powers.high)};
  }
  // What a double of this size hardly resolves is one value.
  const double size = std::max(std::abs(range.low), std::abs(range.high));
  const double span = range.high - range.low;
  if (span <= size * 1e-9) {
    const double half = size == 0 ? 1 : size * 0.1;
    return {range.low - half, range.high + half};
  }
  return {range.low - margin * span, range.high + margin * span};
}

double Part(const Range& range, double value, bool log) {
  if (!log) return (value - range.low) / (range.high - range.low);
  return std::log(value / range.low) / std::log(range.high / range.low);
}

}  // namespace strata
