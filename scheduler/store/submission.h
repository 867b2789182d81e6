// What a submitted job finds in its checkpoint directory. File IO.
#ifndef STRATA_SCHEDULER_STORE_SUBMISSION_H_
#define STRATA_SCHEDULER_STORE_SUBMISSION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/core/uid.h"
#include "proto/runtime/files/may_pass.h"
#include "proto/runtime/files/path_policy.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/control.pb.h"
#include "scheduler/state/state.pb.h"

namespace strata::scheduler {

struct FoundCheckpoints {
  // A whole checkpoint whose job has owners.
  struct Owned {
    std::string folder;
    std::set<std::string> owners;
  };
  std::vector<CheckpointRecord> complete;  // to resume from, ascending by step
  std::string damaged = "";  // newer ones, each with what is wrong, for people; empty: none
  // Checkpoints that the job is to remove, and the file of metrics that it begins anew.
  std::vector<RemovalRecord> replaced;
  // Of the whole ones in the directory, whether they are replaced or gone on from.
  std::vector<Owned> owned = {};
  // Of the checkpoint that spec.model.initFrom names, and of the newest to resume from.
  std::optional<Schema> init_schema = std::nullopt;
  std::optional<CheckpointIdentity> init = std::nullopt;  // the former
  std::string init_sample_weight = "";                    // spec.sampleWeight of the former's job
  std::optional<Schema> resume_schema = std::nullopt;
  // As OwnCheckpoints', of LookForOwn alone.
  TrainedData data = {};
  absl::Status other_format = absl::OkStatus();
};

// Of one job among those in its directory.
struct OwnCheckpoints {
  std::vector<CheckpointRecord> complete;  // ascending by step
  // What data the newest of them is of. Where there are none, that of another job's newest: what
  // this one may have resumed from.
  TrainedData data;
  // As FoundCheckpoints's: what is newer than all of `complete`. Nobody can say whose it is.
  std::string damaged = "";
  // FAILED_PRECONDITION: one of those has another format. It may be the job's newest: who goes on
  // from an older one does so against this; who needs none may. The text says what to do.
  absl::Status other_format = absl::OkStatus();
};

// Called with the field and the path that are looked at next, from the thread that looks.
using LookingAt = std::function<void(absl::string_view field, const std::string& path)>;

// Of a job that was accepted nobody asks again whether its places are its own: it may come from
// before that was asked, and be refused for good.
enum class Asked : uint8_t { kNew, kAccepted };

// What can be said before anything in the directory is looked at: its errors are those of
// PrepareCheckpoints that do not speak of checkpoints in it, and of a new job those of
// CheckJobPlaces beside outputs. Makes the directory. `found`, where it is given, gets the schema
// and the identity of spec.model.initFrom.
absl::Status CheckPlaces(const SubmitRequest& request, const PathPolicy& paths = {},
                         const LookingAt& looking_at = nullptr, Asked asked = Asked::kNew,
                         FoundCheckpoints* found = nullptr);

// The places that the job writes to against those that it reads (proto/runtime/files/job_places.h).
// Looks at what spec.output names, and at data where an output is there already.
absl::Status CheckOutputs(const SubmitRequest& request, const LookingAt& looking_at = nullptr);

// Checks resume and overwrite against spec.checkpoint.directory of `request.job` (defaults
// resolved), of which CheckPlaces was asked when it was new, and makes the directory. Resuming,
// returns the checkpoints to resume from; with overwrite those that the job replaces, damaged ones
// too: they stay until it is about to train; and so does what is in spec.output.metrics. INTERNAL,
// RESOURCE_EXHAUSTED, NOT_FOUND (spec.model.initFrom is not there): MayPass; so also where one
// checkpoint of many cannot be read now, which may be the newest, or one to replace.
// FAILED_PRECONDITION: the directory is not empty and neither option is given, the
// newest checkpoint is of another kind of job (names the field), or it has another format.
// INVALID_ARGUMENT: both options, or one of them without a directory. PERMISSION_DENIED: the
// directory cannot be made or written, or a place lies where `paths` allows none.
absl::StatusOr<FoundCheckpoints> PrepareCheckpoints(const SubmitRequest& request,
                                                    const PathPolicy& paths = {},
                                                    const LookingAt& looking_at = nullptr);

// Whole checkpoints in `directory` that this very job took, ascending by step. What is damaged is
// none. `replaced`: as JobSpecRecord's; what lies there as it did then is another job's, and
// nothing is said of it. Errors, among them any that MayPass of one checkpoint: what it is, nobody
// knows now.
absl::StatusOr<OwnCheckpoints> FindOwnCheckpoints(const std::string& directory,
                                                  const JobIdentity& identity,
                                                  const std::vector<RemovalRecord>& replaced = {});
// Leaves nothing in a file. One that is not there, and what is no file, is for who writes to it.
absl::Status EmptyFile(const std::string& path);

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_STORE_SUBMISSION_H_
