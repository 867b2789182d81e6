// What NVIDIA's compute-sanitizer says.
// Tested by tests/tools/gpu/check/output_test.cc
#ifndef STRATA_TOOLS_GPU_CHECK_SANITIZER_OUTPUT_H_
#define STRATA_TOOLS_GPU_CHECK_SANITIZER_OUTPUT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace strata::gpu_check {

struct SanitizerCounts {
  uint64_t errors = 0;
  uint64_t hazards = 0;  // of racecheck
  std::string first;     // what it said first, "" when nothing was found
};

// Of memcheck or racecheck. kNotFound: there is no summary, so it did not run to its end.
absl::StatusOr<SanitizerCounts> CountErrors(absl::string_view output);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_CHECK_SANITIZER_OUTPUT_H_
