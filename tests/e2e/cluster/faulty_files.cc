#include "tests/e2e/cluster/faulty_files.h"

#include <cerrno>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace strata::testing {
namespace {

constexpr absl::string_view kMark = "/fault-";

// What the path says; "" where it has no fault.
std::string FolderIn(const std::string& path) {
  const size_t mark = path.find(kMark.data());
  if (mark == std::string::npos) return "";
  return path.substr(0, path.find('/', mark + 1));
}

}  // namespace

std::string FaultyFiles::NameOf(absl::string_view call, absl::string_view error, int nth) {
  return absl::StrCat("fault-", call, "-", error, "-", nth);
}

int FaultyFiles::ErrorOf(absl::string_view name) {
  static const std::map<std::string, int>& errors =
      *new std::map<std::string, int>{{"EACCES", EACCES},
                                      {"EPERM", EPERM},
                                      {"EIO", EIO},
                                      {"ENOSPC", ENOSPC},
                                      {"EDQUOT", EDQUOT},
                                      {"EROFS", EROFS},
                                      {"EMFILE", EMFILE},
                                      {"ELOOP", ELOOP},
                                      {"EINVAL", EINVAL},
                                      {"ENOTDIR", ENOTDIR},
                                      {"ENAMETOOLONG", ENAMETOOLONG}};
  return errors.at(std::string(name));
}

uint64_t FaultyFiles::failures(const std::string& folder) const {
  absl::MutexLock lock(&mu_);
  const auto it = seen_.find(folder);
  return it == seen_.end() ? 0 : it->second.failures;
}

int FaultyFiles::Fault(absl::string_view call, const std::string& path) {
  const std::string folder = FolderIn(path);
  if (folder.empty()) return 0;
  const std::vector<std::string> parts = absl::StrSplit(folder.substr(folder.rfind('/') + 1), '-');
  uint64_t nth = 0;
  if (parts[1] != call || !absl::SimpleAtoi(parts[3], &nth)) return 0;
  absl::MutexLock lock(&mu_);
  Seen& seen = seen_[folder];
  if (++seen.calls < nth) return 0;
  ++seen.failures;
  return -ErrorOf(parts[2]);
}

int FaultyFiles::FaultOf(absl::string_view call, int fd) {
  std::string path;
  {
    absl::MutexLock lock(&mu_);
    const auto it = paths_.find(fd);
    if (it == paths_.end()) return 0;
    path = it->second;
  }
  return Fault(call, path);
}

int FaultyFiles::Open(const std::string& path, int flags) {
  if (const int error = Fault("open", path); error < 0) return error;
  const int fd = FileSystem::Open(path, flags);
  if (fd < 0 || FolderIn(path).empty()) return fd;
  absl::MutexLock lock(&mu_);
  paths_[fd] = path;
  return fd;
}

void FaultyFiles::Close(int fd) {
  {
    absl::MutexLock lock(&mu_);
    paths_.erase(fd);
  }
  FileSystem::Close(fd);
}

ssize_t FaultyFiles::Read(int fd, std::span<uint8_t> bytes, uint64_t offset) {
  const int error = FaultOf("read", fd);
  return error < 0 ? error : FileSystem::Read(fd, bytes, offset);
}

ssize_t FaultyFiles::Write(int fd, std::span<const iovec> parts, uint64_t offset) {
  const int error = FaultOf("write", fd);
  return error < 0 ? error : FileSystem::Write(fd, parts, offset);
}

int FaultyFiles::Truncate(int fd, uint64_t bytes) {
  const int error = FaultOf("truncate", fd);
  return error < 0 ? error : FileSystem::Truncate(fd, bytes);
}

int FaultyFiles::Sync(int fd, SyncWhat) { return FaultOf("sync", fd); }  // else no wait for a disk

int FaultyFiles::Reserve(int fd, uint64_t offset, uint64_t bytes) {
  const int error = FaultOf("reserve", fd);
  return error < 0 ? error : FileSystem::Reserve(fd, offset, bytes);
}

int FaultyFiles::Info(int fd, FileInfo& out) {
  const int error = FaultOf("info", fd);
  return error < 0 ? error : FileSystem::Info(fd, out);
}

int FaultyFiles::Rename(const std::string& from, const std::string& to) {
  const int error = Fault("rename", from);
  return error < 0 ? error : FileSystem::Rename(from, to);
}

int FaultyFiles::Link(const std::string& from, const std::string& to) {
  const int error = Fault("link", to);
  return error < 0 ? error : FileSystem::Link(from, to);
}

int FaultyFiles::Remove(const std::string& path) {
  const int error = Fault("remove", path);
  return error < 0 ? error : FileSystem::Remove(path);
}

int FaultyFiles::Look(const std::string& path, FileInfo& out) {
  const int error = Fault("look", path);
  return error < 0 ? error : FileSystem::Look(path, out);
}

int FaultyFiles::LookAtLink(const std::string& path, FileInfo& out) {
  const int error = Fault("lstat", path);
  return error < 0 ? error : FileSystem::LookAtLink(path, out);
}

int FaultyFiles::MayChange(const std::string& folder) {
  const int error = Fault("access", folder);
  return error < 0 ? error : FileSystem::MayChange(folder);
}

int FaultyFiles::MakeFolder(const std::string& path) {
  const int error = Fault("mkdir", path);
  return error < 0 ? error : FileSystem::MakeFolder(path);
}

int FaultyFiles::RemoveFolder(const std::string& path) {
  const int error = Fault("rmdir", path);
  return error < 0 ? error : FileSystem::RemoveFolder(path);
}

int FaultyFiles::List(const std::string& path, std::vector<std::string>& names) {
  const int error = Fault("list", path);
  return error < 0 ? error : FileSystem::List(path, names);
}

}  // namespace strata::testing
