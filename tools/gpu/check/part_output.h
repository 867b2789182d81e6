// How a part that gpu_check runs in a process of its own tells what it found: lines of "bar JSON"
// (tools/gpu/report/bar_line.h) and "fact NAME: VALUE" on its standard output, as it goes, so that
// what a killed part found is kept; and its exit code. Other lines are of no meaning.
// Tested by tests/tools/gpu/check/output_test.cc
#ifndef STRATA_TOOLS_GPU_CHECK_PART_OUTPUT_H_
#define STRATA_TOOLS_GPU_CHECK_PART_OUTPUT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "tools/gpu/report/bar_line.h"
#include "tools/gpu/report/report.h"

namespace strata::gpu_check {

inline constexpr int kPartSkipped = 77;  // the exit code; the reason is the last line of its output

std::string BarText(const BarLine& line);  // with its end of line
std::string FactText(absl::string_view name, absl::string_view value);

// Facts and lines of `output`; kFailed, with the reason, where a line of a bar cannot be read.
PartResult ParsePartOutput(absl::string_view output);

// The last line that is neither; what a part says before it ends with an error.
std::string LastWords(absl::string_view output);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_CHECK_PART_OUTPUT_H_
