// A scheduler that answers nothing: tests override what they answer.
#ifndef STRATA_TESTS_PROTO_RUNTIME_TRANSPORT_UNANSWERED_SCHEDULER_H_
#define STRATA_TESTS_PROTO_RUNTIME_TRANSPORT_UNANSWERED_SCHEDULER_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/strata/control.pb.h"

namespace strata::testing {

// Every call is UNIMPLEMENTED. Thread-safe.
class UnansweredScheduler : public SchedulerClient {
 public:
  absl::StatusOr<NodeDirective> Sync(const NodeReport&, absl::Duration) override { return No(); }
  absl::StatusOr<SubmitReply> Submit(const SubmitRequest&, absl::Duration) override { return No(); }
  absl::StatusOr<JobStatus> GetJob(const JobRef&, absl::Duration) override { return No(); }
  absl::StatusOr<ListJobsReply> ListJobs(absl::Duration) override { return No(); }
  absl::StatusOr<JobStatus> CancelJob(const JobRef&, absl::Duration) override { return No(); }
  absl::StatusOr<CreateCheckpointReply> CreateCheckpoint(const CreateCheckpointRequest&,
                                                         absl::Duration) override {
    return No();
  }
  absl::StatusOr<ClusterStatus> GetCluster(absl::Duration) override { return No(); }
  absl::StatusOr<JobShards> GetShards(const JobRef&, absl::Duration) override { return No(); }
  absl::StatusOr<GetEventsReply> GetEvents(const GetEventsRequest&, absl::Duration) override {
    return No();
  }
  absl::StatusOr<SettleQuarantineReply> SettleQuarantine(const SettleQuarantineRequest&,
                                                         absl::Duration) override {
    return No();
  }

 private:
  static absl::Status No() { return absl::UnimplementedError("not in this test"); }
};

}  // namespace strata::testing

#endif  // STRATA_TESTS_PROTO_RUNTIME_TRANSPORT_UNANSWERED_SCHEDULER_H_
