// Files whose paths say which call on them fails, and how.
#ifndef STRATA_TESTS_E2E_CLUSTER_FAULTY_FILES_H_
#define STRATA_TESTS_E2E_CLUSTER_FAULTY_FILES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "proto/runtime/files/file_system.h"

namespace strata::testing {

// The kernel's files, but for those below a folder "fault-CALL-ERRNO-NTH" ("fault-open-EIO-1"): of
// the calls of that name on them the nth and all later ones fail. So each of many jobs has a fault
// of its own, whatever they do beside each other. Thread-safe.
class FaultyFiles : public FileSystem {
 public:
  // A folder's name.
  static std::string NameOf(absl::string_view call, absl::string_view error, int nth);
  // An errno by its name, of those that NameOf may have.
  static int ErrorOf(absl::string_view name);

  // How many calls failed because of that folder.
  uint64_t failures(const std::string& folder) const;

  int Open(const std::string& path, int flags) override;
  void Close(int fd) override;
  ssize_t Read(int fd, std::span<uint8_t> bytes, uint64_t offset) override;
  ssize_t Write(int fd, std::span<const iovec> parts, uint64_t offset) override;
  int Truncate(int fd, uint64_t bytes) override;
  int Sync(int fd, SyncWhat what) override;
  int Reserve(int fd, uint64_t offset, uint64_t bytes) override;
  int Info(int fd, FileInfo& out) override;
  int Rename(const std::string& from, const std::string& to) override;
  int Link(const std::string& from, const std::string& to) override;
  int Remove(const std::string& path) override;
  int Look(const std::string& path, FileInfo& out) override;
  int LookAtLink(const std::string& path, FileInfo& out) override;
  int MayChange(const std::string& folder) override;
  int MakeFolder(const std::string& path) override;
  int RemoveFolder(const std::string& path) override;
  int List(const std::string& path, std::vector<std::string>& names) override;

 private:
  struct Seen {
    uint64_t calls = 0;
    uint64_t failures = 0;
  };
  // 0, or the negative errno that the path has for this call.
  int Fault(absl::string_view call, const std::string& path);
  int FaultOf(absl::string_view call, int fd);

  mutable absl::Mutex mu_;
  std::map<int, std::string> paths_ ABSL_GUARDED_BY(mu_);  // of descriptors with a fault
  std::map<std::string, Seen> seen_ ABSL_GUARDED_BY(mu_);  // by folder
};

}  // namespace strata::testing

#endif  // STRATA_TESTS_E2E_CLUSTER_FAULTY_FILES_H_
