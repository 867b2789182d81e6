#include "proto/runtime/files/file_system.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace strata {
namespace {

template <typename Call>
auto Again(Call call) {
  for (;;) {
    const auto result = call();
    if (result >= 0) return result;
    if (errno != EINTR) return static_cast<decltype(result)>(-errno);
  }
}

}  // namespace

absl::Status ErrnoStatus(int error, absl::string_view action, absl::string_view path) {
  const std::string text = absl::StrCat("cannot ", action, " ", path, ": ", std::strerror(error));
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(absl::StrCat(text, "; free disk space"));
    case EMFILE:
    case ENFILE:
      return absl::ResourceExhaustedError(absl::StrCat(text, "; raise the limit of open files"));
    case ENOMEM:
      return absl::ResourceExhaustedError(absl::StrCat(text, "; free memory"));
    case ENOENT:
      return absl::NotFoundError(text);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(
          absl::StrCat(text, "; give this user the right to write there"));
    case EIO:
      return absl::UnavailableError(absl::StrCat(text, "; look at the disk and the kernel's log"));
    default:
      return absl::UnavailableError(text);
  }
}

FileSystem& FileSystem::Kernel() {
  static FileSystem& kernel = *new FileSystem;
  return kernel;
}

int FileSystem::Open(const std::string& path, int flags) {
  return Again([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0644); });
}

void FileSystem::Close(int fd) { ::close(fd); }

ssize_t FileSystem::Read(int fd, std::span<uint8_t> bytes, uint64_t offset) {
  return Again([&] { return ::pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
}

ssize_t FileSystem::Write(int fd, std::span<const iovec> parts, uint64_t offset) {
  const int count = static_cast<int>(std::min<size_t>(parts.size(), IOV_MAX));
  return Again([&] { return ::pwritev(fd, parts.data(), count, static_cast<off_t>(offset)); });
}

int FileSystem::Truncate(int fd, uint64_t bytes) {
  return Again([&] { return ::ftruncate(fd, static_cast<off_t>(bytes)); });
}

int FileSystem::Sync(int fd, SyncWhat what) {
  return Again([&] { return what == SyncWhat::kData ? ::fdatasync(fd) : ::fsync(fd); });
}

int FileSystem::Rename(const std::string& from, const std::string& to) {
  return Again([&] { return ::rename(from.c_str(), to.c_str()); });
}

int FileSystem::Remove(const std::string& path) {
  return Again([&] { return ::unlink(path.c_str()); });
}

}  // namespace strata
