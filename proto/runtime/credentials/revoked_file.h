// The list of certificates that count no more, as a file that `strata certs revoke` replaces while
// the process runs.
#ifndef STRATA_PROTO_RUNTIME_CREDENTIALS_REVOKED_FILE_H_
#define STRATA_PROTO_RUNTIME_CREDENTIALS_REVOKED_FILE_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/core/mutex.h"
#include "proto/runtime/base/clock.h"
#include "proto/runtime/credentials/credential_source.h"
#include "proto/runtime/files/file_system.h"

namespace strata {

struct RevokedFileOptions {
  std::string path;        // CERTS/ca/revoked, or a copy of it
  Clock* clock = nullptr;  // required; outlives the file
  // The first Text() after that long reads again.
  absl::Duration look_again = absl::Seconds(10);
  // Gets each list that is read; may be null.
  std::shared_ptr<CredentialSource> source = nullptr;
  // Why the file is no good; the list before it stays in force. May be empty.
  std::function<void(const absl::Status& why)> problem = nullptr;
};

// Thread-safe.
class RevokedFile {
 public:
  // Errors name the file; one that is damaged or missing is never taken for an empty list.
  static absl::StatusOr<std::unique_ptr<RevokedFile>> Open(RevokedFileOptions options);

  // As revocations.h writes it. May read the file first, in the caller's thread; of several callers
  // at once one reads.
  std::string Text();

 private:
  explicit RevokedFile(RevokedFileOptions options)
      : o_(std::move(options)), files_(FileSystem::Kernel()) {}
  absl::Status Look();

  const RevokedFileOptions o_;
  FileSystem& files_;  // from before files were restricted to the data roots
  Mutex mu_;
  std::string text_ ABSL_GUARDED_BY(mu_);
  absl::Time next_look_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  bool looking_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_CREDENTIALS_REVOKED_FILE_H_
