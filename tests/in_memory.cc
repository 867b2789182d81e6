// Linked into a test, it has the folders of the test, and of programs that the test runs, lie in
// memory. For tests that look at no disk: they would wait for one at each sync, and more than they
// compute.
#include <signal.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace strata {
namespace {

// Where that much is free; a container may have little there.
constexpr uint64_t kLeastBytes = uint64_t{1} << 30;

constexpr char kFolder[] = "/dev/shm";
constexpr char kPrefix[] = "strata-test-";  // and the process, and what mkdtemp adds

// What tests left that were killed.
void RemoveOfTheDead() {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder, ignored)) {
    const std::string name = entry.path().filename();
    if (name.rfind(kPrefix, 0) != 0) continue;
    const long process = std::strtol(name.c_str() + sizeof(kPrefix) - 1, nullptr, 10);
    if (process <= 0 || kill(static_cast<pid_t>(process), 0) == 0 || errno != ESRCH) continue;
    std::filesystem::remove_all(entry.path(), ignored);
  }
}

class InMemory {
 public:
  InMemory() : process_(getpid()) {
    RemoveOfTheDead();
    struct statvfs room;
    if (statvfs(kFolder, &room) != 0 || room.f_bavail * room.f_frsize < kLeastBytes) return;
    path_ = std::string(kFolder) + "/" + kPrefix + std::to_string(process_) + "-XXXXXX";
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
