// A shard on its executor: takes parts of requests, keeps what must wait, commits when a step is
// complete, and takes cuts and images between commits.
// Tested by tests/server/shard/cut_consistency_test.cc
// Tested by tests/server/shard/tier_trouble_test.cc
#ifndef STRATA_SERVER_SHARD_RUNNER_H_
#define STRATA_SERVER_SHARD_RUNNER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/core/ids.h"
#include "proto/runtime/base/executor.h"
#include "proto/runtime/base/timer.h"
#include "server/protocol/cut_barrier.h"
#include "server/protocol/lane_sessions.h"
#include "server/shard/cut.h"
#include "server/shard/disk_stall.h"
#include "server/shard/request.h"
#include "server/shard/shard.h"
#include "server/shard/tidier.h"
#include "server/shard/view.h"
#include "server/snapshot/driver.h"
#include "server/snapshot/pace.h"
#include "server/snapshot/progress.h"
#include "server/table/refused_rows.h"
#include "storage/log/record.h"

namespace strata::server {

// Methods without a note may be called from any thread: they post to the executor. Owned by the
// server's job, which destroys the executor (waiting for it) before the runner.
class ShardRunner {
 public:
  struct Options {
    Timer* timer = nullptr;
    // Of background writes to the tier below.
    double tidy_bytes_per_second = Tidier::kJobBytesPerSecond;
    Executor* disk = nullptr;      // for images and checkpoints (server/snapshot/driver.h)
    SnapshotPace* pace = nullptr;  // for the same
    // Called on the executor after the clock moved by a commit or an applied window.
    std::function<void()> committed;
    // Called on the executor when a file of a cut begins to be written; may be null.
    std::function<void(CutNumber, std::shared_ptr<const SnapshotProgress>)> cut_begun;
    // Called on the executor, once for every cut that is ordered and not taken back.
    std::function<void(CutNumber, const ShardCut&)> cut_done;
  };
  // How long after a disk error a commit is tried again.
  static constexpr absl::Duration kRetryAfter = absl::Milliseconds(100);

  ShardRunner(std::unique_ptr<Shard> shard, Options options);
  ~ShardRunner();

  // Where the shard lives; REQUIRES: before anything else is called. Null: what comes later is
  // dropped, and the executor may go (after it ran what it has).
  void SetExecutor(Executor* executor);

  // Does part `part` of the call.
  void Pull(std::shared_ptr<PullCall> call, size_t part);
  void Prefetch(std::shared_ptr<PrefetchCall> call, size_t part);
  void Push(std::shared_ptr<PushCall> call, PushPart part);
  void Mark(std::shared_ptr<MarkCall> call, uint32_t lane, CutNumber cut, LaneMark mark);

  // All cuts that are ordered now; each is answered once, when its file is durable. The shard is
  // frozen at the cut and goes on at once. Those that vanish are forgotten. Async: `given_up`: all
  // cuts up to it are over, and what is held back for them is let go.
  void SetCuts(std::vector<CutOrder> orders, CutNumber given_up = 0);
  void CloseBelow(TaskId task);
  // Pushes and marks of others are refused from now on; view().lane_epoch says when that holds.
  void SetSessions(LaneSessions sessions);
  // Of a shard with copies (Shard::WaitForCopies): they have its steps up to this one.
  void SetCommitted(Step step);
  // The configuration of that epoch: the shard takes what was sent under it and no other
  // (server/protocol/chain_handover.h). `done` is called on the executor when that holds.
  void GoBy(uint64_t chain_epoch, std::function<void()> done);
  // Records that the copy before this one sent under `chain_epoch`, in order; each into the log,
  // then applied (Shard::Take), as commits are when snapshots are late. `done` is called on the
  // executor, once, with the first error. FAILED_PRECONDITION: the shard goes by another epoch;
  // ABORTED: others came before all of these were taken.
  void Receive(uint64_t chain_epoch, std::vector<ReceivedRecord> records,
               std::function<void(absl::Status)> done);
  // Does `work` with the shard itself, which nobody reads yet; else as Receive.
  void Do(uint64_t chain_epoch, std::function<absl::Status(Shard&)> work,
          std::function<void(absl::Status)> done);
  // Ends the pins of a ticket that was dropped.
  void Unpin(std::shared_ptr<RequestKeys> keys);
  // Writes a base image into `folder` (server/snapshot/image_files.h names it) in the background,
  // after whatever image or cut is under way here, and calls `done` on the executor.
  void WriteImage(std::string folder, uint64_t log_segment, std::function<void(absl::Status)> done);
  // Answers everything that waits with `status`. What comes later is answered the same.
  void Close(absl::Status status);

  const ShardView& view() const { return view_; }
  // Before SetExecutor alone.
  Shard& shard() { return *shard_; }
  // As Shard's.
  std::vector<RefusedRowCount> first_refused() const {
    absl::MutexLock lock(&refused_mu_);
    return first_refused_;
  }
  const DiskStall& stalled_commits() const { return stalled_commits_; }
  const DiskStall& stalled_reads() const { return stalled_reads_; }
  ShardId id() const { return id_; }

 private:
  struct WaitingPull {
    std::shared_ptr<PullCall> call;
    size_t part;
  };
  struct HeldWindow {
    std::shared_ptr<PushCall> call;
    PushPart part;
  };
  // Of the copy before this one; it sends more when this is answered.
  struct Received {
    std::vector<ReceivedRecord> records;
    std::function<void(absl::Status)> done;
    size_t taken = 0;
  };
  struct AppliedWindow {
    std::shared_ptr<PushCall> call;
    Step step;  // the log's end then
    bool repeated = false;
  };
  struct Taking {
    uint64_t id = 0;                 // of the driver
    std::vector<std::string> links;  // names that its folder got for the base's files
  };

  void Post(std::function<void()> work);
  // On the executor:
  void RunPull(const std::shared_ptr<PullCall>& call, size_t part);
  void ServePull(PullCall& call, size_t part, bool preimages);
  void RunContributions(PushCall& call, PushPart& part);
  void RunWindow(const std::shared_ptr<PushCall>& call, PushPart part);
  void ApplyWindow(const std::shared_ptr<PushCall>& call, PushPart& part);
  // Answers a window that is applied here when all copies have it.
  void AnswerApplied(const std::shared_ptr<PushCall>& call, bool repeated);
  void AnswerCommitted();
  void FollowCommitted();
  absl::Status CheckChain(uint64_t chain_epoch) const;
  void TakeReceived();
  void EndReceived(absl::Status status);
  void ApplyReleased();
  void WatchHeld();
  void EndOverdue();
  void Advance();
  void AnswerWaiting();
  bool TakeCuts();
  bool TakeCut(const CutOrder& order);
  void BeginCut(const CutOrder& order);
  std::vector<CutFile> LinkBase(const CutOrder& order);
  void DropCut(const Taking& taking);
  void CutWritten(const CutOrder& order, ShardCut cut,
                  absl::StatusOr<SnapshotDriver::Result> result);
  void BeginImages();
  void RunDeferred();
  void AnswerCut(const CutOrder& order, ShardCut cut);
  // Has Expire run at `deadline` at the latest.
  void WakeAt(absl::Time deadline);
  void Expire();
  void RetryLater();
  void CommitFailed(const absl::Status& why);
  void CommitWentThrough();
  void ReadFailed(const absl::Status& why);
  void Publish();

  const ShardId id_;
  const Options options_;
  ShardView view_;
  DiskStall stalled_commits_;
  DiskStall stalled_reads_;
  mutable absl::Mutex refused_mu_;
  std::vector<RefusedRowCount> first_refused_ ABSL_GUARDED_BY(refused_mu_);
  absl::Mutex mu_;
  Executor* executor_ ABSL_GUARDED_BY(mu_) = nullptr;
  std::atomic<uint64_t> told_committed_{0};  // by SetCommitted

  // Touched on the executor only.
  std::unique_ptr<Shard> shard_;
  uint64_t chain_epoch_ = 0;  // that the shard goes by
  Step followed_committed_{0};
  Step told_clock_{0}, told_commit_{0};  // by AnswerWaiting
  LaneSessions sessions_;
  Tidier tidier_;
  std::vector<WaitingPull> waiting_;
  // When the one alarm for them rings, at their earliest deadline or before; it is its owner.
  absl::Time alarm_ = absl::InfiniteFuture();
  std::map<HeldPush, HeldWindow> held_;
  HeldPush next_held_ = 1;
  std::vector<CutOrder> orders_;        // not answered yet
  std::map<CutNumber, bool> answered_;  // of those ordered now
  std::map<CutNumber, Taking> taking_;
  // The last cut with files that was complete here: what an increment follows.
  CutOrder last_cut_;
  std::vector<CutFile> last_files_;
  struct ImageOrder {
    std::string folder;
    uint64_t log_segment = 0;
    std::function<void(absl::Status)> done;
  };
  std::deque<ImageOrder> images_;  // not begun
  // Async: by task and window, what waits for copies. One that is sent again takes the place of
  // what it repeats.
  std::map<std::pair<uint64_t, uint64_t>, AppliedWindow> applied_;
  std::optional<Received> received_;
  std::deque<HeldWindow> deferred_;  // async: windows that wait for snapshots to catch up
  bool retry_queued_ = false;
  bool watching_held_ = false;
  absl::Status closed_;
  SnapshotDriver driver_;  // ends before the shard
};

}  // namespace strata::server

#endif  // STRATA_SERVER_SHARD_RUNNER_H_
