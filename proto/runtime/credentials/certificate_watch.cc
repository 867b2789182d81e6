#include "proto/runtime/credentials/certificate_watch.h"

#include <utility>

#include "absl/synchronization/mutex.h"

namespace strata {

CertificateWatch::CertificateWatch(CertificateWatchOptions options)
    : o_(std::move(options)),
      own_timer_(o_.timer == nullptr ? MakeTimer() : nullptr),
      timer_(o_.timer == nullptr ? own_timer_.get() : o_.timer),
      thread_([this] { Run(); }) {}

CertificateWatch::~CertificateWatch() {
  {
    MutexLock lock(&mu_);
    stopped_ = true;
  }
  thread_.join();
}

void CertificateWatch::Run() {
  absl::Status before;
  while (true) {
    {
      MutexLock lock(&mu_);
      const absl::Time next = timer_->Now() + o_.every;
      if (AwaitUntil(timer_, &mu_, absl::Condition(&stopped_), next)) return;
    }
    o_.source->Current();
    absl::Status now = o_.source->problem();
    if (now != before) o_.changed(now);
    before = std::move(now);
  }
}

}  // namespace strata
