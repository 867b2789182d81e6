#include "storage/file_system.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>

namespace strata::storage {
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

}  // namespace strata::storage
