// What is wrong with the scheduler's own files while it runs, as jobs' status tells it.
#ifndef STRATA_SCHEDULER_OWN_CONCERNS_H_
#define STRATA_SCHEDULER_OWN_CONCERNS_H_

#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/core/mutex.h"
#include "proto/strata/job.pb.h"

namespace strata::scheduler {

// Thread-safe.
class OwnConcerns {
 public:
  // `now`: why the files that `reason` (CertificateUnfit, RevokedUnreadable) is about are no good;
  // OK: they are good. At `at` of the scheduler's clock.
  void Note(const std::string& reason, const absl::Status& now, absl::Time at);
  // Adds them to a job that has not ended.
  void AddTo(JobStatus& job) const;

 private:
  mutable Mutex mu_;
  std::map<std::string, Concern> all_ ABSL_GUARDED_BY(mu_);  // by reason
};

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_OWN_CONCERNS_H_
