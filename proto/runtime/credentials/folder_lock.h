// One command at a time changes a folder of certificates.
// Tested by tests/proto/runtime/credentials/authority_files_test.cc
#ifndef STRATA_PROTO_RUNTIME_CREDENTIALS_FOLDER_LOCK_H_
#define STRATA_PROTO_RUNTIME_CREDENTIALS_FOLDER_LOCK_H_

#include <string>

#include "absl/status/status.h"
#include "proto/runtime/files/file_system.h"

namespace strata {

// Held from construction to destruction, if status() is OK.
class FolderLock {
 public:
  // `files` outlives the lock.
  FolderLock(const std::string& folder, FileSystem& files);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  // ABORTED: somebody else has it. NOT_FOUND: there is no such folder. FAILED_PRECONDITION: its
  // file system locks none. Others: PlainFileError's.
  const absl::Status& status() const { return status_; }

 private:
  FileSystem& files_;
  const int fd_;
  const absl::Status status_;
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_CREDENTIALS_FOLDER_LOCK_H_
