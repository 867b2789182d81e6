// What a submitted job finds in its checkpoint directory. File IO.
#ifndef STRATA_SCHEDULER_STORE_SUBMISSION_H_
#define STRATA_SCHEDULER_STORE_SUBMISSION_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/core/uid.h"
#include "proto/runtime/files/path_policy.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/control.pb.h"
#include "scheduler/state/state.pb.h"

namespace strata::scheduler {

// Whether the look that ended so may end well later: the folder's file system failed, is full, or
// is not there now. A wrong name, rights, and what lies there do not mend by themselves.
bool MayPass(const absl::Status& status);

struct FoundCheckpoints {
  std::vector<CheckpointRecord> complete;  // to resume from, ascending by step
  // Checkpoints that the job is to remove, and the file of metrics that it begins anew.
  std::vector<RemovalRecord> replaced;
  // Of the checkpoint that spec.model.initFrom names, and of the newest to resume from.
  std::optional<Schema> init_schema = std::nullopt;
  std::optional<Schema> resume_schema = std::nullopt;
};

// Called with the field and the path that are looked at next, from the thread that looks.
using LookingAt = std::function<void(absl::string_view field, const std::string& path)>;

// What can be said before anything in the directory is looked at: its errors are those of
// PrepareCheckpoints that do not speak of checkpoints in it. Makes the directory.
// `found`, where it is given, gets the schema of spec.model.initFrom.
absl::Status CheckPlaces(const SubmitRequest& request, const PathPolicy& paths = {},
                         const LookingAt& looking_at = nullptr, FoundCheckpoints* found = nullptr);

// The places that the job writes to against those that it reads (proto/runtime/files/job_places.h).
// Looks at what spec.output names, and at data where an output is there already.
absl::Status CheckOutputs(const SubmitRequest& request, const LookingAt& looking_at = nullptr);

// Checks resume and overwrite against spec.checkpoint.directory of `request.job` (defaults
// resolved) and makes the directory. Resuming, returns the checkpoints to resume from; with
// overwrite those that the job replaces, damaged ones too: they stay until it is about to train;
// and so does what is in spec.output.metrics.
// INTERNAL, RESOURCE_EXHAUSTED, NOT_FOUND (spec.model.initFrom is not there): MayPass.
// FAILED_PRECONDITION: the directory is not empty and neither option is given, or the
// newest checkpoint is of another kind of job (names the field). INVALID_ARGUMENT: both options, or
// one of them without a directory. PERMISSION_DENIED: the directory cannot be made or written, or a
// place lies where `paths` allows none.
absl::StatusOr<FoundCheckpoints> PrepareCheckpoints(const SubmitRequest& request,
                                                    const PathPolicy& paths = {},
                                                    const LookingAt& looking_at = nullptr);

// Whole checkpoints in `directory` that this very job took, ascending by step; none where it cannot
// be read.
std::vector<CheckpointRecord> OwnCheckpoints(const std::string& directory,
                                             const JobIdentity& identity);
// Leaves nothing in a file. One that is not there, and what is no file, is for who writes to it.
absl::Status EmptyFile(const std::string& path);

// Whether `job` can go on from a checkpoint of `saved`. What fixes the meaning of steps and rows
// must be equal: data format, the order of lines, partitions, mode, lanes, batch size, seed, and
// the schema, as far as it is known before the data are read (scheduler/state/start.h); rates may
// change.
absl::Status CheckResumable(const TrainingJob& job, const Manifest& saved);

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_STORE_SUBMISSION_H_
