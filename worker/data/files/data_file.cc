#include "worker/data/files/data_file.h"

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"

namespace strata {
namespace {

constexpr uint64_t kFingerprintBytes = 64 << 10;

absl::Status OpenError(const std::string& path, int error) {
  if (error == ENOENT) {
    return absl::NotFoundError(
        absl::StrCat("input file ", path, " does not exist; check spec.data"));
  }
  if (error == EACCES || error == EPERM) {
    return absl::PermissionDeniedError(
        absl::StrCat("input file ", path, " may not be read; check its permissions"));
  }
  return absl::UnavailableError(
      absl::StrCat("input file ", path, " cannot be opened: ", std::strerror(error)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<DataFile>> DataFile::Open(const std::string& path) {
  return Open(path, path);
}

std::unique_ptr<DataFile> DataFile::Adopt(int fd, std::string name, uint64_t size) {
  return std::unique_ptr<DataFile>(new DataFile(std::move(name), fd, size, {}));
}

absl::StatusOr<std::unique_ptr<DataFile>> DataFile::Open(const std::string& path,
                                                         const std::string& name) {
  // Non-blocking, so that opening a pipe nobody writes to does not hang; no effect on files.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return OpenError(name, errno);
  struct stat info;
  if (fstat(fd, &info) != 0) {
    const int error = errno;
    close(fd);
    return OpenError(name, error);
  }
  if (!S_ISREG(info.st_mode)) {
    close(fd);
    return absl::InvalidArgumentError(
        S_ISDIR(info.st_mode)
            ? absl::StrCat("input file ", name, " is a directory; name the files in it")
            : absl::StrCat("input file ", name, " is not a regular file; write the data to one"));
  }
  const auto size = static_cast<uint64_t>(info.st_size);
  const int64_t changed = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  return std::unique_ptr<DataFile>(
      new DataFile(name, fd, size, {info.st_dev, info.st_ino, size, changed}));
}

DataFile::~DataFile() { close(fd_); }

absl::Status DataFile::Read(uint64_t offset, size_t size, char* out) const {
  while (size > 0) {
    const ssize_t got = pread(fd_, out, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return absl::UnavailableError(absl::StrCat("input file ", path_, " cannot be read at byte ",
                                                 offset, ": ", std::strerror(errno)));
    }
    if (got == 0) {
      return absl::FailedPreconditionError(absl::StrCat(
          "input file ", path_, " ends at byte ", offset,
          ": it became shorter while it was in use; restore it, or submit the job anew"));
    }
    offset += static_cast<uint64_t>(got);
    size -= static_cast<size_t>(got);
    out += got;
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> DataFile::Fingerprint() const {
  const size_t part = static_cast<size_t>(std::min(kFingerprintBytes, size_));
  std::vector<char> bytes(8 + 2 * part);
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(size_ >> (8 * i));
  absl::Status s = Read(0, part, bytes.data() + 8);
  if (s.ok()) s = Read(size_ - part, part, bytes.data() + 8 + part);
  if (!s.ok()) return s;
  return XXH64(bytes.data(), bytes.size(), 0);
}

}  // namespace strata
