// Looks at the files of a process's certificate again and again, so that those who may not wait for
// a file system find what was read last, and says when they are no good.
#ifndef STRATA_PROTO_RUNTIME_CREDENTIALS_CERTIFICATE_WATCH_H_
#define STRATA_PROTO_RUNTIME_CREDENTIALS_CERTIFICATE_WATCH_H_

#include <functional>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/core/mutex.h"
#include "proto/runtime/base/timer.h"
#include "proto/runtime/credentials/credential_source.h"

namespace strata {

struct CertificateWatchOptions {
  std::shared_ptr<CredentialSource> source;
  Timer* timer = nullptr;  // outlives the watch; null: one of its own
  absl::Duration every = absl::Seconds(10);
  // Called when the source's problem() has become another one, OK included, from the watch's
  // thread.
  std::function<void(const absl::Status& now)> changed;
};

class CertificateWatch {
 public:
  explicit CertificateWatch(CertificateWatchOptions options);
  ~CertificateWatch();
  CertificateWatch(const CertificateWatch&) = delete;
  CertificateWatch& operator=(const CertificateWatch&) = delete;

 private:
  void Run();

  const CertificateWatchOptions o_;
  const std::unique_ptr<Timer> own_timer_;  // null: it was given one
  Timer* const timer_;
  Mutex mu_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_CREDENTIALS_CERTIFICATE_WATCH_H_
