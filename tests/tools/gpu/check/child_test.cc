// Programs run to their end, or to their limit.
#include "tools/gpu/check/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/status/status.h"
#include "tests/skip.h"
#include "tests/temp_folder.h"

namespace strata::gpu_check {
namespace {

ChildResult Shell(const std::string& folder, const std::string& script, double limit_seconds = 60,
                  const std::string& variable = "A=b") {
  const auto result =
      RunChild({{"/bin/sh", "-c", script}, {variable}, folder + "/log", limit_seconds});
  REQUIRE(result.ok());
  return *result;
}

TEST_CASE("a child's end and output are told", "[gpu_check]") {
  const TempFolder folder;
  ChildResult r = Shell(folder.path(), "echo out; echo err >&2; cat; echo $A; exit 3");
  CHECK(r.exit_code == 3);
  CHECK_FALSE(r.timed_out);
  CHECK(r.output == "out\nerr\nb\n");
  CHECK(HowItEnded(r, {}) == "exit code 3");
  r = Shell(folder.path(), "kill -9 $$");
  CHECK(r.exit_code == -1);
  CHECK(HowItEnded(r, {}) == "killed by signal 9");
  CHECK(r.output.empty());
  // What is said again replaces what this process has; the rest stays.
  REQUIRE(setenv("STRATA_CHILD_TEST", "old", 1) == 0);
  CHECK(Shell(folder.path(), "echo $STRATA_CHILD_TEST").output == "old\n");
  CHECK(Shell(folder.path(), "echo $STRATA_CHILD_TEST", 60, "STRATA_CHILD_TEST=new").output ==
        "new\n");
}

TEST_CASE("a child that is not done at its limit is killed with what it started", "[gpu_check]") {
  const TempFolder folder;
  // The grandchild's number is told; both would run for a long time.
  const ChildResult r = Shell(folder.path(), "sleep 1000 & echo $!; wait", 0.5);
  CHECK(r.timed_out);
  CHECK(r.signal == SIGKILL);
  CHECK(HowItEnded(r, {{}, {}, "", 0.5}) == "not done within 0 s");
  const int grandchild = std::atoi(r.output.c_str());
  REQUIRE(grandchild > 1);
  // It has the signal already; whoever waits for it, or for its exit, sees it end.
  bool gone = false;
  for (int i = 0; i < 100000 && !gone; ++i) {
    const std::string stat = "/proc/" + std::to_string(grandchild) + "/stat";
    const ChildResult state = Shell(folder.path(), "cat " + stat + " 2>/dev/null || echo gone");
    gone = state.output == "gone\n" || state.output.find(") Z ") != std::string::npos;
  }
  CHECK(gone);
}

// The log is a pipe: it ends when nobody is left who could write to it.
TEST_CASE("a child and what it started end with the process that runs them", "[gpu_check]") {
  const TempFolder folder;
  const std::string log = folder.path() + "/log";
  REQUIRE(mkfifo(log.c_str(), 0600) == 0);
  const pid_t runner = fork();
  REQUIRE(runner >= 0);
  if (runner == 0) {
    (void)RunChild({{"/bin/sh", "-c", "sleep 1000 & echo on; wait"}, {}, log, 1000});
    _exit(0);
  }
  const int said = open(log.c_str(), O_RDONLY);
  char text[16] = {};
  REQUIRE(read(said, text, sizeof text) == 3);
  REQUIRE(kill(runner, SIGKILL) == 0);
  REQUIRE(waitpid(runner, nullptr, 0) == runner);
  struct pollfd ended = {said, POLLIN, 0};
  constexpr int kMostMs = 60000;
  CHECK(poll(&ended, 1, kMostMs) == 1);
  CHECK((ended.revents & POLLHUP) != 0);
  close(said);
}

// A process that is traced ends for its parent when its tracer has seen it end: until then it is as
// one that a driver does not let go.
TEST_CASE("a child that is killed and does not go is given up", "[gpu_check]") {
  const TempFolder folder;
  const std::string log = folder.path() + "/log", told = folder.path() + "/told";
  REQUIRE(mkfifo(log.c_str(), 0600) == 0);
  const pid_t runner = fork();
  REQUIRE(runner >= 0);
  if (runner == 0) {
    const ChildOptions options = {
        {"/bin/sh", "-c", "echo $$; exec sleep 1000"}, {}, log, 0.5, /*give_up_seconds=*/0.25};
    const auto result = RunChild(options);
    std::ofstream(told) << (result.ok() && result->given_up && result->timed_out
                                ? HowItEnded(*result, options)
                                : "not given up");
    _exit(0);
  }
  const int said = open(log.c_str(), O_RDWR);  // so that RunChild can open it as well
  char text[16] = {};
  REQUIRE(read(said, text, sizeof text - 1) > 1);
  const pid_t child = std::atoi(text);
  REQUIRE(child > 1);
  if (ptrace(PTRACE_SEIZE, child, nullptr, nullptr) != 0) {
    kill(runner, SIGKILL);
    waitpid(runner, nullptr, 0);
    close(said);
    STRATA_SKIP("no process may be traced here");
  }
  CHECK(waitpid(runner, nullptr, 0) == runner);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  close(said);
  std::ifstream in(told);
  CHECK(std::string(std::istreambuf_iterator<char>(in), {}) ==
        "not done within 0 s, nor gone 0 s after it was killed: stuck in the driver");
  CHECK(ChildOptions().give_up_seconds == 20);
}

TEST_CASE("a child that has left its group is killed as well", "[gpu_check]") {
  const TempFolder folder;
  const ChildResult r = Shell(folder.path(), "exec setsid sleep 1000", 0.5);
  CHECK(r.timed_out);
  CHECK_FALSE(r.given_up);
  CHECK(r.signal == SIGKILL);
}

TEST_CASE("a log says at last how its child ended, and one without room is told", "[gpu_check]") {
  const TempFolder folder;
  (void)Shell(folder.path(), "echo out; exit 3");
  std::ifstream log(folder.path() + "/log");
  CHECK(std::string(std::istreambuf_iterator<char>(log), {}) == "out\n[exit code 3]\n");
  const auto full = RunChild({{"/bin/sh", "-c", "echo out; true"}, {}, "/dev/full", 60});
  CHECK(absl::IsResourceExhausted(full.status()));
  CHECK(std::string(full.status().message()) ==
        "what it said is lost: there is no room for /dev/full");
}

TEST_CASE("a program or log that is not there is named", "[gpu_check]") {
  const TempFolder folder;
  auto r = RunChild({{folder.path() + "/none"}, {}, folder.path() + "/log", 5});
  CHECK(absl::IsNotFound(r.status()));
  CHECK(std::string(r.status().message()).find("/none") != std::string::npos);
  r = RunChild({{"/bin/sh"}, {}, folder.path() + "/none/log", 5});
  CHECK(absl::IsNotFound(r.status()));
}

}  // namespace
}  // namespace strata::gpu_check
