#include "proto/runtime/base/failpoints.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <latch>
#include <string>
#include <thread>
#include <vector>

namespace strata {
namespace {

TEST_CASE("an unarmed failpoint does nothing", "[failpoints]") {
  CHECK(Failpoint("x").ok());
  const ScopedFailpoint other("y", {.act = FailWith(absl::InternalError("y"))});
  CHECK(Failpoint("x").ok());
  CHECK(FailpointHits("x") == 0);
}

TEST_CASE("an armed failpoint acts from its first hit on, as often as planned", "[failpoints]") {
  const absl::Status error = absl::UnavailableError("disk gone");
  {
    const ScopedFailpoint fail("x", {.act = FailWith(error), .first_hit = 3, .hits = 2});
    std::string acted;
    for (int i = 0; i < 6; ++i) acted += Failpoint("x") == error ? '1' : '0';
    CHECK(acted == "001100");
    CHECK(FailpointHits("x") == 6);
  }
  CHECK(Failpoint("x").ok());
}

TEST_CASE("an armed failpoint acts at each of its hits that is a multiple from the first on",
          "[failpoints]") {
  const absl::Status error = absl::UnavailableError("disk gone");
  const ScopedFailpoint fail("x", {.act = FailWith(error), .first_hit = 2, .hits = 3, .every = 3});
  std::string acted;
  for (int i = 0; i < 12; ++i) acted += Failpoint("x") == error ? '1' : '0';
  CHECK(acted == "010010010000");
}

TEST_CASE("arming again begins anew", "[failpoints]") {
  ArmFailpoint("x", {.act = FailWith(absl::InternalError("1"))});
  CHECK(Failpoint("x").message() == "1");
  ArmFailpoint("x", {.act = FailWith(absl::InternalError("2")), .first_hit = 2});
  CHECK(Failpoint("x").ok());
  CHECK(Failpoint("x").message() == "2");
  DisarmAllFailpoints();
  CHECK(Failpoint("x").ok());
}

TEST_CASE("a failpoint may hold a thread at its place", "[failpoints]") {
  std::latch there(1);
  std::latch go(1);
  const ScopedFailpoint hold("x", {.act = [&] {
                               there.count_down();
                               go.wait();
                               return absl::OkStatus();
                             }});
  std::atomic<bool> passed{false};
  std::thread thread([&] { passed = Failpoint("x").ok(); });
  there.wait();
  CHECK(!passed);
  CHECK(FailpointHits("x") == 1);  // others are not blocked
  go.count_down();
  thread.join();
  CHECK(passed);
}

TEST_CASE("every hit of several threads counts once", "[failpoints]") {
  const ScopedFailpoint fail("x", {.act = FailWith(absl::InternalError("")), .hits = 100});
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) failed += Failpoint("x").ok() ? 0 : 1;
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(failed == 100);
  CHECK(FailpointHits("x") == 4000);
}

// What a process that hits "x" three times ends with.
int EndOf(const std::string& text) {
  const pid_t child = fork();
  if (child == 0) {
    if (!ArmFailpointsFromText(text).ok()) _exit(99);
    for (int i = 0; i < 3; ++i) {
      if (!Failpoint("x").ok()) _exit(50 + i);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

TEST_CASE("a process takes failpoints as text", "[failpoints]") {
  CHECK(EndOf("") == 0);
  CHECK(EndOf("other=kill") == 0);
  CHECK(EndOf("x=kill@3") == -SIGKILL);
  CHECK(EndOf("x=kill@4") == 0);
  CHECK(EndOf("x=exit(7)") == 7);
  CHECK(EndOf("x=error(UNAVAILABLE)@2") == 51);
  CHECK(EndOf("a=exit(1)@9*2;x=exit(8)@2*1") == 8);
  CHECK(EndOf("x=exit(8)@1*1/5") == 8);
  CHECK(EndOf("x=error(UNAVAILABLE)@3*2/2") == 52);
}

TEST_CASE("a process stops itself where it is told to, and goes on when it may", "[failpoints]") {
  const pid_t child = fork();
  if (child == 0) {
    if (!ArmFailpointsFromText("x=stop@2*1").ok()) _exit(99);
    for (int i = 0; i < 3; ++i) {
      if (!Failpoint("x").ok()) _exit(50 + i);
    }
    _exit(7);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, WUNTRACED) == child);
  CHECK(WIFSTOPPED(status));
  kill(child, SIGCONT);
  REQUIRE(waitpid(child, &status, WUNTRACED) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 7);
}

TEST_CASE("wrong text arms nothing and says what is wrong", "[failpoints]") {
  for (const char* text : {"x", "=kill", "x=", "x=burn", "x=kill@0", "x=kill@many", "x=kill*0",
                           "x=kill/0", "x=exit(256)", "x=exit(-1)", "x=error(NO_SUCH_CODE)"}) {
    const std::string two = std::string("good=exit(1);") + text;
    const absl::Status status = ArmFailpointsFromText(two);
    INFO(text << ": " << status.ToString());
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK(Failpoint("good").ok());  // or this process would end
  }
}

}  // namespace
}  // namespace strata
