// Linked into a test, it has the folders of the test, and of programs that the test runs, lie in
// memory. For tests that look at no disk: they would wait for one at each sync, and more than they
// compute.
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

namespace strata {
namespace {

// Where that much is free; a container may have little there.
constexpr uint64_t kLeastBytes = uint64_t{1} << 30;

class InMemory {
 public:
  InMemory() : process_(getpid()) {
    struct statvfs room;
    if (statvfs("/dev/shm", &room) != 0 || room.f_bavail * room.f_frsize < kLeastBytes) return;
    path_ = "/dev/shm/strata-test-XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) {
      path_.clear();
      return;
    }
    for (const char* name : {"TEST_TMPDIR", "TMPDIR"}) setenv(name, path_.c_str(), 1);
  }
  ~InMemory() {
    if (path_.empty() || getpid() != process_) return;
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  InMemory(const InMemory&) = delete;
  InMemory& operator=(const InMemory&) = delete;

 private:
  const pid_t process_;
  std::string path_;  // empty: folders lie where they lay
};

const InMemory in_memory;

}  // namespace
}  // namespace strata
