// A shard as it was between two commits, on its way to a base image or a checkpoint file.
// Tested by tests/server/shard/life_cycle_increment_test.cc
// Tested by tests/server/shard/cut_consistency_test.cc
#ifndef STRATA_SERVER_SNAPSHOT_SHARD_SNAPSHOT_H_
#define STRATA_SERVER_SNAPSHOT_SHARD_SNAPSHOT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "server/table/change_list.h"
#include "server/table/row_block.h"
#include "server/table/shard_table.h"
#include "server/table/snapshot.h"
#include "storage/checkpoint/shard_file.h"
#include "storage/row/hash.h"

namespace strata::server {

// What belongs into a file beside its rows; copied at the moment of the snapshot.
struct FrozenState {
  struct Section {
    uint32_t type = 0;
    PartitionRange partitions;
    std::vector<uint8_t> bytes;
  };
  struct PreImages {
    TableId table;
    std::vector<Position> positions;
    std::vector<float> weights;  // (n, dim)
  };
  storage::ShardFileHeader header;
  std::vector<Section> sections;
  std::vector<PreImages> preimages;

  absl::Status AddTo(storage::ShardFileWriter& writer) const;
};

// Touched on the shard's executor only; made by Shard, which outlives it. Rows are read with Next,
// table after table, while commits go on (server/table/snapshot.h).
class ShardSnapshot {
 public:
  struct Options {
    FrozenState state;
    Position first;
    Position last;
    uint64_t step = 0;  // the shard's clock
    // An increment: by table. Empty: all rows.
    std::vector<ChangeList::Changes> changes;
  };
  ShardSnapshot(Options options, std::span<ShardTable> tables);
  ~ShardSnapshot();
  ShardSnapshot(const ShardSnapshot&) = delete;
  ShardSnapshot& operator=(const ShardSnapshot&) = delete;

  const FrozenState& state() const { return state_; }
  // Once.
  FrozenState TakeState() { return std::move(state_); }
  bool is_increment() const { return increment_; }
  // Of the rows that an increment replaces or erases, as the base has them.
  const storage::HashSum& hash_before() const { return hash_before_; }
  uint64_t rows_before() const { return rows_before_; }

  // Of all rows, with their positions: SnapshotProgress::total_bytes until the file is there.
  uint64_t expected_bytes() const { return expected_bytes_; }

  bool done() const { return table_ == snapshots_.size(); }
  // The next piece; may be empty. REQUIRES: !done(), no commit is half done. On error: again.
  absl::Status Next(RowBlock& out);
  // Bytes of rows that were kept because a commit changed them.
  size_t held() const;

 private:
  void SkipDone();

  FrozenState state_;
  const bool increment_;
  const std::span<ShardTable> tables_;
  std::vector<std::unique_ptr<TableSnapshot>> snapshots_;  // by table
  size_t table_ = 0;                                       // those before are done
  storage::HashSum hash_before_;
  uint64_t rows_before_ = 0;
  uint64_t expected_bytes_ = 0;
};

// Writes all of it at once: recovery and tests.
absl::StatusOr<storage::ShardFileSummary> WriteSnapshot(ShardSnapshot& snapshot,
                                                        const std::string& path);

}  // namespace strata::server

#endif  // STRATA_SERVER_SNAPSHOT_SHARD_SNAPSHOT_H_
