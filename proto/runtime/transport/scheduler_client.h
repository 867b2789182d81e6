// What nodes and the command line ask of a scheduler: over gRPC between processes, or the Scheduler
// object itself inside one (scheduler/scheduler.h implements this interface).
// Tested by tests/scheduler/scheduler_test.cc
#ifndef STRATA_PROTO_RUNTIME_TRANSPORT_SCHEDULER_CLIENT_H_
#define STRATA_PROTO_RUNTIME_TRANSPORT_SCHEDULER_CLIENT_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/strata/control.pb.h"

namespace strata {

// Thread-safe; every call blocks. `timeout` bounds the whole call, connecting included; it must be
// longer than a wait that the request itself asks for (wait_ms).
//
// Errors of every call: UNAVAILABLE (no scheduler there within the timeout, or it is stopping; the
// text names its address), DEADLINE_EXCEEDED (it is there but did not answer in time),
// INVALID_ARGUMENT, and what control.proto states for the method.
class SchedulerClient {
 public:
  virtual ~SchedulerClient() = default;

  // UNAUTHENTICATED: the session is fenced; register anew with session 0 in the same incarnation.
  virtual absl::StatusOr<NodeDirective> Sync(const NodeReport& report, absl::Duration timeout) = 0;

  virtual absl::StatusOr<SubmitReply> Submit(const SubmitRequest& request,
                                             absl::Duration timeout) = 0;
  // NOT_FOUND: no such job.
  virtual absl::StatusOr<JobStatus> GetJob(const JobRef& ref, absl::Duration timeout) = 0;
  virtual absl::StatusOr<ListJobsReply> ListJobs(absl::Duration timeout) = 0;
  virtual absl::StatusOr<JobStatus> CancelJob(const JobRef& ref, absl::Duration timeout) = 0;
  virtual absl::StatusOr<CreateCheckpointReply> CreateCheckpoint(
      const CreateCheckpointRequest& request, absl::Duration timeout) = 0;
  virtual absl::StatusOr<ClusterStatus> GetCluster(absl::Duration timeout) = 0;
  virtual absl::StatusOr<JobShards> GetShards(const JobRef& ref, absl::Duration timeout) = 0;
  virtual absl::StatusOr<GetEventsReply> GetEvents(const GetEventsRequest& request,
                                                   absl::Duration timeout) = 0;
  virtual absl::StatusOr<SettleQuarantineReply> SettleQuarantine(
      const SettleQuarantineRequest& request, absl::Duration timeout) = 0;
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_TRANSPORT_SCHEDULER_CLIENT_H_
