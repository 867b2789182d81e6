// One job from submission to its end: phases, nodes, tasks, cuts, recovery.
// Tested by tests/scheduler/cluster_sim_test.cc
// Tested by tests/scheduler/job/machine_cuts_test.cc
// Tested by tests/scheduler/job/machine_lanes_test.cc
// Tested by tests/scheduler/job/machine_status_test.cc
// Tested by tests/scheduler/job/machine_recovery_test.cc
// Tested by tests/scheduler/job/machine_chains_test.cc
// Tested by tests/scheduler/restored_test.cc
// Tested by tests/scheduler/adopted_test.cc
// Tested by tests/scheduler/job/machine_room_test.cc
#ifndef STRATA_SCHEDULER_JOB_MACHINE_H_
#define STRATA_SCHEDULER_JOB_MACHINE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/job/memory_need.h"
#include "proto/strata/control.pb.h"
#include "scheduler/job/chains/chain_machine.h"
#include "scheduler/job/chains/copy_refusals.h"
#include "scheduler/job/chains/copy_view.h"
#include "scheduler/job/concerns/concerns.h"
#include "scheduler/job/concerns/job_view.h"
#include "scheduler/job/concerns/slow_workers.h"
#include "scheduler/job/concerns/stuck.h"
#include "scheduler/job/cuts/cut_coordinator.h"
#include "scheduler/job/cuts/cut_progress.h"
#include "scheduler/job/events.h"
#include "scheduler/job/file_work.h"
#include "scheduler/job/recovery_coordinator.h"
#include "scheduler/job/task_ledger.h"
#include "scheduler/nodes/membership.h"
#include "scheduler/nodes/placement.h"
#include "scheduler/nodes/room.h"
#include "scheduler/state/state.pb.h"

namespace strata::scheduler {

// What a look into a job's checkpoint directory found, under the lock that it has there.
struct FoundInDirectory {
  uint64_t lock = 0;                            // its number
  bool keep = false;                            // what was known stands
  std::vector<CheckpointRecord> complete = {};  // to begin from, ascending by step
  std::string damaged = "";                     // what is newer and is not whole; empty: nothing
  // FAILED_PRECONDITION: among that is a checkpoint of another version, and what to do.
  absl::Status other_format = absl::OkStatus();
  std::vector<RemovalRecord> replaced = {};
  std::optional<Schema> resume_schema = std::nullopt;  // of the newest that is resumed from
};

// What a job may take now, besides what it has: made by ClusterState from Membership and all jobs.
struct ClusterView {
  const Membership* members = nullptr;
  // Unfinished jobs of each node, this one not counted.
  const std::map<std::string, uint32_t>* jobs_of_node = nullptr;
  // The rooms of all servers, without what this job has reserved; made when a server is chosen.
  std::function<Rooms()> rooms;
  // 32 hexadecimal digits that no other copy of a shard has: made when one joins.
  std::function<std::string()> draw_log_id;
};

// A pure state machine, owned and called by ClusterState. After every event it calls Advance, which
// does all that is due; Advance is idempotent. What must survive is in the records.
class JobMachine {
 public:
  static constexpr int kMaxConditions = 200;
  // Tasks ahead of an async lane: as many as it does in this time, at least two.
  static constexpr absl::Duration kAhead = absl::Seconds(60);
  // What has passed is stored so often at least: more is not lost with a run of the scheduler.
  static constexpr absl::Duration kKeepTimes = absl::Seconds(10);

  // A new job of the cluster; `complete` are the checkpoints that it resumes from, ascending
  // (empty: none).
  JobMachine(JobSpecRecord spec, std::string cluster_id, std::vector<CheckpointRecord> complete,
             absl::Time now);
  // From its records. `index`, `ledger` may be absent.
  JobMachine(JobSpecRecord spec, std::string cluster_id, JobStateRecord state,
             std::optional<JobIndexRecord> index, std::optional<LedgerRecord> ledger,
             absl::Time now);

  void Advance(const ClusterView& cluster, absl::Time now);
  // The same of a job that is over.
  void AdvanceOver(absl::Duration lease, absl::Time now);
  // Words of a node about this job. Those of a process that has no part in it do nothing.
  void OnServerReport(const Node& node, const ServerJobReport& report, absl::Time now);
  void OnWorkerReport(const Node& node, const WorkerJobReport& report, bool seen_all_done,
                      absl::Time now);
  // Removed or emptied, or given up on: not to be tried again. Before training it is an earlier
  // job's, and the error of one that is still there ends this job. ALREADY_EXISTS: another one than
  // was meant is there, and stays.
  void OnRemoved(uint64_t number, const absl::Status& status, absl::Time now);
  void OnManifestWritten(uint64_t cut, const absl::Status& status, absl::Time now);
  // The manifest of the run's last checkpoint says where it ended, or cannot.
  void OnRunEnded(const absl::Status& status, absl::Time now);
  // The look of that number was done, and those before it. What it had to leave goes with the next
  // checkpoint; at the job's end it is tried again where that may help.
  void OnLeftoversRemoved(uint64_t number, const absl::Status& status, absl::Time now);
  void Cancel(absl::Time now);
  // After every change of what counts as training, and now and then: puts into the record what has
  // passed. Of a job that is over nothing passes.
  void KeepTimes(absl::Time now);
  // The lock of the checkpoint directory. Until it has it, the job does not begin; `why` says what
  // it waits for.
  void AwaitLock(std::string why) { held_up_ = std::move(why); }
  void LockHeld();
  // Cuts have numbers from there on. To be called before there are any.
  void CountCutsFrom(uint64_t first);
  // Whether the directory is to be looked at (again), now that it has the lock of that number: what
  // was found under another one, or without any, may have changed since. Not once servers were told
  // what they begin from: who takes the lock from such a job ends it.
  bool LooksAgain(uint64_t lock) const;
  // A new job: what it was given was found under that lock; 0: without one.
  void LookedUnder(uint64_t lock) { state_.set_looked_lock(lock); }
  // Newer checkpoints that are not whole stand beside what the job goes on from; for people. Empty:
  // there are none. Told once.
  void TellDamaged(absl::string_view damaged, absl::Time now);
  // What lies in the directory once it has the lock: what the owner before wrote last is among it.
  // To be called before it begins. A checkpoint of another version ends it where it needs one.
  void FoundAgain(FoundInDirectory found, absl::Time now);
  // A look is to be for checkpoints of its own: alone, or where there are any.
  enum class Looks : uint8_t { kForAny, kForOwn, kForOwnFirst };
  Looks LooksFor() const;
  // Another job has it. One that had begun writes nothing there any more.
  void LockGone(absl::string_view why, absl::Time now);
  // What lies in the directory is of no use to it: it ends, if it has not begun.
  void DoesNotFit(absl::string_view why, absl::Time now);
  // It cannot be taken or renewed now: what is to be written waits.
  void LockStalls(absl::string_view why, absl::Time now);
  // The result is taken with TakeCheckpointResult(ticket). FAILED_PRECONDITION: not training, or no
  // directory to write to.
  absl::Status WantCheckpoint(uint64_t ticket);
  std::optional<absl::StatusOr<CheckpointRecord>> TakeCheckpointResult(uint64_t ticket);
  // Nobody will take its result.
  void ForgetTicket(uint64_t ticket);
  // Those without a result, and results that were not taken.
  size_t tickets() const { return tickets_.size() + ticket_results_.size(); }
  void ConfirmClosed(absl::string_view node);
  // A server has files of the job, and may write more; or it has nothing that does.
  void Writes(absl::string_view server, bool writes);
  // A process of that name which held the job is gone from sight, and may live.
  void MayBeWrittenBy(absl::string_view server);
  // The records come from an older copy: nothing is removed or written on their word, and a job
  // that goes on begins `generation` (above all that were ever given out), with chains from
  // `map_epoch` on (likewise, as far as servers were heard), from the newest checkpoint of `found`
  // (its own that are there). An error ends it: there is a newer one, which it may not pass over.
  // Before any other event.
  void GoOnFromCopy(uint64_t generation, uint64_t map_epoch,
                    const absl::StatusOr<FoundInDirectory>& found, absl::Time now);

  // The job was adopted, and its copies on servers are kept as they are: until it trains, and after
  // that only if it ended before.
  bool LeavesCopies() const;
  void Adopted(absl::string_view how, absl::Time now) { Say("Adopted", how, now); }
  // Adds what `node` is to do for this job, if anything; the bulk (spec, index) only where wanted.
  void AddServerDirective(const Membership& members, const Node& node, bool bulk,
                          NodeDirective& out) const;
  void AddWorkerDirective(const Membership& members, const Node& node, bool bulk,
                          NodeDirective& out) const;
  JobStatus Status(absl::Time now) const;
  // Who may decide about it, as JobStatus.owners says it; none: everybody.
  std::set<std::string> Owners() const;
  JobShards Shards(const Membership& members) const;
  // What happened since the last call.
  std::vector<JobEvent> TakeEvents();

  bool over() const { return state_.phase() == OVER; }
  // No server was told yet what it begins from: nothing was restored, written or replaced.
  bool IsToBegin() const { return state_.phase() == WAITING || state_.phase() == INDEXING; }
  uint64_t id() const { return spec_.job(); }
  const JobSpecRecord& spec() const { return spec_; }
  const JobStateRecord& state() const { return state_; }
  const std::optional<JobIndexRecord>& index() const { return index_; }
  // The state with its parts, ready to be stored; nullptr ledger: none.
  JobStateRecord StateRecord() const;
  // Takes out what KeepTimes puts in.
  static void ClearTimes(JobStateRecord& record);
  const LedgerRecord* ledger() const { return ledger_ ? &ledger_->record() : nullptr; }
  std::vector<FileWork> TakeFileWork();
  bool Hosts(absl::string_view node) const;
  // It is not over, and some of its shards have fewer copies than they are to have.
  bool LacksCopies() const;
  // Servers that hold its shards, a name for each copy of the shards of one of its servers.
  std::vector<std::string> Holders() const;
  // Whether it writes, or may remove, checkpoints: its lock is not to be given back yet.
  bool UsesCheckpoints() const;
  // The job is over, and servers may be writing: they have not said yet that they have closed it.
  bool ServersClose() const;
  // The same, or one lost its place, or its name, of which nobody hears.
  bool LeavesWriters() const { return over() && (ServersClose() || state_.left_writers()); }
  // Whether it has rows there: until the job is over, and the server has dropped it.
  bool KeepsRoomOn(absl::string_view server) const;
  // Adds what this job keeps of those servers.
  void Reserve(Rooms& rooms) const;

 private:
  struct ServerView {  // by server slot; repeated by servers, so not recorded
    uint64_t session = 0;
    ServerJobReport last;
    std::string unread, waits;  // its words: on the checkpoint to start from; why it tries again
    ChainView chain = {};       // where the slot has copies
  };
  struct WorkerView {  // by worker slot
    WorkerJobReport last;
    bool finished = false;
    bool ready = false;  // as WorkerJobReport's
  };

  const JobSpec& job() const { return spec_.spec().spec(); }
  bool bsp() const { return job().training().mode() == "bsp"; }
  uint32_t lanes() const { return job().training().lanes(); }

  // machine.cc
  void MakeParts();
  void CheckEnd(absl::Time now);
  void PlaceOnServers(const ClusterView& cluster, absl::Time now);
  bool TrainingFinished() const;
  void Run(const ClusterView& cluster, absl::Time now);
  void End(JobState state, absl::string_view reason, absl::string_view message, absl::Time now);
  void Say(absl::string_view reason, absl::string_view message, absl::Time now);
  void SayAgain(absl::string_view reason, absl::string_view message, absl::Time now);

  // machine_start.cc
  // What of the files the job reads, by the checkpoint that it resumes from; needs the index.
  void FindNewFiles();
  const InputIndex& Reads() const { return new_files_ ? *new_files_ : index_->train(); }
  // A checkpoint in whose place files count that the job does not read any more.
  bool IsBeforeNewFiles(const CheckpointRecord& checkpoint) const;
  void EndBeforeNewFiles(const CheckpointRecord& checkpoint, absl::string_view why, absl::Time now);
  void MakeJobSchema();
  // Those of checkpoints, which an earlier version may have recorded.
  void CompleteSchemas();
  void CheckStart(absl::Time now);
  // Of those that are on disk; "": there is none.
  std::string NewestFolder() const;
  // Unless it stands already, or is empty.
  void SayOnce(absl::string_view reason, absl::string_view message, absl::Time now);

  // machine_end.cc
  void Succeed(absl::Time now);
  bool EndIsKept(const CheckpointRecord& last, absl::Time now);

  // machine_over.cc
  void DropBulk();
  void CompleteAfterEnd();

  // machine_room.cc
  const ServerNeed& Need(uint32_t shards) const;
  const ServerNeed& NeedNow(const ClusterView& cluster) const;
  std::vector<std::pair<std::string, const ServerJobReport*>> LastOfCopies() const;
  void ReserveOn(const ServerNeed& need, const ServerJobReport& last, ServerRoom& room) const;
  absl::StatusOr<std::vector<std::string>> FreeServers(const ClusterView& cluster,
                                                       uint32_t count) const;
  void WaitForServers(const ClusterView& cluster, const absl::Status& why, absl::Time now);
  void EndWithoutRoom(const ClusterView& cluster, absl::Time now);
  void SayGuess(const ClusterView& cluster, absl::Time now);

  // machine_workers.cc
  std::vector<Candidate> Candidates(const ClusterView& cluster, NodeRole role) const;
  void ChooseFirstWorkers(const ClusterView& cluster, absl::Time now);
  void LeaveWorker(int slot);
  void FillWorkers(const ClusterView& cluster, absl::Time now);

  // machine_adopted.cc
  bool JustAdopted() const { return state_.has_adoption() && state_.started_unix_ms() == 0; }
  bool GoesOnWithServers() const;
  bool WaitsFor(absl::string_view server) const;
  // For users: what to do where servers of an adopted job are not there.
  std::string DescribeMissing(absl::string_view why) const;
  void GoOnWithServers(const ClusterView& cluster, absl::Time now);
  void CheckInput(absl::Time now);
  uint64_t GenerationAfter() const;

  // machine_hosts.cc
  std::vector<uint64_t> WantedHosts() const;
  std::vector<uint64_t> HostsOfLanes() const;
  std::vector<std::vector<uint32_t>> LanesOfSlots() const;
  bool ServersFollow() const;
  void SettleHosts();

  // machine_lanes.cc
  void LanesMoved(const std::vector<uint64_t>& before, const std::vector<uint64_t>& after);
  uint64_t MostLocalSteps() const;
  bool Warm();
  void CloseTasks(const WorkerJobReport& report);
  TaskCounts CountedLines() const;
  void HandOutTasks(absl::Time now);

  // machine_recovery.cc
  bool WatchServers(const ClusterView& cluster, absl::Time now);
  void SayTroubles(absl::string_view node,
                   const google::protobuf::RepeatedPtrField<Trouble>& reported, absl::Time now);
  void ServerBeganAgain(int slot);
  void ReplaceServer(const ClusterView& cluster, int slot, absl::Time now);
  bool WatchReads(const ClusterView& cluster, absl::Time now);
  int OtherServer(const Membership& members, int slot, bool* all_read) const;
  void ReadAgain(const ClusterView& cluster, int slot, absl::Time now);
  void RollBack(absl::string_view why, absl::Time now);
  void NextGeneration(const CheckpointRecord* from, absl::Time now);
  void StartGeneration(const CheckpointRecord* from);
  bool ServersOpen(const Membership& members) const;
  static bool IsOpen(const Membership& members, const std::string& server, uint64_t opened_session);

  // machine_chains.cc
  bool Replicated() const { return job().storage().replicas() > 1; }
  std::string ShardsOf(int slot) const;
  // For people: what the job would go back to.
  std::string DescribeStart() const;
  void BeginChain(const ClusterView& cluster, const std::vector<std::string>& servers, int slot,
                  absl::Time now);
  ChainFacts ChainFactsOf(const ClusterView& cluster, int slot, absl::Time now);
  void Configure(const Membership& members, int slot, const ChainChange& change, absl::Time now);
  void Promote(int slot);
  bool WatchCopies(const ClusterView& cluster, int slot, absl::Time now,
                   std::vector<std::string>& lost);
  bool CopiesAreLost(int slot, absl::Time now);
  bool CopiesAreAway(const ClusterView& cluster, int slot, absl::Time now,
                     std::vector<std::string>& lost);
  void TellShort(const ClusterView& cluster, absl::Time now);
  int SlotOf(const Node& node, const ServerJobReport& report) const;
  google::protobuf::RepeatedPtrField<Trouble> TroublesOf(const std::string& node) const;
  bool OnCopyReport(int slot, const Node& node, const ServerJobReport& report, absl::Time now);
  absl::Duration Patience(absl::Duration lease) const;

  // machine_copies.cc
  std::vector<Candidate> CopyCandidates(const ClusterView& cluster) const;
  absl::StatusOr<std::vector<std::vector<std::string>>> FreeChains(
      const ClusterView& cluster) const;
  std::vector<std::string> FreeChain(const ClusterView& cluster, int slot, absl::Time now) const;
  std::optional<CopyRecord> CopyCandidate(const ClusterView& cluster, int slot, absl::Time now);
  bool HasFailed(const ClusterView& cluster, const std::string& server, absl::Time now) const;
  // For people: why no server takes a copy that is missing.
  std::string DescribeLack(const ClusterView& cluster, int slot, absl::Time now) const;

  // machine_concerns.cc
  JobView ViewOf(const Membership& members) const;
  void LookAround(const ClusterView& cluster, absl::Time now);

  // machine_cuts.cc
  bool EarlierCutsAreOver() const;
  void TakeCuts(absl::Time now);
  void FinishCut(const CutCoordinator::Result& result, absl::Time now);
  std::string DescribeFailure(const CutCoordinator::Result& result) const;
  void DropCut(const CutCoordinator::Result& result, absl::Time now);
  uint64_t LookForLeftovers(std::set<std::string> folders);
  void AbortCuts();
  FileWork WorkOf(const RemovalRecord& removal) const;
  void Remove(RemovalRecord removal);
  void Remove(const CheckpointRecord& checkpoint);
  bool EarlierAreReplaced();
  void CompleteCut(uint64_t cut, CheckpointRecord checkpoint, absl::Time now);
  void AnswerManual(const absl::StatusOr<CheckpointRecord>& result);

  // machine_status.cc
  void AddSlotDirective(const Membership& members, int slot, int place, bool bulk,
                        NodeDirective& out) const;
  void AddHeadDirective(ServerJobDirective& d) const;
  uint64_t RoutingEpoch() const {
    return state_.routing_epoch() == 0 ? state_.map_epoch() : state_.routing_epoch();
  }
  // A directive's part that says which job, and which generation.
  template <typename Directive>
  void Name(Directive* d) const;
  WorkerCounters Counted() const;
  uint64_t Progress() const;
  // The same for those who watch: bsp, not before the newest checkpoint, though a scheduler that
  // has just begun has not heard every server.
  uint64_t KnownStep() const;
  // Where the server serves this generation; empty: it does not.
  std::string OpenAddress(const Membership& members, const ServerSlot& slot) const;
  uint64_t ExamplesAt(uint64_t step, uint64_t bad_lines) const;
  void FillRates(JobStatus& out) const;
  bool Trains() const;
  int64_t TrainMs(absl::Time now) const;

  JobSpecRecord spec_;
  std::string cluster_id_;
  JobStateRecord state_;
  std::optional<JobIndexRecord> index_;
  std::optional<TaskLedger> ledger_;    // async, once indexed
  std::optional<CutCoordinator> cuts_;  // once indexed
  CutProgress writing_;
  std::set<std::string, std::less<>> stopped_;  // servers that write no more; once it is over
  std::set<std::string> given_up_in_;  // folders of cuts given up since the last complete one
  uint64_t looks_ = 0;                 // for leftovers that were asked for
  struct {
    std::optional<absl::Time> since;  // when the end was seen
    uint64_t number = 0;              // of the look that was asked for last; 0: of none
    int failed = 0;
    absl::Time next;  // not before
  } last_look_;       // of a job that is over
  struct {
    bool asked = false;
    bool settled = false;  // it is kept, or nothing could be done
    int failed = 0;
    absl::Time next;  // not before
  } end_;             // of a run, in its last checkpoint
  RecoveryCoordinator recovery_;
  std::vector<ServerView> servers_;
  std::vector<WorkerView> workers_;
  JobEvents events_;
  std::vector<FileWork> work_;
  std::vector<uint64_t> tickets_;
  std::map<uint64_t, absl::StatusOr<CheckpointRecord>> ticket_results_;
  std::string held_up_;                    // why it does not begin; empty: it may
  std::optional<absl::Time> train_since_;  // train_ms counts up to there, while it trains
  absl::Time kept_;                        // last KeepTimes
  absl::Time rate_since_;
  uint64_t rate_closed_ = 0;
  std::optional<InputIndex> new_files_;  // of the index; none: the job reads all
  uint64_t index_fingerprint_ = 0;       // once indexed
  Schema schema_;                        // likewise
  RestorePlan restore_plan_;             // likewise, with spec.model.initFrom
  absl::Time reread_;                    // when a bad reader may try again
  FailedCopies failed_copies_;
  SlowWorkers slow_workers_;
  Concerns concerns_;
  StuckWatch stuck_;
  // What Need said last, and of what: asked for again with every report while a job waits.
  mutable ServerNeed need_;
  mutable uint32_t need_shards_ = 0;
  mutable bool need_indexed_ = false;
  struct {
    std::optional<absl::Time> looked;
    absl::Duration seen;  // how long no server that is known could ever take the job
  } no_room_;
};

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_JOB_MACHINE_H_
