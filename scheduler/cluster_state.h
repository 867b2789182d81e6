// The scheduler's only source of truth: nodes and jobs.
// Tested by tests/scheduler/cluster_sim_test.cc
#ifndef STRATA_SCHEDULER_CLUSTER_STATE_H_
#define STRATA_SCHEDULER_CLUSTER_STATE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/strata/control.pb.h"
#include "scheduler/job/machine.h"
#include "scheduler/nodes/membership.h"
#include "scheduler/state/state.pb.h"
#include "scheduler/store/event_log.h"
#include "scheduler/store/metadata_store.h"

namespace strata::scheduler {

// A pure state machine: one thread at a time, no clock, no disk, no waiting. Time never goes back.
//
// The rule of its driver: after every event, append TakeChanges() to the metadata store before
// anything else of this object is shown to anybody (replies, directives, file work). A state
// rebuilt by Restore from what was appended goes on where this one was.
class ClusterState {
 public:
  // A job, checked and with its defaults resolved, and what was found in its checkpoint directory.
  struct Submission {
    std::string request_id;
    TrainingJob job;
    bool resume = false;
    std::vector<CheckpointRecord> complete;  // to resume from, ascending by step
    std::vector<std::string> replaced;       // folders to remove before training begins
  };
  // A node that is not alive and has no job is forgotten after this long.
  static constexpr absl::Duration kForgetAfter = absl::Hours(24);
  // Finished jobs are kept, the newest this many.
  static constexpr size_t kMaxFinishedJobs = 1000;

  explicit ClusterState(absl::Duration lease) : members_(lease) {}

  // DATA_LOSS names a record that cannot be read. To be called once, before any event. When the
  // first lease may lapse: Membership::Restore.
  absl::Status Restore(const std::map<std::string, std::string>& records, absl::Time now);

  // Events.
  // A node's report; Membership's errors. Returns its session.
  absl::StatusOr<uint64_t> Report(const NodeReport& report, absl::Time now);
  // What Submit would say before the checkpoint directory is touched: nothing (go on), the job of
  // the same request, ALREADY_EXISTS, or CheckGpus' error (scheduler/nodes/placement.h).
  absl::StatusOr<std::optional<uint64_t>> CheckSubmit(const std::string& request_id,
                                                      const TrainingJob& job) const;
  absl::StatusOr<uint64_t> Submit(Submission submission, absl::Time now);
  absl::Status Cancel(uint64_t job, absl::Time now);
  // Returns a ticket for CheckpointResult. NOT_FOUND, FAILED_PRECONDITION.
  absl::StatusOr<uint64_t> WantCheckpoint(uint64_t job, absl::Time now);
  void ManifestWritten(uint64_t job, uint64_t cut, const absl::Status& status, absl::Time now);
  // Or given up on.
  void CheckpointRemoved(uint64_t job, const std::string& folder, const absl::Status& status,
                         absl::Time now);
  // To be called 16 times per lease and more, by the way that reports take: how nodes' silence is
  // counted (Membership::Listen).
  void Tick(absl::Time now);
  // Reports are refused: what the driver could not append stands in their way.
  void Deaf() { members_.Deaf(); }
  // The scheduler began to serve: worth an event.
  void Started(absl::Time now);

  // Outcomes.
  // Records that differ from those last taken.
  std::vector<MetadataChange> TakeChanges();
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

  const Membership& members() const { return members_; }
  const std::map<uint64_t, std::unique_ptr<JobMachine>>& jobs() const { return jobs_; }

 private:
  // What a node was last told. Not recorded: versions go on from what nodes say they saw.
  struct Told {
    uint64_t session = 0;
    uint64_t version = 0;
    std::string fingerprint;                // of the directive without bulk
    std::map<uint64_t, uint64_t> closed;    // job: version that first told to close it
    std::map<uint64_t, uint64_t> all_done;  // job: version that first said all tasks are done
    std::vector<uint64_t> reported;         // jobs that it spoke of last
  };

  void AdvanceJobs(absl::Time now);
  void NoteAdmission(const Node& node, const Membership::Admission& admission, absl::Time now);
  void ConfirmClosed(const NodeReport& report, Told& told);
  NodeDirective Build(const Node& node, const Told& told, bool bulk) const;
  void Refresh(const Node& node, Told& told);
  void Put(const std::string& key, std::string value, std::vector<MetadataChange>& out);
  void DropOldJobs();
  absl::Status RestoreJobs(const std::map<std::string, std::string>& records, absl::Time now);

  Membership members_;
  ClusterRecord numbers_;
  EventLog events_;
  std::map<uint64_t, std::unique_ptr<JobMachine>> jobs_;
  std::map<std::string, Told, std::less<>> told_;  // by node
  std::map<std::string, std::string> stored_;      // records as last taken
  std::set<uint64_t> settled_;                     // jobs whose records change no more
  uint64_t next_ticket_ = 1;
};

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_CLUSTER_STATE_H_
