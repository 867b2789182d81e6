// The system calls that files at rest are made of, so that a test can have any of them fail.
// Tested by tests/storage/row_file/fault_test.cc
// Tested by tests/storage/checkpoint/shard_file_fault_test.cc
#ifndef STRATA_PROTO_RUNTIME_FILES_FILE_SYSTEM_H_
#define STRATA_PROTO_RUNTIME_FILES_FILE_SYSTEM_H_

#include <sys/types.h>
#include <sys/uio.h>

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace strata {

// What an errno means to a caller: "cannot <action> <path>: <reason>; <what to do>". ENOSPC,
// EDQUOT, EFBIG, EMFILE, ENFILE, ENOMEM: RESOURCE_EXHAUSTED; ENOENT: NOT_FOUND; EACCES, EPERM,
// EROFS: PERMISSION_DENIED; others: UNAVAILABLE.
absl::Status ErrnoStatus(int error, absl::string_view action, absl::string_view path);

// What a sync makes durable: the bytes and what is needed to read them (fdatasync), or also times
// and rights (fsync).
enum class SyncWhat : uint8_t { kData, kAll };

// Thread-safe. Calls behave as the system calls that they are named after, with two differences:
// they begin again after EINTR, and a failure is the negative errno. This base class is the
// kernel; a test overrides what is to fail.
class FileSystem {
 public:
  FileSystem() = default;
  virtual ~FileSystem() = default;
  FileSystem(const FileSystem&) = delete;
  FileSystem& operator=(const FileSystem&) = delete;

  // The real one; lives for ever.
  static FileSystem& Kernel();

  // `flags` as for open(2); O_CLOEXEC is added, new files get mode 0644. A descriptor, for Close.
  virtual int Open(const std::string& path, int flags);
  virtual void Close(int fd);
  // Bytes read or written, which may be fewer than asked for.
  virtual ssize_t Read(int fd, std::span<uint8_t> bytes, uint64_t offset);
  virtual ssize_t Write(int fd, std::span<const iovec> parts, uint64_t offset);
  virtual int Truncate(int fd, uint64_t bytes);
  virtual int Sync(int fd, SyncWhat what);
  virtual int Rename(const std::string& from, const std::string& to);
  virtual int Remove(const std::string& path);
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_FILES_FILE_SYSTEM_H_
