// Brings a folder of checkpoints back to its newest whole one.
// Tested by tests/tools/cluster/checkpoint/checkpoint_test.cc
#ifndef STRATA_TOOLS_CLUSTER_CHECKPOINT_REPAIR_H_
#define STRATA_TOOLS_CLUSTER_CHECKPOINT_REPAIR_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/cluster/checkpoint/verify.h"

namespace strata {

struct DamagedFolder {
  std::string folder;
  absl::Status error;
  std::string moved_to;  // empty: left where it is (dry run)
};

struct RepairReport {
  std::string directory;
  std::vector<DamagedFolder> damaged;       // newest first; all that are newer than `newest`
  std::vector<std::string> incomplete;      // folders of checkpoints without a manifest; left alone
  std::optional<CheckpointSummary> newest;  // read to its last byte; nothing: none is whole
};

enum class RepairMode { kMoveDamaged, kOnlyLook };

// Reads the checkpoints in `directory` to their last byte, from the newest on, until one is whole.
// Damaged ones before it get the name `damaged-step-...` in the same folder, so that they are found
// no more; nothing is deleted, and older ones are not looked at. Not while a job writes there.
// NOT_FOUND: no such folder; UNIMPLEMENTED: of those one has another format, and stays; errors of
// the file system with the path.
absl::StatusOr<RepairReport> RepairCheckpoints(const std::string& directory, RepairMode mode);

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_CHECKPOINT_REPAIR_H_
