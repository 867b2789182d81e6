#include "tools/cli/data/estimate_command.h"

#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/strata/job.pb.h"
#include "tools/cli/data/data_measure.h"
#include "tools/cli/data/estimate.h"
#include "tools/cli/job/file.h"

namespace strata {
namespace {

// Rows of 64 KiB of so many fit 64 bits.
constexpr uint64_t kMostRows = uint64_t{1} << 47;

}  // namespace

ExitCode RunEstimate(const EstimateOptions& options) {
  const absl::StatusOr<TrainingJob> job =
      LoadJobFile(options.source.file, options.source.overrides);
  if (!job.ok()) return ReportError(job.status());
  for (const std::string& file : job->spec().data().train()) {
    if (file != "-") continue;
    return ReportError(absl::InvalidArgumentError(
        "spec.data.train: '-' can be read once only; estimate from a file"));
  }
  if (options.rows > kMostRows) {
    return ReportError(absl::InvalidArgumentError(absl::StrCat(
        "--rows: ", options.rows, " is above ", kMostRows, "; give the features of the data")));
  }
  const absl::StatusOr<DataMeasure> data = MeasureData(job->spec());
  if (!data.ok()) return ReportError(data.status());
  const absl::StatusOr<JobEstimate> estimate =
      EstimateJob(job->spec(), *data, options.rows, std::thread::hardware_concurrency());
  if (!estimate.ok()) return ReportError(estimate.status());
  const std::string text = options.json ? EstimateJson(*estimate) + "\n" : EstimateText(*estimate);
  std::fputs(text.c_str(), stdout);
  return kExitOk;
}

}  // namespace strata
