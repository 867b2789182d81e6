// A checkpoint's parameters in formats that other programs read.
#ifndef STRATA_TOOLS_CLUSTER_EXPORT_EXPORT_H_
#define STRATA_TOOLS_CLUSTER_EXPORT_EXPORT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "proto/runtime/files/file_system.h"
#include "tools/cluster/export/plan.h"

namespace strata {

struct ExportOptions {
  std::string checkpoint_dir;  // one checkpoint's folder, or a folder of them: the newest
  std::string output;          // folder
  bool overwrite = false;      // replace an export that is there (folder.h)
  // Only what changed since this checkpoint of the same job, and what was removed. Empty: all.
  std::string since_dir;
  ExportPlanOptions plan;
  FileSystem* system = &FileSystem::Kernel();  // that the export is written with
};

struct ExportSummary {
  std::string checkpoint;
  uint64_t step = 0;
  std::string index;  // path
  uint64_t arrays = 0;
  uint64_t files = 0;
  uint64_t since = 0;    // step of the checkpoint at since_dir
  uint64_t rows = 0;     // of hashed tables
  uint64_t removed = 0;  // keys of hashed tables that have no row any more
  uint64_t bytes = 0;    // of all files but the index
};

// Streams: memory is a block of the checkpoint's files and a buffer per array; with since_dir also
// what VisitChanges holds, and the checkpoints are read twice. The bytes depend on the checkpoint's
// rows alone, not on how many servers wrote it. Errors: NOT_FOUND (no complete
// checkpoint), FAILED_PRECONDITION (since_dir: another model, or not before), DATA_LOSS (damaged,
// names the file), RESOURCE_EXHAUSTED (disk full; nothing of the export stays), INVALID_ARGUMENT,
// FAILED_PRECONDITION (the output folder).
absl::StatusOr<ExportSummary> ExportCheckpoint(const ExportOptions& options);

// The checkpoint of exactly this step beside (or in) `directory`, for since_dir. NOT_FOUND names
// the steps that there are.
absl::StatusOr<std::string> CheckpointOfStep(const std::string& directory, uint64_t step);

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_EXPORT_EXPORT_H_
