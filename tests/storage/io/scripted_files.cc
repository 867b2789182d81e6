#include "tests/storage/io/scripted_files.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

namespace strata::storage {
namespace {

constexpr uint64_t kSector = 512;

std::string FolderOf(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

}  // namespace

void ScriptedFiles::Fail(Call call, int error, uint64_t nth, uint64_t count) {
  MutexLock lock(&mu_);
  Plan& plan = plans_[static_cast<size_t>(call)];
  plan.first = plan.seen + nth;
  plan.count = count;
  plan.error = error;
}

void ScriptedFiles::ShortWrite(size_t bytes) {
  MutexLock lock(&mu_);
  short_write_ = bytes;
}

uint64_t ScriptedFiles::calls(Call call) const {
  MutexLock lock(&mu_);
  return plans_[static_cast<size_t>(call)].seen;
}

int ScriptedFiles::Scripted(Call call) {
  Plan& plan = plans_[static_cast<size_t>(call)];
  ++plan.seen;
  const bool fails =
      plan.first != 0 && plan.seen >= plan.first && plan.seen - plan.first < plan.count;
  return fails ? -plan.error : 0;
}

void ScriptedFiles::Apply(const Change& change, Bytes& bytes) {
  if (change.truncate) {
    bytes.resize(*change.truncate);
    return;
  }
  if (bytes.size() < change.offset + change.bytes.size()) {
    bytes.resize(change.offset + change.bytes.size());
  }
  std::copy(change.bytes.begin(), change.bytes.end(),
            bytes.begin() + static_cast<ptrdiff_t>(change.offset));
}

ScriptedFiles::Bytes ScriptedFiles::SomeOf(const OnDevice& file) {
  Bytes bytes = file.bytes;
  for (const Change& change : file.pending) {
    if (random_() % 4 == 0) continue;
    if (change.truncate || random_() % 2 == 0) {
      Apply(change, bytes);
      continue;
    }
    for (uint64_t at = 0; at < change.bytes.size(); at += kSector) {
      if (random_() % 2 == 0) continue;
      const auto begin = change.bytes.begin() + static_cast<ptrdiff_t>(at);
      const auto n = static_cast<ptrdiff_t>(std::min(kSector, change.bytes.size() - at));
      Apply({change.offset + at, Bytes(begin, begin + n), {}}, bytes);
    }
  }
  return bytes;
}

void ScriptedFiles::Adopt(const std::string& folder) {
  MutexLock lock(&mu_);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream in(entry.path(), std::ios::binary);
    device_[entry.path().string()] = {Bytes(std::istreambuf_iterator<char>(in), {}), {}};
    named_.insert(entry.path().string());
  }
}

void ScriptedFiles::PowerLoss(const std::string& from, const std::string& to) {
  MutexLock lock(&mu_);
  for (const auto& [path, file] : device_) {
    if (FolderOf(path) != from) continue;
    if (!named_.contains(path) && random_() % 2 == 0) continue;
    const auto old = replaced_.find(path);
    const Bytes bytes = SomeOf(old != replaced_.end() && random_() % 2 == 0 ? old->second : file);
    std::ofstream out(to + "/" + std::filesystem::path(path).filename().string(), std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
  }
}

int ScriptedFiles::Open(const std::string& path, int flags) {
  MutexLock lock(&mu_);
  if (const int error = Scripted(Call::kOpen); error < 0) return error;
  // Around the page cache memory would have to be aligned; what is written is the same.
  const int fd = FileSystem::Open(path, flags & ~O_DIRECT);
  if (fd < 0) return fd;
  paths_[fd] = path;
  if ((flags & O_CREAT) != 0 && !device_.contains(path)) device_[path] = {};
  if ((flags & O_TRUNC) != 0) device_[path].pending.push_back({0, {}, 0});
  return fd;
}

ssize_t ScriptedFiles::Read(int fd, std::span<uint8_t> bytes, uint64_t offset) {
  MutexLock lock(&mu_);
  if (const int error = Scripted(Call::kRead); error < 0) return error;
  return FileSystem::Read(fd, bytes, offset);
}

ssize_t ScriptedFiles::Write(int fd, std::span<const iovec> parts, uint64_t offset) {
  MutexLock lock(&mu_);
  if (const int error = Scripted(Call::kWrite); error < 0) return error;
  Change change{offset, {}, {}};
  for (const iovec& part : parts) {
    const auto* bytes = static_cast<const uint8_t*>(part.iov_base);
    change.bytes.insert(change.bytes.end(), bytes, bytes + part.iov_len);
  }
  if (short_write_) {
    change.bytes.resize(std::min(*short_write_, change.bytes.size()));
    short_write_.reset();
  }
  const iovec all = {change.bytes.data(), change.bytes.size()};
  const ssize_t written = FileSystem::Write(fd, {&all, 1}, offset);
  if (written < 0) return written;
  change.bytes.resize(static_cast<size_t>(written));
  device_[paths_[fd]].pending.push_back(std::move(change));
  return written;
}

int ScriptedFiles::Truncate(int fd, uint64_t bytes) {
  MutexLock lock(&mu_);
  if (const int error = Scripted(Call::kTruncate); error < 0) return error;
  device_[paths_[fd]].pending.push_back({0, {}, bytes});
  return FileSystem::Truncate(fd, bytes);
}

int ScriptedFiles::Sync(int fd, SyncWhat) {
  MutexLock lock(&mu_);
  const std::string& path = paths_[fd];
  const int error = Scripted(Call::kSync);
  if (std::filesystem::is_directory(path)) {
    if (error < 0) return error;
    for (const auto& [name, file] : device_) {
      if (FolderOf(name) == path) named_.insert(name);
    }
    std::erase_if(replaced_, [&](const auto& old) { return FolderOf(old.first) == path; });
    return 0;
  }
  OnDevice& file = device_[path];
  if (error < 0) {
    file.bytes = SomeOf(file);
    file.pending.clear();
    return error;
  }
  for (const Change& change : file.pending) Apply(change, file.bytes);
  file.pending.clear();
  return 0;  // the real device need not bother
}

int ScriptedFiles::Rename(const std::string& from, const std::string& to) {
  MutexLock lock(&mu_);
  if (const int error = Scripted(Call::kRename); error < 0) return error;
  if (const int error = FileSystem::Rename(from, to); error < 0) return error;
  if (named_.contains(to)) replaced_.emplace(to, device_[to]);
  device_[to] = std::move(device_[from]);
  device_.erase(from);
  named_.erase(from);
  return 0;
}

int ScriptedFiles::Remove(const std::string& path) {
  MutexLock lock(&mu_);
  if (const int error = Scripted(Call::kRemove); error < 0) return error;
  device_.erase(path);
  named_.erase(path);
  return FileSystem::Remove(path);
}

}  // namespace strata::storage
