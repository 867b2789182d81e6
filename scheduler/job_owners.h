// Who may decide about a job: the operator who submitted it, those whom its file names, and the
// cluster's admins.
#ifndef STRATA_SCHEDULER_JOB_OWNERS_H_
#define STRATA_SCHEDULER_JOB_OWNERS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/credentials/caller.h"
#include "proto/strata/control.pb.h"

namespace strata::scheduler {

// Thread-safe. For callers who have proven who they are; whom nobody asked may decide about all.
class JobOwners {
 public:
  virtual ~JobOwners() = default;
  // As SchedulerClient::Submit; the job is `caller`'s. PERMISSION_DENIED: its checkpoint directory
  // has checkpoints of a job about which he may not decide, and it would replace them or go on from
  // them; the text names one, and who may.
  virtual absl::StatusOr<SubmitReply> SubmitAs(const Caller& caller, const SubmitRequest& request,
                                               absl::Duration timeout) = 0;
  // The job's number. PERMISSION_DENIED: `caller` may not decide about it; the text names who may.
  // NOT_FOUND: no such job.
  virtual absl::StatusOr<uint64_t> OwnJob(const Caller& caller, const JobRef& ref) = 0;
  // As SchedulerClient::SettleQuarantine; an adopted job is `caller`'s as well. PERMISSION_DENIED:
  // he is none of the job's owners, as its servers noted them; the text names who may.
  virtual absl::StatusOr<SettleQuarantineReply> SettleQuarantineAs(
      const Caller& caller, const SettleQuarantineRequest& request, absl::Duration timeout) = 0;
};

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_JOB_OWNERS_H_
