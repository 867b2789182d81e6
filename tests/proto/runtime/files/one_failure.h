// Files of which one call fails once, as on a mount that does not answer for a moment.
#ifndef STRATA_TESTS_PROTO_RUNTIME_FILES_ONE_FAILURE_H_
#define STRATA_TESTS_PROTO_RUNTIME_FILES_ONE_FAILURE_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "proto/runtime/files/file_system.h"

namespace strata::testing {

// The process's files while it lives: the kernel's, but that the first such call on a path that
// ends so fails. Thread-safe.
class OneFailure : public FileSystem {
 public:
  enum class Call : uint8_t { kOpen, kLook };

  OneFailure(Call call, std::string end, int error)
      : call_(call), end_(std::move(end)), error_(error) {
    FileSystem::ReplaceKernel(this);
  }
  ~OneFailure() override { FileSystem::ReplaceKernel(nullptr); }

  // It has failed.
  bool over() const { return error_ == 0; }

  int Open(const std::string& path, int flags) override {
    const int error = Meet(Call::kOpen, path);
    return error != 0 ? -error : FileSystem::Open(path, flags);
  }
  int Look(const std::string& path, FileInfo& out) override {
    const int error = Meet(Call::kLook, path);
    return error != 0 ? -error : FileSystem::Look(path, out);
  }

 private:
  int Meet(Call call, const std::string& path) {
    return call == call_ && path.ends_with(end_) ? error_.exchange(0) : 0;
  }

  const Call call_;
  const std::string end_;
  std::atomic<int> error_;
};

}  // namespace strata::testing

#endif  // STRATA_TESTS_PROTO_RUNTIME_FILES_ONE_FAILURE_H_
