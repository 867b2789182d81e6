#include "worker/data/files/data_file.h"

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <fcntl.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/runtime/files/file_system.h"

namespace strata {
namespace {

constexpr uint64_t kFingerprintBytes = 64 << 10;

absl::Status OpenError(const std::string& path, int error) {
  if (error == ENOENT) {
    return absl::NotFoundError(absl::StrCat("input file ", path, " does not exist", kCheckData));
  }
  if (error == EACCES || error == EPERM) {
    return absl::PermissionDeniedError(
        absl::StrCat("input file ", path, " may not be read; check its permissions"));
  }
  if (error == ESPIPE) {
    return absl::InvalidArgumentError(
        absl::StrCat("input file ", path, " is not a regular file; write the data to one"));
  }
  if (error == kOutsideRoots) {
    return absl::PermissionDeniedError(
        absl::StrCat("input file ", FileSystem::Kernel().WhyOutside(path)));
  }
  return absl::UnavailableError(
      absl::StrCat("input file ", path, " cannot be opened: ", std::strerror(error), kCheckData));
}

DataFileIdentity IdentityOf(const FileInfo& info) {
  return {info.device, info.inode, info.bytes, info.changed_ns};
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
  FileSystem& files = FileSystem::Kernel();
  const int fd = files.Open(path, O_RDONLY);
  if (fd < 0) return OpenError(name, -fd);
  FileInfo info;
  const int result = files.Info(fd, info);
  if (result == 0 && info.kind == FileKind::kFile) {
    return std::unique_ptr<DataFile>(new DataFile(name, fd, info.bytes, IdentityOf(info)));
  }
  files.Close(fd);
  if (result < 0) return OpenError(name, -result);
  return absl::InvalidArgumentError(
      absl::StrCat("input file ", name, " is a directory; name the files in it"));
}

absl::StatusOr<DataFileIdentity> DataFile::IdentityNow() const {
  FileInfo info;
  const int result = FileSystem::Kernel().Info(fd_, info);
  if (result == 0) return IdentityOf(info);
  return absl::UnavailableError(
      absl::StrCat("input file ", path_, " cannot be looked at: ", std::strerror(-result)));
}

DataFile::~DataFile() { FileSystem::Kernel().Close(fd_); }

absl::Status DataFile::Read(uint64_t offset, size_t size, char* out) const {
  while (size > 0) {
    const ssize_t got =
        FileSystem::Kernel().Read(fd_, {reinterpret_cast<uint8_t*>(out), size}, offset);
    if (got < 0) {
      return absl::UnavailableError(absl::StrCat("input file ", path_, " cannot be read at byte ",
                                                 offset, ": ",
                                                 std::strerror(static_cast<int>(-got))));
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
