// What a test binary (Catch2, version 2) says on its console.
// Tested by tests/tools/gpu/check/output_test.cc
#ifndef STRATA_TOOLS_GPU_CHECK_CATCH_OUTPUT_H_
#define STRATA_TOOLS_GPU_CHECK_CATCH_OUTPUT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/gpu/report/report.h"

namespace strata::gpu_check {

// The cases that passed, failed and reported themselves as skipped (tests/skip.h). A case that ran
// on host threads and was skipped "on a device" counts as both passed and skipped. kNotFound: there
// is no summary, so the program ended before its end.
absl::StatusOr<CaseCounts> CountCases(absl::string_view output);

// The lines that say what failed, for a reason; "" when none does.
std::string FirstFailure(absl::string_view output);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_CHECK_CATCH_OUTPUT_H_
