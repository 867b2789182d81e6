// Axes: where a value lies, and which values are written beside it.
#ifndef STRATA_TOOLS_CLI_PLOT_SCALE_H_
#define STRATA_TOOLS_CLI_PLOT_SCALE_H_

#include <string>
#include <vector>

namespace strata {

struct Tick {
  double value = 0;
  std::string text;
};

struct Range {
  double low = 0;
  double high = 0;
};

// The values of a range that are 1, 2 or 5 times a power of ten, or multiples of one of those: at
// most `most` (2 or more), ascending. On a logarithmic axis powers of ten, with their 2 and 5 where
// there is room; where fewer than two of those lie in the range, as on a linear one.
// REQUIRES: low < high; both are finite, and their difference is; low > 0 where it is logarithmic.
std::vector<Tick> Ticks(const Range& range, int most, bool log);

// Numbers in the text are of this unit.
struct TimeUnit {
  const char* name = "s";
  double seconds = 1;
};
// s up to two minutes, min up to two hours, else h.
TimeUnit UnitOf(double most_seconds);

// A range that is drawn for points from `low` to `high`: with a margin (a part of the range) on
// both sides, and never empty.
Range Widened(const Range& range, double margin, bool log);

// From 0 (low) to 1 (high).
double Part(const Range& range, double value, bool log);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_PLOT_SCALE_H_
