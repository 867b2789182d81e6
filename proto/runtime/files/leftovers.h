// What cuts that were given up left in a checkpoint directory. Blocking file IO; any thread.
// Tested by tests/storage/checkpoint/cut_leftovers_test.cc
#ifndef STRATA_PROTO_RUNTIME_FILES_LEFTOVERS_H_
#define STRATA_PROTO_RUNTIME_FILES_LEFTOVERS_H_

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "proto/core/uid.h"
#include "proto/runtime/files/file_system.h"

namespace strata {

// Cuts of a job that are over, as who holds the directory's lock knows: of its generations up to
// one all numbers below one, but for those that are pending.
struct CutsOver {
  JobIdentity identity;
  Generation generation;
  uint64_t below = 0;
  std::set<uint64_t> pending;
  std::set<std::string> pending_folders;  // full paths; they stay, though nothing is in them yet
  std::set<std::string> folders;          // full paths; to look into these alone. None: into all

  bool Has(Generation g, uint64_t cut) const {
    return g <= generation && cut < below && !pending.contains(cut);
  }
};

// Removes, from the folders of checkpoints in `directory` that `over` names, the files that cuts of
// `over` made and that their folder's manifest does not name: finished ones of those writers, as
// their headers say, and those that were being written by that job, as their names say. And folders
// in which nothing is left. Whatever else is there stays: files of later cuts, of other jobs, of
// unknown names, or damaged, and all of a folder whose manifest cannot be read. Goes on after an
// error, and returns the first that may pass (MayPass); where none does, the first; DATA_LOSS and
// UNIMPLEMENTED, of a manifest that cannot be read, only where there is no other.
absl::Status RemoveLeftovers(const std::string& directory, const CutsOver& over,
                             FileSystem& files = FileSystem::Kernel());

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_FILES_LEFTOVERS_H_
