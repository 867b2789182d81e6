#include "tools/cli/export/command.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/job/job_spec.h"
#include "tools/cli/base/job_text.h"
#include "tools/cli/checkpoint/commands.h"
#include "tools/cluster/export/export.h"

namespace strata {

ExitCode RunExport(const ExportCommandOptions& options) {
  if (options.checkpoint.empty() == options.job.empty()) {
    return ReportError(
        absl::InvalidArgumentError("export: give --checkpoint DIR or --job JOB (one of them)"));
  }
  ExportOptions what;
  what.output = options.output;
  what.overwrite = options.overwrite;
  what.plan.format = options.format == "safetensors" ? ExportFormat::kSafetensors
                     : options.format == "delta"     ? ExportFormat::kDelta
                                                     : ExportFormat::kNpy;
  what.plan.with_state = options.with_state;
  what.plan.table = options.table;
  if (!options.shard_bytes.empty()) {
    absl::StatusOr<uint64_t> bytes = ParseBytes(options.shard_bytes);
    if (!bytes.ok()) {
      return ReportError(
          absl::InvalidArgumentError(absl::StrCat("--shard-bytes: ", bytes.status().message())));
    }
    if (what.plan.format != ExportFormat::kSafetensors) {
      return ReportError(absl::InvalidArgumentError(
          "--shard-bytes is of --format safetensors; npy has one file for each array, delta one"));
    }
    if (*bytes == 0) {
      return ReportError(absl::InvalidArgumentError("--shard-bytes is 0; it must be at least 1"));
    }
    what.plan.shard_bytes = *bytes;
  }
  absl::StatusOr<std::string> where = options.job.empty()
                                          ? absl::StatusOr<std::string>(options.checkpoint)
                                          : CheckpointOfJob(options.cluster, options.job);
  if (!where.ok()) return ReportError(where.status());
  what.checkpoint_dir = *where;
  if (!options.since.empty()) {
    uint64_t step = 0;
    if (absl::SimpleAtoi(options.since, &step)) {
      absl::StatusOr<std::string> since = CheckpointOfStep(*where, step);
      if (!since.ok()) {
        return ReportError(absl::Status(since.status().code(),
                                        absl::StrCat("--since: ", since.status().message())));
      }
      what.since_dir = *since;
    } else {
      what.since_dir = options.since;
    }
  }
  absl::StatusOr<ExportSummary> done = ExportCheckpoint(what);
  if (!done.ok()) return ReportError(done.status());
  if (options.json) {
    const nlohmann::ordered_json json{
        {"checkpoint", done->checkpoint}, {"step", done->step},       {"index", done->index},
        {"since", done->since},           {"removed", done->removed}, {"arrays", done->arrays},
        {"files", done->files},           {"rows", done->rows},       {"bytes", done->bytes}};
    std::printf(
        "%s\n",
        json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
    return kExitOk;
  }
  std::printf("%s\n", done->index.c_str());
  if (!what.since_dir.empty()) {
    std::fprintf(stderr, "since step %s: %s rows changed, %s are gone\n",
                 absl::StrCat(done->since).c_str(), WithCommas(done->rows).c_str(),
                 WithCommas(done->removed).c_str());
  }
  std::fprintf(stderr, "exported step %s: %s arrays, %s rows, %s bytes in %s files\n",
               absl::StrCat(done->step).c_str(), WithCommas(done->arrays).c_str(),
               WithCommas(done->rows).c_str(), WithCommas(done->bytes).c_str(),
               WithCommas(done->files).c_str());
  return kExitOk;
}

}  // namespace strata
