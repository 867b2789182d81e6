// What becomes of a job whose records are lost, from what servers noted of it when they opened it
// (KeptJob in control.proto) and the checkpoints that it has: pure.
#ifndef STRATA_SCHEDULER_ADOPTION_H_
#define STRATA_SCHEDULER_ADOPTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/strata/control.pb.h"
#include "scheduler/state/state.pb.h"

namespace strata::scheduler {

// A server's copy, of the one job that is meant.
struct KeptCopy {
  std::string node;
  QuarantinedJob kept;
  std::optional<KeptJob> note;
  std::string why;  // there is no note; empty: it is read yet
};

struct Adoption {
  uint64_t generation = 0;  // that it goes on in, or begins
  // By server index: these go on with what they have. None: it begins from `from`.
  std::vector<std::string> servers;
  std::optional<CheckpointRecord> from;
  std::string text;  // for people: where it goes on, and what is given up
};

// What all copies say of the job: that of the newest generation, where they differ in nothing else.
// There is at least one. FAILED_PRECONDITION: the job is of another cluster than `cluster` (names
// both), a note is missing, two of them differ, or a server that is newer noted what is not known
// here.
absl::StatusOr<KeptJob> AgreedNote(absl::string_view cluster, const std::vector<KeptCopy>& copies);

// Rules:
//   * Bsp, with the shards of every server in the newest generation that anything tells of: it goes
//     on with them, to the bit.
//   * Else from the newest of `own` (its checkpoints, ascending by step): a shard is missing, level
//     memory kept none, or the ledger of an asynchronous mode went with the scheduler's records.
// `note`: AgreedNote's. `damaged`: newer checkpoints that are not whole, for people.
// `other_format`: not OK where a newer one is of another version of Strata, and says what to do.
// FAILED_PRECONDITION: a checkpoint is needed, and there is none or `other_format`; the text says
// what can be done.
absl::StatusOr<Adoption> JudgeAdoption(const KeptJob& note, const std::vector<KeptCopy>& copies,
                                       const std::vector<CheckpointRecord>& own,
                                       const std::string& damaged,
                                       const absl::Status& other_format = absl::OkStatus());

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_ADOPTION_H_
