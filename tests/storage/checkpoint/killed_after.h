// The files of a process that dies.
#ifndef STRATA_TESTS_STORAGE_CHECKPOINT_KILLED_AFTER_H_
#define STRATA_TESTS_STORAGE_CHECKPOINT_KILLED_AFTER_H_

#include <cerrno>
#include <cstdint>
#include <span>
#include <string>

#include "tests/storage/io/scripted_files.h"

namespace strata::storage {

// The files of a process that is killed: after so many calls none does anything any more.
class KilledAfter : public ScriptedFiles {
 public:
  KilledAfter(uint64_t seed, uint64_t calls) : ScriptedFiles(seed), left_(calls) {}

  int Open(const std::string& path, int flags) override {
    return Dead() ? -EIO : ScriptedFiles::Open(path, flags);
  }
  ssize_t Write(int fd, std::span<const iovec> parts, uint64_t offset) override {
    return Dead() ? -EIO : ScriptedFiles::Write(fd, parts, offset);
  }
  int Truncate(int fd, uint64_t bytes) override {
    return Dead() ? -EIO : ScriptedFiles::Truncate(fd, bytes);
  }
  int Sync(int fd, SyncWhat what) override { return Dead() ? -EIO : ScriptedFiles::Sync(fd, what); }
  int Rename(const std::string& from, const std::string& to) override {
    return Dead() ? -EIO : ScriptedFiles::Rename(from, to);
  }
  int Remove(const std::string& path) override {
    return Dead() ? -EIO : ScriptedFiles::Remove(path);
  }

 private:
  bool Dead() {
    if (left_ == 0) return true;
    --left_;
    return false;
  }
  uint64_t left_;
};

}  // namespace strata::storage

#endif  // STRATA_TESTS_STORAGE_CHECKPOINT_KILLED_AFTER_H_
