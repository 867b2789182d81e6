#include "tools/cli/checkpoint/delta_command.h"

#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "tools/cli/checkpoint/delta_report.h"
#include "tools/cli/checkpoint/delta_text.h"

namespace strata {

ExitCode RunDelta(const DeltaCommandOptions& options) {
  DeltaRowVisitor print;
  if (options.rows) {
    print = [&options](const DeltaRow& row) {
      const std::string line = options.json ? DeltaRowJson(row) : DeltaRowText(row);
      const bool written = std::fwrite(line.data(), 1, line.size(), stdout) == line.size();
      return written ? absl::OkStatus() : absl::CancelledError();
    };
  }
  const auto reports = ReadDeltas(options.path, print);
  if (absl::IsCancelled(reports.status())) return kExitFailed;  // main says why
  if (!reports.ok()) {
    // A disk that fails is no scheduler that does not answer.
    return ReportError(absl::IsUnavailable(reports.status())
                           ? absl::InternalError(reports.status().message())
                           : reports.status());
  }
  const std::string text =
      options.json && !options.rows ? DeltaJson(*reports) + "\n" : DeltaText(*reports);
  std::fputs(text.c_str(), options.rows ? stderr : stdout);
  return kExitOk;
}

}  // namespace strata
