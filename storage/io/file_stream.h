// Writes a new file once from its beginning to its end.
// Tested by tests/storage/checkpoint/shard_file_test.cc
// Tested by tests/storage/checkpoint/shard_file_fault_test.cc
#ifndef STRATA_STORAGE_IO_FILE_STREAM_H_
#define STRATA_STORAGE_IO_FILE_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/runtime/files/file_system.h"
#include "storage/io/file_io.h"

namespace strata::storage {

// Around the page cache (O_DIRECT) where the file system can, else through it: nobody reads such a
// file soon, its pages would push out others, and filling them takes as long as the device. Memory:
// kStagingBytes. One thread at a time.
class FileStream {
 public:
  static constexpr size_t kStagingBytes = size_t{1} << 20;

  // Replaces what is there. Errors name the path. `files` outlives the stream.
  static absl::StatusOr<FileStream> Create(const std::string& path,
                                           FileSystem& files = FileSystem::Kernel());

  const std::string& path() const { return file_.path(); }
  // After an error, of Finish as well, the file's content is unspecified, and so is what further
  // calls do: remove it and write another.
  absl::Status Append(std::span<const uint8_t> bytes);
  // The file has its exact size and is on the device (fsync). Call once.
  absl::Status Finish();

 private:
  struct Free {
    void operator()(uint8_t* p) const;
  };
  absl::Status WriteStaged(size_t bytes);

  File file_;
  std::unique_ptr<uint8_t, Free> staging_;  // kStagingBytes, aligned
  size_t staged_ = 0;
  uint64_t written_ = 0;  // before what is staged
};

}  // namespace strata::storage

#endif  // STRATA_STORAGE_IO_FILE_STREAM_H_
