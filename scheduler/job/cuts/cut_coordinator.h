// Checkpoints of a job: which cuts are asked for, how far each is, what is complete.
#ifndef STRATA_SCHEDULER_JOB_CUTS_CUT_COORDINATOR_H_
#define STRATA_SCHEDULER_JOB_CUTS_CUT_COORDINATOR_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/control.pb.h"
#include "scheduler/state/state.pb.h"

namespace strata::scheduler {

// Fixed once the job's input is indexed.
struct CutConfig {
  bool bsp = true;
  uint64_t every_steps = 0;  // 0: no periodic cuts
  std::string directory;     // empty: cuts yield only a hash
  uint32_t keep = 3;
  uint32_t full_every = 1;   // every so many hold all rows
  uint64_t total_steps = 0;  // bsp
  uint32_t servers = 0;
  uint32_t partitions = 0;
  uint64_t spread = 0;  // jobs of other numbers try again at other moments
};

// A pure state machine. Rules:
//   * Bsp, periodic: multiples of every_steps are asked for ahead (two, more after a refusal), so
//   that
//     a cut's step is exactly a multiple; servers take each when their clock gets there. A refused
//     multiple is skipped.
//   * Bsp, manual: at the largest known clock + a margin that doubles with each refusal, at most
//   the
//     last step. Wanted: at exactly the step that a worker holds open. Last: at the last step,
//     asked for when training is over (its manifest then holds the last evaluation).
//   * Async: one barrier at a time, numbered; given up when a server refuses or fails it, and when
//     a lane's host or a server changes. It comes back under a new number: marks of two tries never
//     meet in one file. One that a shard had no more patience for comes back after a pause, so that
//     lanes which one slow lane holds up train for most of the time.
//   * Async: a cut is done when all servers say so, and agree on where each lane stands.
//   * A cut that the job cannot do without (wanted, last) is tried again after a pause that doubles
//     with each try, for as long as what stood in the way may pass (MayPass); async: also when a
//     shard refuses it. After kMaxFailures causes in a row that no try can mend it is given up.
//   * Periodic ones are left out while kMostUnfinished earlier ones wait to be written or removed:
//   a
//     slow file system would be further behind with each, and an end would wait for all.
//   * A step of which there is a complete checkpoint is not cut again (bsp: it would be the same).
class CutCoordinator {
 public:
  static constexpr uint32_t kLookahead = 2;
  static constexpr uint32_t kMaxLookahead = 64;
  static constexpr uint64_t kMargin = 4;
  static constexpr uint64_t kMaxMargin = uint64_t{1} << 20;
  static constexpr uint32_t kMaxFailures = 3;
  // Of manifests that are being written and of checkpoints that are being removed.
  static constexpr int kMostUnfinished = 16;
  // Async: from a refusal to the next try.
  static constexpr int64_t kPauseMs = 5'000;
  // Before the second try of a cut that the job cannot do without, and at most: on average. Each is
  // drawn from half of that to one and a half, by the job and the cut.
  static constexpr int64_t kFirstRetryMs = 1'000;
  static constexpr int64_t kMostRetryMs = 30'000;
  // Complete cuts without files whose hashes are remembered.
  static constexpr int kMaxHashes = 16;

  // An empty `book` begins. One of an earlier process goes on; what waited for a retry is due.
  CutCoordinator(CutConfig config, CutBook book);

  // Asks for the cuts that are due. `progress`: bsp: largest known clock; async: windows applied.
  // `ready`: async: a worker is there, and every server has said that all cuts so far are over: of
  // each server the next cut is the one after those that are over there. `removals`: checkpoints
  // that are no longer kept, and still there.
  void Plan(uint64_t generation, uint64_t progress, bool ready, int64_t now_ms, int removals = 0);
  // Now, also where the last cut waits for its next try: somebody may wait for this one.
  void WantManual();
  void WantAt(uint64_t step);
  // Training is over: the cut at `step` is the job's last; cuts after it are dropped.
  void WantLast(uint64_t step);

  // Servers' words on cuts, by server index; forgotten when the server's process changes.
  void Report(uint32_t server, const CutReport& report);
  void ForgetServer(uint32_t server);

  enum class Outcome { kDone, kRefused, kFailed };
  struct Result {
    Outcome outcome = Outcome::kDone;
    CutRecord cut;
    std::string message;                // kFailed, kRefused
    std::optional<uint32_t> server;     // whose word that is; nothing: nobody's
    std::vector<CheckpointFile> files;  // of servers that were done
    std::vector<LanePosition> lanes;    // async
    bool passes = false;                // kFailed, kRefused: a later try may work
    int64_t retry_ms = 0;               // until the job tries it again; 0: it can do without it
  };
  // Cuts on which enough has been said, each once. Those refused or failed are no longer pending
  // (and asked for again by Plan where the rules say so); those done wait for Writing or Complete.
  std::vector<Result> Settle(int64_t now_ms);

  // The manifest is being written.
  void Writing(uint64_t cut, const Manifest& manifest);
  // It could not be. The cut counts as failed.
  Result WritingFailed(uint64_t cut, const absl::Status& why, int64_t now_ms);
  // The cut is complete.
  void Complete(uint64_t cut, CheckpointRecord checkpoint);

  // Drops all that is being taken (not what is being written) and keeps the wishes: a new
  // generation, or async a change of hosts. Returns what was dropped, with files already there.
  std::vector<Result> Abort();
  // Training goes on (after a roll-back): nothing is last or wanted, failures are forgotten.
  void TrainingAgain();

  // The job is over: of what is being taken nobody hears any more, and what checkpoints hold of
  // tasks goes. Manifests that are being written may still be told of.
  void Over();
  // And no more.
  void WriteNoMore() { book_.clear_pending(); }

  // Complete checkpoints on disk beyond `keep`, oldest first, never that of `best_step`; no longer
  // listed.
  std::vector<CheckpointRecord> TakeExcess(uint64_t best_step);
  // Those after `step`; no longer listed.
  std::vector<CheckpointRecord> TakeAfter(uint64_t step);
  // The checkpoint in `folder` is damaged: no longer listed.
  void Forget(const std::string& folder);

  const CheckpointRecord* NewestOnDisk() const;
  // The cut that increments of this generation may follow; 0: none, write all rows.
  uint64_t BaseCut(uint64_t generation) const;
  const CheckpointRecord* AtStep(uint64_t step) const;
  // The job's last cut, once it is complete; nullptr: it is not, or training goes on.
  const CheckpointRecord* Last() const;
  const CutRecord* Find(uint64_t cut) const;
  // Async: all cuts up to it are over, complete or given up. Every directive says it, also where no
  // cut is pending: a shard that holds pushes back for one of them must let them go, or no window
  // moves that would make another cut due. It needs no record of its own: numbers are used once.
  uint64_t OverThrough() const;
  // A cut that the job cannot do without will never be.
  bool GivenUp() const { return book_.failures() >= kMaxFailures; }
  bool Idle() const { return book_.pending_size() == 0; }
  const CutBook& book() const { return book_; }
  const CutConfig& config() const { return config_; }

 private:
  CutRecord* Ask(uint64_t generation, uint64_t step);
  void PlanBsp(uint64_t generation, uint64_t clock, bool may_retry, bool periodic);
  void PlanAsync(uint64_t generation, uint64_t windows, bool may_be_periodic);
  Result Judge(const CutRecord& cut, const std::map<uint32_t, CutReport>& words) const;
  void Rearm(Result& result, int64_t now_ms);
  int64_t RetryMs(uint64_t cut) const;
  void WantAgain(const CutRecord& cut);
  void Erase(uint64_t cut);

  CutConfig config_;
  CutBook book_;
  // By cut, by server. Not recorded: servers repeat them.
  std::map<uint64_t, std::map<uint32_t, CutReport>> words_;
};

// Why the files of a cut do not make a checkpoint of `partitions` partitions; empty text if they
// do.
std::string WhatIsMissing(const std::vector<CheckpointFile>& files, uint32_t partitions);

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_JOB_CUTS_CUT_COORDINATOR_H_
