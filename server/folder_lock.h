// An exclusive lock on a server's own folder.
// Tested by tests/server/server_test.cc
#ifndef STRATA_SERVER_FOLDER_LOCK_H_
#define STRATA_SERVER_FOLDER_LOCK_H_

#include <string>

#include "absl/status/statusor.h"

namespace strata::server {

// For as long as it lives.
class FolderLock {
 public:
  // Makes the folder where it is missing. FAILED_PRECONDITION: another process holds it.
  // PERMISSION_DENIED: it cannot be made or written.
  static absl::StatusOr<FolderLock> Take(const std::string& folder);
  // Whether a process ever did; nothing is made.
  static absl::StatusOr<bool> WasTaken(const std::string& folder);
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&&) = delete;
  ~FolderLock();

 private:
  FolderLock() = default;
  int fd_ = -1;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_FOLDER_LOCK_H_
