#include "tools/cli/checkpoint_commands.h"

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/runtime/grpc_scheduler_client.h"
#include "proto/runtime/manifest_io.h"
#include "proto/runtime/scheduler_client.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tools/cli/context_file.h"
#include "tools/cli/job_text.h"
#include "tools/cli/job_watch.h"
#include "tools/cluster/verify.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

void PrintJson(const Json& json) {
  std::printf("%s\n", json.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
}

}  // namespace

absl::StatusOr<std::string> CheckpointOfJob(const std::string& scheduler, const std::string& job) {
  absl::StatusOr<std::string> address = SchedulerAddress(scheduler);
  if (!address.ok()) return address.status();
  absl::StatusOr<JobStatus> status =
      MakeGrpcSchedulerClient(*address)->GetJob(ParseJobRef(job), absl::Seconds(10));
  if (!status.ok()) return status.status();
  if (status->checkpoint().empty()) {
    return absl::NotFoundError(absl::StrCat("job ", job, " has no checkpoint (yet)"));
  }
  return status->checkpoint();
}

ExitCode RunCheckpointCreate(const CheckpointCreateOptions& options) {
  absl::StatusOr<std::string> address = SchedulerAddress(options.scheduler);
  if (!address.ok()) return ReportError(address.status());
  CreateCheckpointRequest request;
  *request.mutable_job() = ParseJobRef(options.job);
  const absl::Duration wait = absl::Seconds(options.timeout_seconds);
  request.set_wait_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(wait)));
  absl::StatusOr<CreateCheckpointReply> reply =
      MakeGrpcSchedulerClient(*address)->CreateCheckpoint(request, wait + absl::Seconds(10));
  if (!reply.ok()) return ReportError(reply.status());
  if (options.json) {
    PrintJson(Json{{"directory", reply->directory()},
                   {"step", reply->step()},
                   {"modelHash", reply->model_hash()}});
  } else {
    std::printf("%s\n", reply->directory().c_str());
  }
  return kExitOk;
}

ExitCode RunCheckpointList(const CheckpointListOptions& options) {
  std::string directory = options.directory;
  if (directory.empty()) {
    if (options.job.empty()) {
      return ReportError(
          absl::InvalidArgumentError("checkpoint list: give a folder, or --job JOB"));
    }
    absl::StatusOr<std::string> newest = CheckpointOfJob(options.scheduler, options.job);
    if (!newest.ok()) return ReportError(newest.status());
    directory = fs::path(*newest).parent_path().string();
  }
  std::error_code error;
  if (!fs::is_directory(directory, error)) {
    return ReportError(absl::NotFoundError(absl::StrCat(directory, ": no such folder")));
  }
  absl::StatusOr<CheckpointList> list = ListCheckpoints(directory);
  if (!list.ok()) return ReportError(list.status());
  Json json{{"complete", Json::array()}, {"damaged", Json::array()}};
  for (const CheckpointEntry& c : list->complete) {
    json["complete"].push_back(Json{{"step", c.step}, {"directory", c.folder}});
    if (!options.json) std::printf("%s\n", absl::StrCat("step ", c.step, "  ", c.folder).c_str());
  }
  for (const DamagedCheckpoint& c : list->damaged) {
    const std::string why(c.error.message());
    json["damaged"].push_back(Json{{"directory", c.folder}, {"error", why}});
    std::fprintf(stderr, "strata: %s is damaged: %s\n", c.folder.c_str(), why.c_str());
  }
  if (options.json) PrintJson(json);
  if (list->complete.empty()) std::fprintf(stderr, "no complete checkpoint\n");
  return kExitOk;
}

ExitCode RunCheckpointVerify(const CheckpointVerifyOptions& options) {
  absl::StatusOr<CheckpointSummary> summary = VerifyCheckpoint(options.directory);
  if (!summary.ok()) return ReportError(summary.status());
  if (options.json) {
    PrintJson(Json{{"directory", summary->directory},
                   {"step", summary->step},
                   {"modelHash", summary->model_hash},
                   {"rows", summary->rows},
                   {"bytes", summary->bytes},
                   {"files", summary->files}});
    return kExitOk;
  }
  std::printf("%s is whole\n  step %s, %s rows, %s bytes in %s files\n  model hash %s\n",
              summary->directory.c_str(), WithCommas(summary->step).c_str(),
              WithCommas(summary->rows).c_str(), WithCommas(summary->bytes).c_str(),
              WithCommas(summary->files).c_str(), summary->model_hash.c_str());
  return kExitOk;
}

}  // namespace strata
