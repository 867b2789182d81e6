// A checkpoint's file of all rows and the increments on it, read as one.
// Tested by tests/server/shard/shard_test.cc
// Tested by tests/tools/cluster/checkpoint/checkpoint_test.cc
#ifndef STRATA_STORAGE_CHECKPOINT_SHARD_CHAIN_H_
#define STRATA_STORAGE_CHECKPOINT_SHARD_CHAIN_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "proto/core/partition.h"
#include "proto/core/uid.h"
#include "storage/checkpoint/shard_file.h"

namespace strata::storage {

// Section of an increment: u64 per table, in the header's order: rows that the partitions hold with
// it.
inline constexpr uint32_t kTableRowsSection = 4;

// A file of a checkpoint as its manifest names it.
struct CheckpointPath {
  std::string path;
  FileWriter writer;
};

// Const calls from any thread. Memory per call: a block of a file, and about kMergeBytes of
// increments' rows.
class ShardChain {
 public:
  static constexpr uint64_t kMergeBytes = uint64_t{16} << 20;

  // All rows, then the increments in their order. DATA_LOSS: damaged, another's, or a file does not
  // follow the one before. NOT_FOUND, PERMISSION_DENIED with the path.
  static absl::StatusOr<ShardChain> Open(const std::vector<CheckpointPath>& files);

  // Of the file of all rows.
  const ShardFileHeader& header() const { return files_.front()->header(); }
  const std::vector<std::unique_ptr<ShardFileReader>>& files() const { return files_; }
  // As the last file says.
  absl::StatusOr<uint64_t> rows(TableId table) const;

  // As ShardFileReader::ReadRows, of the rows as the last increment left them.
  absl::Status ReadRows(TableId table, PartitionRange partitions,
                        const ShardFileReader::RowVisitor& visit) const;

 private:
  // Rows of increments in a run of partitions; null: gone.
  using Overlay = std::map<Position, std::unique_ptr<uint8_t[]>>;

  absl::Status CheckFollows(size_t i, const std::string& path) const;
  absl::Status LoadOverlay(TableId table, PartitionRange partitions, size_t row_bytes,
                           Overlay& out) const;
  absl::Status ReadMerged(TableId table, PartitionRange partitions, size_t row_bytes,
                          const ShardFileReader::RowVisitor& visit) const;

  std::vector<std::unique_ptr<ShardFileReader>> files_;
};

}  // namespace strata::storage

#endif  // STRATA_STORAGE_CHECKPOINT_SHARD_CHAIN_H_
