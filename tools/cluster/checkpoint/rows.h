// The rows of a checkpoint, by table, straight from its files.
// Tested by tests/tools/cluster/export/delta_test.cc
// Tested by tests/tools/cluster/checkpoint/checkpoint_test.cc
#ifndef STRATA_TOOLS_CLUSTER_CHECKPOINT_ROWS_H_
#define STRATA_TOOLS_CLUSTER_CHECKPOINT_ROWS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "proto/core/partition.h"
#include "proto/job/tables/model_tables.h"
#include "proto/strata/checkpoint.pb.h"
#include "storage/checkpoint/shard_chain.h"
#include "storage/row/layout.h"
#include "tools/cluster/checkpoint/folder.h"

namespace strata {

// Immutable; any thread. Memory of a call: one block of a file, and where there are increments
// ShardChain::kMergeBytes. Nothing is checked beforehand: damage is found where it is read, as
// DATA_LOSS that names the file.
class CheckpointRows {
 public:
  // `directory`: one checkpoint's folder, or a folder of them: the newest. NOT_FOUND, DATA_LOSS;
  // FAILED_PRECONDITION: its rows are not shaped as this program would shape the job's.
  static absl::StatusOr<CheckpointRows> Open(const std::string& directory);

  const std::string& folder() const { return found_.folder; }
  const Manifest& manifest() const { return found_.manifest; }
  const ModelTables& tables() const { return tables_; }
  const storage::RowLayout& layout(uint32_t table) const { return layouts_[table]; }
  uint64_t rows(uint32_t table) const { return rows_[table]; }
  const std::vector<uint64_t>& rows() const { return rows_; }

  // `row` has layout(table).row_bytes() and is valid during the call.
  using Visitor = std::function<absl::Status(Position position, const uint8_t* row)>;

  // Every row of a table, ascending by position. Stops at the first error of `visit`.
  absl::Status ReadAll(uint32_t table, const Visitor& visit) const;

  // Rows of a table in a run of partitions, ascending by position.
  absl::Status ReadPartitions(uint32_t table, PartitionRange partitions,
                              const Visitor& visit) const;

  // Rows at first <= position <= last, both in one partition.
  absl::Status ReadRange(uint32_t table, Position first, Position last, const Visitor& visit) const;

  // The row that a key without one reads as.
  std::vector<uint8_t> InitialRow(uint32_t table, Key key) const;

 private:
  CheckpointRows() = default;
  absl::Status CheckFiles();
  // A file of all rows of some partitions, and the increments on it.
  struct Chain {
    PartitionRange partitions;
    std::vector<storage::CheckpointPath> files;  // in the order of their sequence
  };
  absl::Status ReadChain(const Chain& chain, uint32_t table, PartitionRange partitions,
                         const Visitor& visit) const;

  FoundCheckpoint found_;
  ModelTables tables_;
  std::vector<storage::RowLayout> layouts_;
  std::vector<uint64_t> rows_;  // by table
  std::vector<Chain> chains_;   // ascending by first partition
};

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_CHECKPOINT_ROWS_H_
