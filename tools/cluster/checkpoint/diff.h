// What two checkpoints of one model differ in.
#ifndef STRATA_TOOLS_CLUSTER_CHECKPOINT_DIFF_H_
#define STRATA_TOOLS_CLUSTER_CHECKPOINT_DIFF_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "proto/job/schema/schema_mapping.h"

namespace strata {

struct RowDifference {
  Key key;              // of a dense table: the row's place in a
  double distance = 0;  // Euclidean, of the weights
  double largest = 0;   // of one weight
};

struct TableDifference {
  std::string name;
  uint64_t rows_a = 0;
  uint64_t rows_b = 0;
  uint64_t added = 0;    // in b alone
  uint64_t removed = 0;  // in a alone
  uint64_t changed = 0;  // in both, with other weights, optimizer state or metadata
  double distance = 0;   // of all rows that are in both
  double largest = 0;
  std::vector<RowDifference> top;  // changed rows, the most distant first
};

// A table or tensor whose rows in a and b are not the same things, or are in one of them alone.
struct NotCompared {
  std::string part;  // table or tensor
  std::string name;  // in b; of what is in a alone: there
  std::string why;   // "other shape"
};

struct CheckpointDifference {
  std::string hash_a, hash_b;
  // Those that are in both with rows of one kind; of the dense one, the rows of its tensors that
  // are.
  std::vector<TableDifference> tables;
  std::vector<NotCompared> not_compared;
};

struct SchemaDifference {
  std::string a, b;  // folders
  uint64_t step_a = 0;
  uint64_t step_b = 0;
  SchemaMapping mapping;  // a's compared with b's
};

// How the models of the two are made (proto/job/schema/schema_mapping.h) and trained
// (proto/job/schema/schema_settings.h).
absl::StatusOr<SchemaDifference> CompareSchemas(const std::string& a, const std::string& b);

// Compares rows where a job that starts from a (spec.model.initFrom) would have them as they are:
// by key in tables, and by tensor, wherever it lies. Streams both: memory is some 32 MiB of rows,
// or those of a partition, of a tensor, where these are more, and a block of each. Errors: those of
// CheckpointRows; FAILED_PRECONDITION: their spec.storage.partitions differ; DATA_LOSS: a manifest
// contradicts itself.
absl::StatusOr<CheckpointDifference> DiffCheckpoints(const std::string& a, const std::string& b,
                                                     size_t top);

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_CHECKPOINT_DIFF_H_
