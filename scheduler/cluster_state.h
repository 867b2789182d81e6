// The scheduler's only source of truth: nodes and jobs.
// Tested by tests/scheduler/cluster_sim_test.cc
// Tested by tests/scheduler/identity_test.cc
// Tested by tests/scheduler/restored_test.cc
// Tested by tests/scheduler/adopted_test.cc
#ifndef STRATA_SCHEDULER_CLUSTER_STATE_H_
#define STRATA_SCHEDULER_CLUSTER_STATE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/strata/control.pb.h"
#include "scheduler/adoption.h"
#include "scheduler/job/machine.h"
#include "scheduler/nodes/hearing.h"
#include "scheduler/nodes/membership.h"
#include "scheduler/nodes/room.h"
#include "scheduler/state/state.pb.h"
#include "scheduler/store/checkpoint_locks.h"
#include "scheduler/store/event_log.h"
#include "scheduler/store/metadata_store.h"

namespace strata::scheduler {

// A pure state machine: one thread at a time, no clock, no disk, no waiting. Time never goes back.
//
// The rule of its driver: after every event, append TakeChanges() to the metadata store before
// anything else of this object is shown to anybody (replies, directives, file work). A state
// rebuilt by Restore from what was appended goes on where this one was. The exception:
// took_times_alone().
class ClusterState {
 public:
  // A job, checked and with its defaults resolved, and what was found in its checkpoint directory.
  struct Submission {
    std::string request_id;
    TrainingJob job;
    bool resume = false;
    bool overwrite = false;
    std::vector<CheckpointRecord> complete;  // to resume from, ascending by step
    std::string damaged = "";                // what is newer and is not whole; empty: nothing
    std::vector<RemovalRecord> replaced;     // as JobSpecRecord's
    std::optional<Schema> init_schema;       // likewise
    std::optional<CheckpointIdentity> init;  // likewise
    std::string init_sample_weight;          // likewise
    std::optional<Schema> resume_schema;     // likewise
    JobUid uid;                              // drawn for this job
    std::string held_up;       // why it must wait for the lock of its directory; empty: it has it
    uint64_t first_cut = 0;    // as LockNews's
    uint64_t looked_lock = 0;  // number of the lock under which that was found; 0: none
    std::string owner = "";    // as JobSpecRecord's
  };
  // A node that is not alive and has no job is forgotten after this long.
  static constexpr absl::Duration kForgetAfter = absl::Hours(24);
  // Finished jobs are kept, the newest this many.
  static constexpr size_t kMaxFinishedJobs = 1000;
  // Where more are finished, also those go that have files to remove or servers that may write.
  static constexpr size_t kMaxBusyJobs = 2 * kMaxFinishedJobs;
  // UIDs of ended jobs are kept beyond that, the newest this many: what a node that comes late
  // still has of one is removed. What it has of a job that nobody knows is kept, and told.
  static constexpr size_t kMaxEnded = 65536;
  // Ids of starts of the scheduler, the newest.
  static constexpr size_t kMaxStarts = 4096;
  // Of the metadata.
  static constexpr uint32_t kFormat = 3;

  // `drawn`: the cluster's id if its store is new. `transient`: the store ends with the process.
  ClusterState(absl::Duration lease, ClusterId drawn, bool transient = false);

  // DATA_LOSS names a record that cannot be read, UNIMPLEMENTED a format of another version. To be
  // called once, before any event. When the first lease may lapse: Membership::Restore.
  absl::Status Restore(const std::map<std::string, std::string>& records, absl::Time now);

  // Events.
  // A node's report; Membership's errors. PERMISSION_DENIED: the node is of another cluster, which
  // the text names with this one, or knows what only later records do; nothing has changed. Returns
  // its session.
  absl::StatusOr<uint64_t> Report(const NodeReport& report, absl::Time now);
  // What Submit would say before the checkpoint directory is touched: nothing (go on), the job of
  // the same request, ALREADY_EXISTS, or the error of CheckGpus (scheduler/nodes/placement.h) or of
  // CheckRoom (scheduler/nodes/room.h).
  absl::StatusOr<std::optional<uint64_t>> CheckSubmit(const std::string& request_id,
                                                      const TrainingJob& job) const;
  absl::StatusOr<uint64_t> Submit(Submission submission, absl::Time now);
  absl::Status Cancel(uint64_t job, absl::Time now);
  // Of a job that there is: who may decide about it; none: everybody.
  std::set<std::string> OwnersOf(uint64_t job) const { return jobs_.at(job)->Owners(); }
  // Returns a ticket for CheckpointResult. NOT_FOUND, FAILED_PRECONDITION.
  absl::StatusOr<uint64_t> WantCheckpoint(uint64_t job, absl::Time now);
  void ManifestWritten(uint64_t job, uint64_t cut, const absl::Status& status, absl::Time now);
  void RunEnded(uint64_t job, const absl::Status& status, absl::Time now);
  // Or given up on.
  void Removed(uint64_t job, uint64_t number, const absl::Status& status, absl::Time now);
  // As far as that went.
  void LeftoversRemoved(uint64_t job, uint64_t number, const absl::Status& status, absl::Time now);
  // Of the lock of a job's checkpoint directory.
  void OnLock(const LockNews& news, absl::Time now);
  // How a job's directory is to be looked at, now that it has that lock, before OnLock says so.
  // Nothing: it need not be.
  struct DirectoryLook {
    SubmitRequest request;  // as it was submitted
    JobIdentity identity;
    JobMachine::Looks looks = JobMachine::Looks::kForAny;
    std::vector<RemovalRecord> replaced = {};  // as JobSpecRecord's
  };
  std::optional<DirectoryLook> LooksAgain(uint64_t job, uint64_t lock) const;
  // What lies there. An error ends the job.
  void FoundAgain(uint64_t job, absl::StatusOr<FoundInDirectory> found, absl::Time now);
  // After Restore: no job begins before OnLock says that its lock is held.
  void AwaitLocks();
  // To be called 16 times per lease and more, by the way that reports take: how nodes' silence is
  // counted (Membership::Listen).
  void Tick(absl::Time now);
  // Reports are refused: what the driver could not append stands in their way.
  void Deaf() { members_.Deaf(); }
  // The driver is about to stop: what has passed is in the next TakeChanges().
  void KeepTimes(absl::Time now);
  // The scheduler began to serve: worth an event, and a term of its own. `drawn`: for this start.
  void Started(absl::Time now, StartId drawn);
  // The records come from an older copy: to be called instead of Started. Until GoOn, Report does
  // nothing but listen and is UNAVAILABLE, Tick does nothing, there is no file work, and no other
  // event may come.
  void Hear(absl::Time now);
  // Once HeardEnough: numbers go on above all that were heard of, jobs by what is in `found` (by
  // job, as JobMachine::GoOnFromCopy has it), and nothing is removed that only the copy says is to
  // be.
  using FoundByJob = std::map<uint64_t, absl::StatusOr<FoundInDirectory>>;
  void GoOn(const FoundByJob& found, absl::Time now, StartId drawn);
  // A job that servers keep and these records do not know: its spec, if it can be adopted as far as
  // can be told without a look at its checkpoints. ALREADY_EXISTS: it is known, or its name is
  // taken. NOT_FOUND, FAILED_PRECONDITION: as AgreedNote, and as CheckSubmit.
  absl::StatusOr<TrainingJob> CheckAdopt(const std::string& job_uid) const;
  // What the driver found and took in its checkpoint directory; as Submission's.
  struct AdoptionFiles {
    std::vector<CheckpointRecord> own;
    std::string damaged = "";
    absl::Status other_format = absl::OkStatus();  // as OwnCheckpoints'
    TrainedData data = {};                         // as AdoptionRecord's
    std::string held_up;
    uint64_t first_cut = 0;
    uint64_t looked_lock = 0;
    std::string owner = "";
  };
  // Of each copy that is meant: who may decide about it, as its server noted; none: not known.
  std::vector<std::set<std::string>> OwnersOfKept(const SettleQuarantineRequest& request) const;
  // The job is this cluster's again. Errors of CheckAdopt and JudgeAdoption: nothing has changed.
  absl::StatusOr<SettleQuarantineReply> Adopt(const std::string& job_uid, AdoptionFiles files,
                                              absl::Time now);
  // PURGE of SettleQuarantine of control.proto. Copies whose removal is begun are Purging until
  // their server speaks of them no more; a later process of the scheduler has to be asked again.
  absl::StatusOr<SettleQuarantineReply> SettleQuarantine(const SettleQuarantineRequest& request,
                                                         absl::Time now);

  // Outcomes.
  // Records that differ from those last taken.
  std::vector<MetadataChange> TakeChanges();
  // Whether those differ in durations and free disk alone: each tells again what those before it
  // told, so what could not be appended may be dropped, and nobody waits for it.
  bool took_times_alone() const { return took_times_alone_; }
  std::vector<FileWork> TakeFileWork();

  // Queries.
  // What the node of this session is to do. Its version grows when anything in it changes.
  // `version_only`: the bulk (specs, indexes) is left out. UNAUTHENTICATED: fenced.
  absl::StatusOr<NodeDirective> Directive(absl::string_view name, uint64_t session,
                                          bool version_only);
  // By number, or by name (the newest). NOT_FOUND.
  absl::StatusOr<uint64_t> FindJob(const JobRef& ref) const;
  JobStatus Status(uint64_t job, absl::Time now) const;
  ListJobsReply Jobs(absl::Time now) const;
  ClusterStatus Cluster() const;
  JobShards Shards(uint64_t job) const;
  // `job` 0: all.
  GetEventsReply Events(uint64_t after_sequence, uint64_t job, int64_t since_unix_ms) const {
    return events_.Since(after_sequence, job, since_unix_ms);
  }
  // Once: the ticket's outcome, when there is one.
  std::optional<absl::StatusOr<CheckpointRecord>> CheckpointResult(uint64_t job, uint64_t ticket);
  // Nobody waits for it any more.
  void ForgetTicket(uint64_t job, uint64_t ticket);

  // Jobs that write checkpoints, or still remove some; and those of `also` that ever did.
  std::vector<LockedJob> LockedJobs(const std::multiset<uint64_t>& also) const;
  bool hearing() const { return hearing_.has_value(); }
  // What is said then to whoever asks.
  static absl::Status OnlyHears();
  bool HeardEnough(absl::Time now) const { return hearing_ && hearing_->Over(now); }
  // Jobs that go on, and where their checkpoints are.
  struct JobFolder {
    uint64_t job = 0;
    JobIdentity identity;
    std::string folder;
    std::vector<RemovalRecord> replaced = {};  // as JobSpecRecord's
  };
  std::vector<JobFolder> CheckpointFolders() const;
  bool Purging(const std::string& node, const std::string& job_uid) const {
    return purging_.count({node, job_uid}) > 0;
  }
  // Copies in quarantine.
  uint64_t quarantined() const;
  // Jobs whose records change no more, and removals of copies that servers have not confirmed.
  size_t settled() const { return settled_.size(); }
  size_t purging() const { return purging_.size(); }
  const Membership& members() const { return members_; }
  const std::string& cluster_id() const { return numbers_.cluster_id(); }
  uint64_t term() const { return numbers_.term(); }
  // The start that had a term, as far as these records know; "": none.
  std::string StartOf(uint64_t term) const;
  const std::map<uint64_t, std::string>& starts() const { return starts_; }
  const std::map<uint64_t, std::unique_ptr<JobMachine>>& jobs() const { return jobs_; }

 private:
  // A job of a node's report or directive: number and UID.
  using JobName = std::pair<uint64_t, std::string>;
  // A copy that a user has removed: server, job UID. Recorded until the server has it no more.
  using Purge = std::pair<std::string, std::string>;
  // What a node was last told. Not recorded: versions go on from what nodes say they saw.
  struct Told {
    uint64_t session = 0;
    uint64_t version = 0;
    std::string fingerprint;                     // of the directive without bulk
    std::map<JobName, uint64_t> closed;          // version that first told to close it
    std::map<uint64_t, uint64_t> all_done;       // job: version that first said all tasks are done
    std::vector<JobName> reported;               // jobs that it spoke of last
    std::map<std::string, std::string> foreign;  // job UID: its cluster, another one
    std::vector<KeptCopy> quarantined;
  };

  void AdvanceJobs(absl::Time now);
  std::string DrawLogId();
  // Of all servers, with what all jobs but `without` have reserved (0: all).
  Rooms RoomsBut(uint64_t without) const;
  void AddReserved(const JobMachine& job, const Rooms& rooms, JobStatus& out) const;
  void NoteAdmission(const Node& node, const Membership::Admission& admission, absl::Time now);
  void NoteWritersLeft(const NodeReport& report, bool moved);
  bool LockIsToBeGivenBack(const JobMachine& job) const;
  void ConfirmClosed(const NodeReport& report, Told& told);
  std::vector<KeptCopy> CopiesOf(const std::string& job_uid) const;
  const JobMachine* Living(const std::string& job_uid) const;
  uint64_t NumberFor(uint64_t kept);
  void EndPurges(const NodeReport& report);
  // Of the record of a purge; a key of another record is of none.
  static std::string PurgeKey(const Purge& purge);
  static std::optional<Purge> PurgeOf(absl::string_view key);
  // Of the record of a start; 0: it is another one's.
  static uint64_t TermOf(absl::string_view key);
  // The machine of this very job; null: none.
  JobMachine* Machine(uint64_t job, const std::string& uid) const;
  absl::Status CheckCluster(const NodeReport& report) const;
  std::string WhatIsLater(const NodeReport& report) const;
  absl::Status CheckStart(const NodeReport& report) const;
  void PutStarts(std::vector<MetadataChange>& out);
  void AddUnwanted(const Node& node, const Told& told, const JobName& name,
                   NodeDirective& out) const;
  NodeDirective Build(const Node& node, const Told& told, bool bulk) const;
  void Refresh(const Node& node, Told& told);
  void Put(const std::string& key, std::string value, std::vector<MetadataChange>& out);
  // A record of which `clear` takes out what passes and is told again: durations, free disk. How
  // many changes are of that alone: 0 or 1.
  template <typename Record, typename Clear>
  size_t PutPassing(const std::string& key, Record record, const Clear& clear,
                    std::vector<MetadataChange>& out);
  void DropOldJobs();
  void NoteEnded(const JobMachine& job);
  absl::Status RestoreJobs(const std::map<std::string, std::string>& records, absl::Time now);

  const bool transient_;
  Membership members_;
  ClusterRecord numbers_;
  std::map<uint64_t, std::string> starts_;       // by term
  std::map<std::string, EndedRecord> ended_;     // by UID
  std::map<uint64_t, std::string> ended_order_;  // by sequence: UID
  EventLog events_;
  std::map<uint64_t, std::unique_ptr<JobMachine>> jobs_;
  std::map<std::string, Told, std::less<>> told_;  // by node
  std::map<std::string, std::string> stored_;      // records as last taken
  // Jobs that LockedJobs has named as ones that leave writers. Not stored: a lock that no run of
  // the scheduler gave back counts as one whose owner may be writing.
  mutable std::set<uint64_t> told_of_writers_;
  std::set<uint64_t> settled_;  // jobs whose records change no more
  std::set<Purge> purging_;
  std::optional<Hearing> hearing_;
  bool took_times_alone_ = false;
  uint64_t next_ticket_ = 1;
  uint64_t log_ids_ = 0;  // drawn since this start
};

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_CLUSTER_STATE_H_
