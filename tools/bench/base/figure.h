// What a benchmark says: one line per figure, beside the limit measured in the same run.
#ifndef STRATA_TOOLS_BENCH_BASE_FIGURE_H_
#define STRATA_TOOLS_BENCH_BASE_FIGURE_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace strata::bench {

struct Figure {
  std::string bench;
  std::string name;
  double value = 0;
  std::string unit;
  std::optional<double> limit;  // the physical limit or the bar's base, measured in the same run
  std::string limit_name;       // what the limit is
  std::optional<double> peer;   // the peer's figure: interleaved, or a stated constant
  std::string peer_name;
};

struct BenchOptions {
  double seconds = 6;     // length of one measured window
  int rounds = 3;         // windows; the median counts
  std::string baselines;  // folder of peer programs; empty: none
  std::string directory;  // scratch
};

using Report = std::function<void(const Figure&)>;
using Benchmark = std::function<absl::Status(const BenchOptions&, const Report&)>;

struct NamedBenchmark {
  std::string name;
  std::string about;
  Benchmark run;
};

// One line: {"bench","name","value","unit","limit","ratio","peer","peer_ratio"}; null where there
// is no limit or peer, and for a ratio to 0.
std::string ToJson(const Figure& figure);
// A row of the table for people.
std::string ToRow(const Figure& figure);
std::string TableHead();

// REQUIRES: not empty.
double Median(std::vector<double> values);

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_BASE_FIGURE_H_
