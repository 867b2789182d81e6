#include "tools/cli/job/train_command.h"

#include <atomic>
#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/runtime/base/clock.h"
#include "proto/runtime/files/path_policy.h"
#include "proto/runtime/files/rooted_files.h"
#include "proto/strata/job.pb.h"
#include "tools/cli/base/interrupt.h"
#include "tools/cli/base/job_text.h"
#include "tools/cli/base/progress.h"
#include "tools/cli/base/shell_word.h"
#include "tools/cli/job/file.h"
#include "tools/cluster/embedded/embedded.h"

namespace strata {
namespace {

// The command line that goes on where this one stopped, as a shell reads it.
std::string ResumeCommand(const TrainOptions& options) {
  std::string command = absl::StrCat("strata train -f ", ShellWord(options.source.file));
  for (const std::string& o : options.source.overrides)
    absl::StrAppend(&command, " --set ", ShellWord(o));
  for (const std::string& root : options.data_roots)
    absl::StrAppend(&command, " --data-root ", ShellWord(root));
  return command + " --resume";
}

ExitCode PrintInterrupted(const TrainOptions& options, const CheckpointSpec& checkpoints,
                          const JobStatus* status) {
  if (status != nullptr && !status->checkpoint().empty()) {
    std::fprintf(stderr, "Interrupted at step %s; checkpoint %s.\nGo on with: %s\n",
                 WithCommas(status->step()).c_str(), status->checkpoint().c_str(),
                 ResumeCommand(options).c_str());
  } else if (checkpoints.directory().empty()) {
    std::fprintf(stderr,
                 "Interrupted; the job has no spec.checkpoint.directory, so nothing was kept.\n");
  } else {
    std::fprintf(stderr, "Interrupted before there was anything to keep.\n");
  }
  return kExitInterrupted;
}

}  // namespace

ExitCode RunTrain(const TrainOptions& options) {
  absl::StatusOr<TrainingJob> job = LoadJobFile(options.source.file, options.source.overrides);
  if (!job.ok()) return ReportError(job.status());
  absl::StatusOr<PathPolicy> paths = PathPolicy::Make(options.data_roots);
  if (!paths.ok()) return ReportError(paths.status());
  if (const absl::Status s = RestrictFiles(*paths, {}); !s.ok()) return ReportError(s);
  if (const absl::Status s = CheckPlacesOfFile(options.source.file, *job, options.overwrite);
      !s.ok()) {
    return ReportError(s);
  }
  ProgressPrinter progress(ProgressOptions::ForStderr());
  std::atomic<bool>& interrupted = CatchInterrupts();
  EmbeddedOptions embedded;
  embedded.job = *job;
  embedded.resume = options.resume;
  embedded.overwrite = options.overwrite;
  embedded.paths = *paths;
  embedded.on_progress = [&](const JobStatus& s) { progress.Show(s, Clock::Real()->Now()); };
  embedded.on_note = [&](const std::string& line) { progress.Note("note: " + line); };
  embedded.stop = &interrupted;
  const absl::StatusOr<JobStatus> end = RunEmbedded(embedded);
  progress.Finish();
  if (interrupted.load() && (!end.ok() || end->state() != SUCCEEDED)) {
    if (!end.ok() && !absl::IsCancelled(end.status())) ReportError(end.status());
    return PrintInterrupted(options, job->spec().checkpoint(), end.ok() ? &*end : nullptr);
  }
  if (!end.ok()) return ReportError(end.status());
  std::printf("%s%s", options.json ? JobJson(*end).c_str() : JobSummary(*end).c_str(),
              options.json ? "\n" : "");
  return end->state() == SUCCEEDED ? kExitOk : kExitFailed;
}

}  // namespace strata
