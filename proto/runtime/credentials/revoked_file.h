// The list of certificates that count no more, as a file that `strata certs revoke` replaces while
// the process runs.
#ifndef STRATA_PROTO_RUNTIME_CREDENTIALS_REVOKED_FILE_H_
#define STRATA_PROTO_RUNTIME_CREDENTIALS_REVOKED_FILE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/core/mutex.h"
#include "proto/runtime/base/timer.h"
#include "proto/runtime/credentials/credential_source.h"
#include "proto/runtime/files/file_system.h"

namespace strata {

struct RevokedFileOptions {
  std::string path;        // CERTS/ca/revoked, or a copy of it
  Timer* timer = nullptr;  // required; outlives the file
  // How often it is read again, by a thread of its own: whoever else waits for the file system,
  // nobody waits for this file.
  absl::Duration look_again = absl::Seconds(10);
  // Gets each list that is another one; may be null.
  std::shared_ptr<CredentialSource> source = nullptr;
  // Called when problem() has become another one, OK included, from that thread. May be empty.
  std::function<void(const absl::Status& now)> changed = nullptr;
};

// Thread-safe.
class RevokedFile {
 public:
  // Errors name the file; one that is damaged or missing is never taken for an empty list.
  static absl::StatusOr<std::unique_ptr<RevokedFile>> Open(RevokedFileOptions options);
  ~RevokedFile();

  // The last good list, as revocations.h writes it.
  std::string Text() const;
  // Why the file is no good; the list before it stays in force.
  absl::Status problem() const;
  // Until the file was read so often, Open's time included.
  void AwaitLooks(uint64_t count) const;

 private:
  explicit RevokedFile(RevokedFileOptions options)
      : o_(std::move(options)), files_(FileSystem::Kernel()) {}
  void Run();
  absl::Status Look();

  const RevokedFileOptions o_;
  FileSystem& files_;  // from before files were restricted to the data roots
  mutable Mutex mu_;
  std::string text_ ABSL_GUARDED_BY(mu_);
  absl::Status problem_ ABSL_GUARDED_BY(mu_);
  uint64_t looks_ ABSL_GUARDED_BY(mu_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_CREDENTIALS_REVOKED_FILE_H_
