// Files whose system calls fail when a test says so, and which know what a power failure leaves.
#ifndef STRATA_TESTS_STORAGE_IO_SCRIPTED_FILES_H_
#define STRATA_TESTS_STORAGE_IO_SCRIPTED_FILES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "proto/core/mutex.h"
#include "proto/runtime/files/file_system.h"

namespace strata::storage {

// Everything really happens to files below a folder of the test's; this adds failures, and keeps
// beside it what the device has: bytes reach it by Sync, names by a Sync of their folder (until
// then one that was given to another file may still be that of the first). Of what was written
// since, a power failure leaves any pieces of 512 bytes; of what was written before a Sync that
// failed as well, whatever later ones say (the kernel takes such pages for clean). Thread-safe.
class ScriptedFiles : public FileSystem {
 public:
  enum class Call : uint8_t { kOpen, kRead, kWrite, kTruncate, kSync, kRename, kRemove };

  explicit ScriptedFiles(uint64_t seed) : random_(seed) {}

  // From now on: the nth such call, and the `count` - 1 after it, fail with `error`.
  void Fail(Call call, int error, uint64_t nth = 1, uint64_t count = 1);
  // The next Write takes so many bytes only.
  void ShortWrite(size_t bytes);
  uint64_t calls(Call call) const;

  // What lies in `folder` is on the device.
  void Adopt(const std::string& folder);
  // Writes into the empty folder `to` what could be left of the files in `from`.
  void PowerLoss(const std::string& from, const std::string& to);

  int Open(const std::string& path, int flags) override;
  ssize_t Read(int fd, std::span<uint8_t> bytes, uint64_t offset) override;
  ssize_t Write(int fd, std::span<const iovec> parts, uint64_t offset) override;
  int Truncate(int fd, uint64_t bytes) override;
  int Sync(int fd, SyncWhat what) override;
  int Rename(const std::string& from, const std::string& to) override;
  int Remove(const std::string& path) override;

 private:
  using Bytes = std::vector<uint8_t>;
  struct Change {
    uint64_t offset = 0;
    Bytes bytes;
    std::optional<uint64_t> truncate;  // instead
  };
  struct OnDevice {
    Bytes bytes;
    std::vector<Change> pending;
  };
  struct Plan {
    uint64_t seen = 0;
    uint64_t first = 0;  // 0: none
    uint64_t count = 0;
    int error = 0;
  };

  // 0, or the negative errno that the script has for this call.
  int Scripted(Call call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static void Apply(const Change& change, Bytes& bytes);
  Bytes SomeOf(const OnDevice& file) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable Mutex mu_;
  std::mt19937_64 random_ ABSL_GUARDED_BY(mu_);
  std::array<Plan, 7> plans_ ABSL_GUARDED_BY(mu_);
  std::optional<size_t> short_write_ ABSL_GUARDED_BY(mu_);
  std::map<int, std::string> paths_ ABSL_GUARDED_BY(mu_);  // of descriptors
  std::map<std::string, OnDevice> device_ ABSL_GUARDED_BY(mu_);
  std::set<std::string> named_ ABSL_GUARDED_BY(mu_);  // durably
  // What a name may still stand for, because it was given to another file since its folder's sync.
  std::map<std::string, OnDevice> replaced_ ABSL_GUARDED_BY(mu_);
};

}  // namespace strata::storage

#endif  // STRATA_TESTS_STORAGE_IO_SCRIPTED_FILES_H_
