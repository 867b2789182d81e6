// Promise P1 for the log alone: a process that appends on several threads, rotates and trims is
// killed again and again, at random moments and at every failpoint. What it was told is in the log
// is there, in order, once.
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/core/ids.h"
#include "proto/runtime/base/failpoints.h"
#include "storage/log/update_log.h"
#include "tests/seed.h"
#include "tests/skip.h"
#include "tests/storage/log/fixture.h"
#include "tests/temp_folder.h"

namespace strata::storage {
namespace {

// No seed of tests/seed.h: it would repeat no run. What several threads have appended when their
// process dies, no number says. It draws options, and how long a writer lives. One thread that dies
// at a failpoint does the same again: there is a case with seeds for it.
constexpr uint64_t kDraws = 1;
constexpr size_t kThreads = 3;
constexpr absl::Duration kPatience = absl::Seconds(60);

// Memory that outlives the writer: what it was told.
struct Told {
  std::array<std::atomic<uint64_t>, kThreads> acknowledged;  // newest record of each thread
  std::array<std::atomic<uint64_t>, kThreads> trimmed;       // records up to here may be gone
};

class SharedTold {
 public:
  SharedTold() {
    void* const memory =
        mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    told_ = new (memory) Told();
  }
  ~SharedTold() { munmap(told_, sizeof(Told)); }
  SharedTold(const SharedTold&) = delete;
  SharedTold& operator=(const SharedTold&) = delete;
  Told& operator*() const { return *told_; }
  Told* operator->() const { return told_; }
  uint64_t Sum() const {
    uint64_t sum = 0;
    for (const auto& a : told_->acknowledged) sum += a;
    return sum;
  }
  // By the thread that rotates and trims.
  uint64_t OfFirst() const { return told_->acknowledged[0]; }

 private:
  Told* told_;
};

KeptRecord RecordOfThread(size_t thread, uint64_t n) {
  KeptRecord record = RecordOf(n, (n * 131 + thread * 57) % 700);
  record.header.shard = ShardId(static_cast<uint32_t>(thread));
  return record;
}

// The writer: never returns. Exit codes tell what it could not do.
[[noreturn]] void Write(const UpdateLogOptions& options, const std::string& failpoints,
                        size_t writers, Told& told) {
  if (!ArmFailpointsFromText(failpoints).ok()) _exit(2);
  auto log = UpdateLog::Open(options);
  if (!log.ok()) _exit(3);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < writers; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t n = told.acknowledged[t] + 1;; ++n) {
        if (!Append(**log, RecordOfThread(t, n)).ok()) _exit(4);
        told.acknowledged[t] = n;
        if (t > 0 || n % 25 != 0) continue;
        const auto boundary = (*log)->Rotate();
        if (!boundary.ok()) _exit(5);
        // What was appended before the boundary is acknowledged, or is the one that a thread waits
        // for.
        for (size_t i = 0; i < kThreads; ++i) told.trimmed[i] = told.acknowledged[i] + 1;
        if (!(*log)->Trim(*boundary).ok()) _exit(6);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  _exit(7);
}

// Runs a writer until it has appended `records` more, or until a failpoint ended it; true: the
// latter. Where there is a failpoint the first thread's records count, as it alone comes to all of
// them: it may wait long while others append. Fails the test if it ends in any other way.
bool RunAndKill(const UpdateLogOptions& options, const std::string& failpoints, uint64_t records,
                const SharedTold& told, size_t writers = kThreads) {
  const auto reached = [&] { return failpoints.empty() ? told.Sum() : told.OfFirst(); };
  const uint64_t until = reached() + records;
  const pid_t writer = fork();
  REQUIRE(writer >= 0);
  if (writer == 0) Write(options, failpoints, writers, *told);
  const absl::Time give_up = absl::Now() + kPatience;
  int status = 0;
  bool ended = false;
  while (!ended && reached() < until && absl::Now() < give_up) {
    ended = waitpid(writer, &status, WNOHANG) == writer;
    if (!ended) sched_yield();
  }
  if (!ended) {
    kill(writer, SIGKILL);
    REQUIRE(waitpid(writer, &status, 0) == writer);
  }
  CAPTURE(WIFEXITED(status), WEXITSTATUS(status));
  REQUIRE(WIFSIGNALED(status));
  REQUIRE(WTERMSIG(status) == SIGKILL);
  REQUIRE(absl::Now() < give_up);
  return ended;
}

// Holds what is in the log against what was told; what is found counts from here on.
void Check(const UpdateLogOptions& options, const SharedTold& told) {
  auto log = UpdateLog::Open(options);
  INFO(log.status());
  REQUIRE(log.ok());
  std::array<uint64_t, kThreads> first{}, last{};
  for (const KeptRecord& record : MustReadAll(**log)) {
    const size_t t = record.header.shard.value;
    const uint64_t n = record.header.step.value;
    REQUIRE(t < kThreads);
    REQUIRE(record == RecordOfThread(t, n));
    if (first[t] == 0) first[t] = n;
    if (last[t] != 0) REQUIRE(n == last[t] + 1);
    last[t] = n;
  }
  for (size_t t = 0; t < kThreads; ++t) {
    const uint64_t acknowledged = told->acknowledged[t], trimmed = told->trimmed[t];
    CAPTURE(t, acknowledged, trimmed, first[t], last[t]);
    if (last[t] == 0) {
      REQUIRE(acknowledged <= trimmed);
      continue;
    }
    REQUIRE(first[t] <= trimmed + 1);
    REQUIRE(last[t] >= acknowledged);
    REQUIRE(last[t] <= acknowledged + 1);  // one append of a thread at a time
    told->acknowledged[t] = last[t];
  }
}

UpdateLogOptions OptionsOf(const std::string& directory, std::mt19937_64& random) {
  UpdateLogOptions options;
  options.directory = directory;
  options.segment_bytes = 20'000;
  if (random() % 2 == 0) options.direct_from_bytes = 0;  // in whole blocks
  if (random() % 8 == 0) options.durability = LogDurability::kSynced;
  return options;
}

TEST_CASE("a log whose writer is killed over and over", "[storage][log][crash]") {
  CAPTURE(kDraws);
  std::mt19937_64 random(kDraws);
  TempFolder folder;
  const SharedTold told;
  const int kills = LongRun() ? 2000 : 125;
  for (int i = 0; i < kills; ++i) {
    const UpdateLogOptions options = OptionsOf(folder.path() + "/log", random);
    CAPTURE(i, options.direct_from_bytes);
    RunAndKill(options, "", random() % 120, told);
    Check(options, told);
  }
}

// Returns the newest records that were found after each death.
std::vector<uint64_t> KillAtEveryFailpoint(size_t writers, int kills, std::mt19937_64 random) {
  std::vector<uint64_t> found;
  for (const char* point :
       {"log.append", "log.written", "log.rotate", "log.rotated", "log.trim", "log.trimmed"}) {
    TempFolder folder;
    const SharedTold told;
    int at_point = 0;
    for (int i = 0; i < kills; ++i) {
      const UpdateLogOptions options = OptionsOf(folder.path() + "/log", random);
      const uint64_t hit = 1 + random() % 4;
      CAPTURE(point, hit, i);
      const std::string plan = std::string(point) + "=kill@" + std::to_string(hit);
      at_point += RunAndKill(options, plan, 1'000, told, writers);
      Check(options, told);
      found.push_back(told.Sum());
    }
    CHECK(at_point == kills);
  }
  return found;
}

TEST_CASE("a log whose writer is killed at every failpoint", "[storage][log][crash]") {
  CAPTURE(kDraws);
  KillAtEveryFailpoint(kThreads, LongRun() ? 100 : 8, std::mt19937_64(kDraws));
}

TEST_CASE("a log of one thread that is killed at every failpoint, twice the same",
          "[storage][log][crash][seeds]") {
  const uint64_t seed = GENERATE(from_range(Seeds("log_failpoints")));
  CAPTURE(seed);
  const std::vector<uint64_t> found = KillAtEveryFailpoint(1, 2, std::mt19937_64(seed));
  CHECK(KillAtEveryFailpoint(1, 2, std::mt19937_64(seed)) == found);
}

}  // namespace
}  // namespace strata::storage
