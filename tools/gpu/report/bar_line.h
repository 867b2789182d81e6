// One line of a bar: what was counted, how long it took, and what it is held against, all measured
// in the same run.
#ifndef STRATA_TOOLS_GPU_REPORT_BAR_LINE_H_
#define STRATA_TOOLS_GPU_REPORT_BAR_LINE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace strata::gpu_check {

struct BarLine {
  std::string bar;              // "gather"
  std::string name;             // the case: "rows of 256 B, one a bag"
  std::string path = "device";  // device, in-process or gRPC
  double bytes = 0;             // of one call, read and written; 0: not counted
  double operations = 0;        // of one call
  std::string operation;        // what those are: "rows", "keys", "flop"
  double ms = 0;                // one call, the median; 0: not measured
  double probe_ms = 0;          // the bare probe of the same access pattern; 0: none
  double reference_ms = 0;      // one call of a case that ms is compared with; 0: none
  double copy_bytes_per_s = 0;  // a copy on the device, bytes read and written; 0: not measured
  // What the bar asks for; 0: nothing.
  double least_of_copy = 0;   // of the copy's bytes per second
  double least_of_probe = 0;  // of the probe's speed
  double most_ms = 0;
  double most_change = 0;  // of ms against reference_ms, as a share of that
  std::string note;        // sizes that are smaller than the bar's, say
};

// Bytes per second over the copy's; the probe's time over ours. 0 where something is not measured.
double OfCopy(const BarLine& line);
double OfProbe(const BarLine& line);
// By which share our time is longer, or shorter, than the reference's; 1 where one is not measured.
double ChangeOf(const BarLine& line);

// What the line misses, "61.2 % of copy, wanted 80 %"; empty when nothing. A bar whose figure was
// not measured is missed.
std::vector<std::string> MissedBars(const BarLine& line);

// One line of JSON, and back; kInvalidArgument names what is wrong.
std::string BarLineJson(const BarLine& line);
absl::StatusOr<BarLine> ParseBarLine(absl::string_view json);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_REPORT_BAR_LINE_H_
