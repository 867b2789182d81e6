// Small files through the seam to the file system: whole reads, whole writes, errors with the path.
// Tested by tests/proto/runtime/files/manifest_fault_test.cc
#ifndef STRATA_PROTO_RUNTIME_FILES_PLAIN_FILE_H_
#define STRATA_PROTO_RUNTIME_FILES_PLAIN_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/locked_file.h"

namespace strata {

// As ErrnoStatus, but INTERNAL where that says that the same call may work soon.
absl::Status PlainFileError(int error, absl::string_view action, absl::string_view path);

// An open file, closed on destruction. One thread.
class PlainFile {
 public:
  // `files` outlives the file.
  PlainFile(const std::string& path, int flags, FileSystem& files);
  PlainFile(UnfinishedFile file, FileSystem& files);
  ~PlainFile();
  PlainFile(const PlainFile&) = delete;
  PlainFile& operator=(const PlainFile&) = delete;

  // Before anything else.
  absl::Status opened() const;
  // Fewer bytes than asked for: the file ends.
  absl::StatusOr<size_t> Read(std::span<uint8_t> bytes, uint64_t offset) const;
  absl::Status Write(absl::string_view text) const;
  absl::Status Sync() const;

 private:
  FileSystem& files_;
  const std::string path_;
  const int fd_;
};

// Makes names made or removed in the folder durable.
absl::Status SyncPlainFolder(const std::string& folder, FileSystem& files = FileSystem::Kernel());
// One that is not there is removed.
absl::Status RemovePlainFile(const std::string& path, FileSystem& files = FileSystem::Kernel());
// All of a file. DATA_LOSS: it has more than `most` bytes.
absl::StatusOr<std::string> ReadPlainFile(const std::string& path, uint64_t most,
                                          FileSystem& files = FileSystem::Kernel());
// Under a temporary name first (OpenUnfinished), and on the device before it gets its own. Of
// several that write at a time the last one's text is there, whole. What was written before an
// error is removed, so nothing that a failed sync was about is ever taken for written. The name is
// not durable before its folder is synced.
absl::Status WritePlainFile(const std::string& path, absl::string_view text,
                            FileSystem& files = FileSystem::Kernel());

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_FILES_PLAIN_FILE_H_
