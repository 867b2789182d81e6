// Reads a file of spec.output.metrics.
// Tested by tests/tools/cli/plot/plot_command_test.cc
#ifndef STRATA_TOOLS_CLI_PLOT_METRICS_FILE_H_
#define STRATA_TOOLS_CLI_PLOT_METRICS_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "proto/runtime/files/file_system.h"
#include "tools/cli/plot/run_curve.h"

namespace strata {

// Adds each line to `curve`. A job may write to the file meanwhile. Memory: 1 MiB, which no line is
// longer than. INVALID_ARGUMENT: it is a folder, or empty. Others are ErrnoStatus' and name it.
absl::Status ReadMetricsFile(const std::string& path, RunCurve& curve,
                             FileSystem& files = FileSystem::Kernel());

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_PLOT_METRICS_FILE_H_
