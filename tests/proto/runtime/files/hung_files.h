// Files that hang until the test lets them go, as on a mount whose server does not answer.
#ifndef STRATA_TESTS_PROTO_RUNTIME_FILES_HUNG_FILES_H_
#define STRATA_TESTS_PROTO_RUNTIME_FILES_HUNG_FILES_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "proto/core/mutex.h"
#include "proto/runtime/files/file_system.h"

namespace strata::testing {

// The kernel's files, but for calls on paths that begin with `prefix`: those do not return before
// Release. Thread-safe.
class HungFiles : public FileSystem {
 public:
  explicit HungFiles(std::string prefix) : prefix_(std::move(prefix)) {}

  // For good.
  void Release() {
    MutexLock lock(&mu_);
    released_ = true;
  }
  size_t hung() const {
    MutexLock lock(&mu_);
    return hung_;
  }
  // Returns when at least that many calls hang.
  void AwaitHung(size_t calls) {
    MutexLock lock(&mu_);
    const auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return hung_ >= calls; };
    mu_.Await(absl::Condition(&enough));
  }

  int Open(const std::string& path, int flags) override {
    Meet(path);
    return FileSystem::Open(path, flags);
  }
  int Rename(const std::string& from, const std::string& to) override {
    Meet(from);
    Meet(to);
    return FileSystem::Rename(from, to);
  }
  int Link(const std::string& from, const std::string& to) override {
    Meet(to);
    return FileSystem::Link(from, to);
  }
  int Remove(const std::string& path) override {
    Meet(path);
    return FileSystem::Remove(path);
  }
  int Look(const std::string& path, FileInfo& out) override {
    Meet(path);
    return FileSystem::Look(path, out);
  }
  int LookAtLink(const std::string& path, FileInfo& out) override {
    Meet(path);
    return FileSystem::LookAtLink(path, out);
  }
  int MayChange(const std::string& folder) override {
    Meet(folder);
    return FileSystem::MayChange(folder);
  }
  int MakeFolder(const std::string& path) override {
    Meet(path);
    return FileSystem::MakeFolder(path);
  }
  int RemoveFolder(const std::string& path) override {
    Meet(path);
    return FileSystem::RemoveFolder(path);
  }
  int List(const std::string& path, std::vector<std::string>& names) override {
    Meet(path);
    return FileSystem::List(path, names);
  }

 private:
  void Meet(const std::string& path) {
    if (!absl::StartsWith(path, prefix_)) return;
    MutexLock lock(&mu_);
    ++hung_;
    mu_.Await(absl::Condition(&released_));
    --hung_;
  }

  const std::string prefix_;
  mutable Mutex mu_;
  size_t hung_ ABSL_GUARDED_BY(mu_) = 0;
  bool released_ ABSL_GUARDED_BY(mu_) = false;
};

// The process's files hang below `prefix` while it lives.
class Hang {
 public:
  explicit Hang(const std::string& prefix) {
    // For good: who wakes up is still in them.
    static std::vector<std::unique_ptr<HungFiles>> all;
    files_ = all.emplace_back(std::make_unique<HungFiles>(prefix)).get();
    FileSystem::ReplaceKernel(files_);
  }
  ~Hang() {
    files_->Release();
    FileSystem::ReplaceKernel(nullptr);
  }
  HungFiles* operator->() { return files_; }

 private:
  HungFiles* files_;
};

}  // namespace strata::testing

#endif  // STRATA_TESTS_PROTO_RUNTIME_FILES_HUNG_FILES_H_
