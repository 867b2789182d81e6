#include "tools/cli/cluster/process.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <new>

#include "absl/status/statusor.h"
#include "tests/temp_folder.h"

namespace strata {
namespace {

// In memory that parent and children share.
std::atomic<int>* handled = nullptr;

void Handle(int) { ++*handled; }

TEST_CASE("a process that is told to end before it has begun ends, and not by its parent's handler",
          "[cluster]") {
  const TempFolder folder;
  void* const shared =
      mmap(nullptr, sizeof *handled, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED);
  handled = new (shared) std::atomic<int>(0);
  struct sigaction action = {}, before;
  action.sa_handler = Handle;
  REQUIRE(sigaction(SIGTERM, &action, &before) == 0);
  int ended = 0;
  constexpr int kProcesses = 300;
  for (int i = 0; i < kProcesses; ++i) {
    const absl::StatusOr<ProcessId> started =
        StartProcess({"/bin/sleep", "600"}, folder.path() + "/log");
    REQUIRE(started.ok());
    kill(started->pid, SIGTERM);
    // One that forgot it goes by the second one.
    int status = 0;
    while (waitpid(started->pid, &status, WNOHANG) == 0) kill(started->pid, SIGTERM);
    ended += WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM;
  }
  CHECK(ended == kProcesses);
  CHECK(*handled == 0);
  sigaction(SIGTERM, &before, nullptr);
  munmap(shared, sizeof *handled);
}

}  // namespace
}  // namespace strata
