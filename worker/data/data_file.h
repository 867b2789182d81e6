// A regular file read at given places.
#ifndef STRATA_WORKER_DATA_DATA_FILE_H_
#define STRATA_WORKER_DATA_DATA_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace strata {

// Immutable after Open; any thread.
class DataFile {
 public:
  // NOT_FOUND, PERMISSION_DENIED or INVALID_ARGUMENT (a folder, a pipe), with the path and what to
  // do.
  static absl::StatusOr<std::unique_ptr<DataFile>> Open(const std::string& path);
  ~DataFile();
  DataFile(const DataFile&) = delete;
  DataFile& operator=(const DataFile&) = delete;

  const std::string& path() const { return path_; }
  // When it was opened.
  uint64_t size() const { return size_; }

  // Reads exactly `size` bytes. FAILED_PRECONDITION: the file has become shorter.
  absl::Status Read(uint64_t offset, size_t size, char* out) const;

  // XXH64 (seed 0) over the size (8 bytes, little-endian), the first and the last 64 KiB (the same
  // bytes twice where the file is shorter).
  absl::StatusOr<uint64_t> Fingerprint() const;

 private:
  DataFile(std::string path, int fd, uint64_t size)
      : path_(std::move(path)), fd_(fd), size_(size) {}

  const std::string path_;
  const int fd_;
  const uint64_t size_;
};

}  // namespace strata

#endif  // STRATA_WORKER_DATA_DATA_FILE_H_
