// The file of a snapshot, written in the background.
// Tested by tests/server/snapshot/driver_test.cc
#ifndef STRATA_SERVER_SNAPSHOT_FILE_H_
#define STRATA_SERVER_SNAPSHOT_FILE_H_

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "proto/runtime/base/executor.h"
#include "proto/runtime/files/file_system.h"
#include "server/snapshot/progress.h"
#include "server/snapshot/shard_snapshot.h"
#include "server/table/row_block.h"
#include "storage/checkpoint/shard_file.h"

namespace strata::server {

// Hashes, sums up and writes pieces one after the other on `disk` (a pool; waits of the device give
// its place to others), or, without one, in the calling thread. Any thread; callbacks come from the
// thread that worked. Bound: its caller's, who hands in few pieces at a time.
class SnapshotFile {
 public:
  using Written = std::function<void(absl::Status)>;
  using Finished = std::function<void(absl::StatusOr<storage::ShardFileSummary>)>;

  // An empty path: nothing is written, only rows and hash are summed.
  // `progress` may be null.
  SnapshotFile(Executor* disk, std::string path, FrozenState state,
               std::shared_ptr<SnapshotProgress> progress = nullptr);
  // Waits until nothing of it runs.
  ~SnapshotFile();

  // `block` is not touched by others until `written`.
  void Write(std::shared_ptr<const RowBlock> block, Written written);
  // What belongs behind the rows; then the file gets its name, and is durable.
  void Finish(Finished finished);
  // What was not begun yet is not done, and calls back nobody. The file goes with this, also one
  // that has its name already.
  void Drop();
  // It was told of: the file stays. REQUIRES: Finish has called back.
  void Keep();
  bool Idle() const;

 private:
  void Add(std::function<void()> work);
  void Clean();
  void Run();
  bool NothingRuns() const ABSL_SHARED_LOCKS_REQUIRED(mu_) { return !running_; }
  absl::Status DoWrite(const RowBlock& block);
  absl::StatusOr<storage::ShardFileSummary> DoFinish();

  Executor* const disk_;
  const std::string path_;
  const std::shared_ptr<SnapshotProgress> progress_;

  // Touched by the work only.
  const FrozenState state_;
  std::unique_ptr<storage::ShardFileWriter> writer_;  // null before the first work
  absl::Status status_;
  storage::ShardFileSummary sums_;  // without a file
  std::optional<FileInfo> made_;    // the finished file, while nobody was told of it

  mutable absl::Mutex mu_;
  std::deque<std::function<void()>> work_ ABSL_GUARDED_BY(mu_);
  bool running_ ABSL_GUARDED_BY(mu_) = false;
  bool dropped_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_SNAPSHOT_FILE_H_
