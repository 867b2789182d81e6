// What changed since a checkpoint, as one delta file (storage/delta/file.h).
#ifndef STRATA_TOOLS_CLUSTER_EXPORT_DELTA_H_
#define STRATA_TOOLS_CLUSTER_EXPORT_DELTA_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "proto/runtime/files/file_system.h"
#include "storage/delta/file.h"
#include "tools/cluster/checkpoint/rows.h"

namespace strata {

struct DeltaExportOptions {
  std::string table;  // only this one; empty: all
  bool with_state = false;
  FileSystem* system = &FileSystem::Kernel();
};

// "delta-FROM-TO.strata", steps in 12 digits; FROM is 0 for a whole model.
std::string DeltaFileName(const CheckpointRows* before, const CheckpointRows& after);

// Where a checkpoint stands: by the sums of its manifest's files.
storage::DeltaPoint DeltaPointOf(const CheckpointRows& rows);

// Writes and syncs `path`: rows of `after` that `before` has not, or otherwise, and the keys of
// rows that only `before` has; with `before` null all rows. REQUIRES: CheckSameModel.
// INVALID_ARGUMENT: no such table.
absl::StatusOr<storage::DeltaSummary> WriteDelta(const std::string& path,
                                                 const CheckpointRows* before,
                                                 const CheckpointRows& after,
                                                 const DeltaExportOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_EXPORT_DELTA_H_
