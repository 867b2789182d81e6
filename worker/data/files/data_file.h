// A regular file read at given places.
// Tested by tests/worker/data/files/text_files_test.cc
#ifndef STRATA_WORKER_DATA_FILES_DATA_FILE_H_
#define STRATA_WORKER_DATA_FILES_DATA_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace strata {

// How an error ends of a path that is wrong; who reads other files than spec.data's has another
// remedy.
inline constexpr absl::string_view kCheckData = "; check spec.data";

// Tells two files, or two contents of one, apart: device, inode, size, time of the last change in
// ns.
using DataFileIdentity = std::tuple<uint64_t, uint64_t, uint64_t, int64_t>;

// Immutable after Open; any thread.
class DataFile {
 public:
  // NOT_FOUND, PERMISSION_DENIED or INVALID_ARGUMENT (a folder, a pipe), with the path and what to
  // do.
  static absl::StatusOr<std::unique_ptr<DataFile>> Open(const std::string& path);
  // The same; messages and path() say `name`.
  static absl::StatusOr<std::unique_ptr<DataFile>> Open(const std::string& path,
                                                        const std::string& name);
  // Takes over an open file of `size` bytes; messages and path() say `name`.
  static std::unique_ptr<DataFile> Adopt(int fd, std::string name, uint64_t size);
  ~DataFile();
  DataFile(const DataFile&) = delete;
  DataFile& operator=(const DataFile&) = delete;

  const std::string& path() const { return path_; }
  // When it was opened.
  uint64_t size() const { return size_; }
  // When it was opened; of an adopted file all zero.
  const DataFileIdentity& identity() const { return identity_; }
  // As it is now, which is another one where the file was written in place since. UNAVAILABLE: it
  // cannot be told.
  absl::StatusOr<DataFileIdentity> IdentityNow() const;
  // Adopted, not opened by its name.
  bool is_copy() const { return identity_ == DataFileIdentity(); }

  // Reads exactly `size` bytes. FAILED_PRECONDITION: the file has become shorter.
  absl::Status Read(uint64_t offset, size_t size, char* out) const;

  // XXH64 (seed 0) over the size (8 bytes, little-endian), the first and the last 64 KiB (the same
  // bytes twice where the file is shorter).
  absl::StatusOr<uint64_t> Fingerprint() const;

 private:
  DataFile(std::string path, int fd, uint64_t size, const DataFileIdentity& identity)
      : path_(std::move(path)), fd_(fd), size_(size), identity_(identity) {}

  const std::string path_;
  const int fd_;
  const uint64_t size_;
  const DataFileIdentity identity_;
};

}  // namespace strata

#endif  // STRATA_WORKER_DATA_FILES_DATA_FILE_H_
