// The few file operations that the log and the shard files need, with errors that name the path.
// Tested by tests/storage/row_file/volume_test.cc
// Tested by tests/storage/rocks/tier_test.cc
#ifndef STRATA_STORAGE_IO_FILE_IO_H_
#define STRATA_STORAGE_IO_FILE_IO_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/runtime/files/file_system.h"

namespace strata::storage {

// "<path>, offset <offset>: <what>", DATA_LOSS.
absl::Status DamagedFile(absl::string_view path, uint64_t offset, absl::string_view what);

// An open file descriptor, closed on destruction. Moves, does not copy.
class File {
 public:
  File() = default;
  File(File&& other) noexcept { *this = std::move(other); }
  File& operator=(File&& other) noexcept;
  ~File();

  // `flags` as for open(2); O_CLOEXEC is added. New files get mode 0644. `files` outlives the file.
  static absl::StatusOr<File> Open(const std::string& path, int flags,
                                   FileSystem& files = FileSystem::Kernel());

  int fd() const { return fd_; }
  const std::string& path() const { return path_; }

  absl::StatusOr<uint64_t> Size() const;
  // False: somebody removed it, and its bytes go when it is closed.
  bool HasName() const;
  // Reads exactly bytes.size() bytes. DATA_LOSS if the file ends before.
  absl::Status ReadAt(uint64_t offset, std::span<uint8_t> bytes) const;
  // Writes all parts from `offset` on. `parts` is used up.
  absl::Status WriteAt(uint64_t offset, std::span<iovec> parts) const;
  absl::Status Truncate(uint64_t size) const;
  // Has the disk give the file room from `offset` on; it is that long then.
  absl::Status Reserve(uint64_t offset, uint64_t bytes) const;
  // What was written before is durable. After an error it is not known what of it is, and another
  // Sync says nothing about it (Linux reports a lost page once): write it again, elsewhere.
  absl::Status Sync() const;
  absl::Status SyncData() const;  // the same without times and rights

 private:
  FileSystem* files_ = nullptr;
  int fd_ = -1;
  std::string path_;
};

// Creates the folder and its parents if missing.
absl::Status MakeFolder(const std::string& path, FileSystem& files = FileSystem::Kernel());
// Makes names created or removed in the folder durable.
absl::Status SyncFolder(const std::string& path, FileSystem& files = FileSystem::Kernel());
// `to` is replaced if it exists.
absl::Status RenameFile(const std::string& from, const std::string& to,
                        FileSystem& files = FileSystem::Kernel());
// A file that is not there is removed.
absl::Status RemoveFile(const std::string& path, FileSystem& files = FileSystem::Kernel());

}  // namespace strata::storage

#endif  // STRATA_STORAGE_IO_FILE_IO_H_
