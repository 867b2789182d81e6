// The system calls that files at rest are made of, so that a test can have any of them fail, and a
// process can refuse what lies outside of its data roots. What jobs name is reached by these alone
// (tests/structure/check_file_calls).
// Tested by tests/proto/runtime/files/folders_test.cc
// Tested by tests/storage/row_file/fault_test.cc
// Tested by tests/storage/checkpoint/shard_file_fault_test.cc
#ifndef STRATA_PROTO_RUNTIME_FILES_FILE_SYSTEM_H_
#define STRATA_PROTO_RUNTIME_FILES_FILE_SYSTEM_H_

#include <sys/types.h>
#include <sys/uio.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace strata {

// What an errno means to a caller: "cannot <action> <path>: <reason>; <what to do>". ENOSPC,
// EDQUOT, EMFILE, ENFILE, ENOMEM: RESOURCE_EXHAUSTED; ENOENT: NOT_FOUND; EACCES, EPERM, EROFS and
// kOutsideRoots: PERMISSION_DENIED; what no waiting mends (a name too long, a circle of links, a
// file where a folder should be, a pipe, a limit of a file's size, a file system that cannot do
// it): FAILED_PRECONDITION; others: UNAVAILABLE.
absl::Status ErrnoStatus(int error, absl::string_view action, absl::string_view path);

// An errno of ours: the path leads out of the data roots (proto/runtime/files/rooted_files.h).
inline constexpr int kOutsideRoots = 4001;

// What a sync makes durable: the bytes and what is needed to read them (fdatasync), or also times
// and rights (fsync).
enum class SyncWhat : uint8_t { kData, kAll };

enum class FileKind : uint8_t { kFile, kFolder, kLink, kOther };

struct FileInfo {
  FileKind kind = FileKind::kOther;
  uint64_t bytes = 0;
  uint64_t on_disk = 0;  // bytes that it takes there: fewer where it has holes
  uint64_t names = 0;    // 0: it was removed, and is still open
  // Of which file this is, and in which state: device, inode, time of the last change in ns.
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t changed_ns = 0;
};

// The file system that a path is on.
struct FileSpace {
  uint64_t free = 0;  // bytes that this process may take
  // The same for whoever reaches it on a machine: as the file system calls itself, since the layers
  // of containers have devices of their own; where it does not, its device.
  uint64_t id = 0;
};

// Thread-safe. Calls behave as the system calls that they are named after, with these differences:
// they begin again after EINTR, a failure is the negative errno, a path with a zero byte is
// -EINVAL, and what is neither file nor folder (a pipe, a device) cannot be opened: -ESPIPE, at
// once. This base class is the kernel; a test overrides what is to fail.
class FileSystem {
 public:
  FileSystem() = default;
  virtual ~FileSystem() = default;
  FileSystem(const FileSystem&) = delete;
  FileSystem& operator=(const FileSystem&) = delete;

  // That of the process: the real one, unless another was put in its place.
  static FileSystem& Kernel();
  // Before threads use files; `files` lives for ever, or until it is replaced and nothing uses it.
  // Null: the real one again.
  static void ReplaceKernel(FileSystem* files);

  // `flags` as for open(2); O_CLOEXEC is added, new files get mode 0644. A descriptor, for Close.
  virtual int Open(const std::string& path, int flags);
  virtual void Close(int fd);
  // Bytes read or written, which may be fewer than asked for.
  virtual ssize_t Read(int fd, std::span<uint8_t> bytes, uint64_t offset);
  virtual ssize_t Write(int fd, std::span<const iovec> parts, uint64_t offset);
  virtual int Truncate(int fd, uint64_t bytes);
  virtual int Sync(int fd, SyncWhat what);
  // posix_fallocate.
  virtual int Reserve(int fd, uint64_t offset, uint64_t bytes);
  virtual int Info(int fd, FileInfo& out);

  virtual int Rename(const std::string& from, const std::string& to);
  virtual int Link(const std::string& from, const std::string& to);
  virtual int Remove(const std::string& path);
  // stat: of what links lead to.
  virtual int Look(const std::string& path, FileInfo& out);
  // statvfs: of the file system on which `path` is.
  virtual int Space(const std::string& path, FileSpace& out);
  // lstat: of a link itself.
  virtual int LookAtLink(const std::string& path, FileInfo& out);
  // readlink; -EINVAL: it is there and no link.
  virtual int ReadLink(const std::string& path, std::string& target);
  // Whether this process may make and remove names in a folder (access).
  virtual int MayChange(const std::string& folder);
  // One folder, in one that is there, and with nothing in it.
  virtual int MakeFolder(const std::string& path);
  virtual int RemoveFolder(const std::string& path);
  // The names in a folder, in no order, without "." and "..".
  virtual int List(const std::string& path, std::vector<std::string>& names);

  // Where a path leads that this refuses with kOutsideRoots, and what would be allowed.
  virtual std::string WhyOutside(absl::string_view path);
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_FILES_FILE_SYSTEM_H_
