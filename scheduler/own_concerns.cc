#include "scheduler/own_concerns.h"

namespace strata::scheduler {
namespace {

constexpr char kRemedy[] = "what was read before it stays in force; mend the file";

}  // namespace

void OwnConcerns::Note(const std::string& reason, const absl::Status& now, absl::Time at) {
  MutexLock lock(&mu_);
  if (now.ok()) {
    all_.erase(reason);
    return;
  }
  Concern& concern = all_[reason];
  if (concern.reason().empty()) concern.set_since_unix_ms(absl::ToUnixMillis(at));
  concern.set_reason(reason);
  concern.set_who("scheduler");
  concern.set_known_by(std::string(now.message()));
  concern.set_remedy(kRemedy);
}

void OwnConcerns::AddTo(JobStatus& job) const {
  if (job.state() != PENDING && job.state() != RUNNING) return;
  MutexLock lock(&mu_);
  for (const auto& [reason, concern] : all_) *job.add_concerns() = concern;
}

}  // namespace strata::scheduler
