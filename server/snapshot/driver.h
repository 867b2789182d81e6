// Takes a shard's snapshots to their files while the shard goes on.
#ifndef STRATA_SERVER_SNAPSHOT_DRIVER_H_
#define STRATA_SERVER_SNAPSHOT_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/base/executor.h"
#include "proto/runtime/base/timer.h"
#include "server/snapshot/file.h"
#include "server/snapshot/pace.h"
#include "server/snapshot/progress.h"
#include "server/snapshot/shard_snapshot.h"
#include "server/snapshot/turn.h"
#include "server/table/row_block.h"
#include "storage/checkpoint/shard_file.h"
#include "storage/row/hash.h"

namespace strata::server {

// Touched on the shard's executor only, where it reads a piece (TableSnapshot::kPieceBytes) and
// then stands behind whatever else waits there; up to kPiecesAtOnce where it is late, for behind
// the queue of a saturated shard one at a time would be a tenth of the pace. Several snapshots may
// be under way.
//
// Speed: at most `pace` while the shard serves requests; as fast as disk and processor go when it
// served none for kSnapshotIdleAfter, or while commits wait (NeedsPriority; turn.h).
// Bytes: per snapshot kQueuePieces pieces and FileStream::kStagingBytes; kSnapshotHeldBytes of
// saved rows for all, and beyond it those of one commit.
class SnapshotDriver {
 public:
  static constexpr size_t kQueuePieces = 8;
  static constexpr size_t kPiecesAtOnce = 4;  // a millisecond or two

  struct Options {
    std::function<void(std::function<void()>)> post;  // to the shard's executor; any thread
    Executor* disk = nullptr;  // for files; null: they are written on the shard's executor
    Timer* timer = nullptr;
    SnapshotPace* pace = nullptr;  // null: none
    // Commits may go on (after NeedsPriority said that they should wait).
    std::function<void()> caught_up;
  };

  explicit SnapshotDriver(Options options);
  ~SnapshotDriver();  // waits for the disk

  struct Result {
    storage::ShardFileSummary summary;
    // Share of the model hash and change of the number of rows; of an increment against its base.
    storage::HashSum hash;
    int64_t row_change = 0;
  };
  // Called once on the shard's executor, unless it is dropped: the file is durable, or the error.
  using Done = std::function<void(absl::StatusOr<Result>)>;
  // An empty path: only the sums. Returns a number to drop it by. `progress` may be null.
  uint64_t Begin(std::unique_ptr<ShardSnapshot> snapshot, std::string path, Done done,
                 std::shared_ptr<SnapshotProgress> progress = nullptr);
  void Drop(uint64_t id);
  void DropAll();

  bool busy() const { return !running_.empty(); }
  // A request was served.
  void Served() { served_ = options_.timer->Now(); }
  // Commits are to wait: saved rows fill their memory, or too many snapshots are under way.
  bool NeedsPriority();

 private:
  struct Running {
    uint64_t id = 0;
    std::unique_ptr<ShardSnapshot> snapshot;  // null: all pieces were read
    std::unique_ptr<SnapshotFile> file;
    Done done;
    storage::HashSum hash_before;
    int64_t rows_before = 0;
    size_t in_flight = 0;  // pieces
    bool starved = false;  // goes on when a piece was written
  };
  Running* Find(uint64_t id);
  void Post(uint64_t id);
  void Step(uint64_t id);
  // kLater: nothing is to be done now; what goes on then is arranged.
  SnapshotTurn StepOnce(uint64_t id);
  SnapshotTurn NextTurn(uint64_t id, size_t bytes);
  bool Behind() const;
  void Wrote(uint64_t id, std::shared_ptr<RowBlock> block, const absl::Status& status);
  void End(uint64_t id, absl::StatusOr<storage::ShardFileSummary> summary);
  void Leave(std::unique_ptr<SnapshotFile> file);
  void TellCaughtUp();

  const Options options_;
  std::vector<std::unique_ptr<Running>> running_;
  std::vector<std::shared_ptr<RowBlock>> free_;         // at most kQueuePieces
  std::vector<std::unique_ptr<SnapshotFile>> leaving_;  // dropped; something of them still runs
  uint64_t next_id_ = 1;
  absl::Time served_ = absl::InfinitePast();
  bool pressed_ = false;  // somebody was told to wait
};

}  // namespace strata::server

#endif  // STRATA_SERVER_SNAPSHOT_DRIVER_H_
