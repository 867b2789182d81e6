// A server's job killed again and again, at random moments and at named places of its log, images,
// checkpoints and tier; each time it opens from what is on disk.
//
// Oracle, after the manner of RocksDB's expected state: the writer tells of every step that was
// acknowledged, through a pipe that survives it. The next writer sends the step after the last one
// told of again, whatever became of it, and the rows of all shards must then be those of the serial
// account of exactly that many steps: a lost step or one applied twice is another hash. Checkpoint
// files that are whole must be those of their step. Features come and go: whenever a writer has
// caught up, the stream of what was removed must hold each removal of the account up to there once.
// Rows lie in either SSD tier, above a row file in half of the lives in a GPU tier too; of a row
// file the memtables are so small that it is written, merged and committed every few steps.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "proto/core/position.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/runtime/files/plain_file.h"
#include "proto/strata/checkpoint.pb.h"
#include "server/job/opening.h"
#include "storage/checkpoint/shard_file.h"
#include "storage/delta/removed_stream.h"
#include "tests/server/job/bench.h"
#include "tests/server/shard/shard_fixture.h"
#include "tests/skip.h"
#include "tests/temp_folder.h"

namespace strata::server {
namespace {

// No seed of tests/seed.h: it would repeat no run. Kills come some microseconds after a writer's
// word, and how far its threads and the disk are by then, no number says. It draws what is killed.
constexpr uint64_t kDraws = 1;
constexpr uint64_t kWork = 3;          // seed of the gradients
constexpr uint64_t kSteps = 48;        // of a job; then the next one begins
constexpr uint64_t kCutEvery = 5;      // steps
constexpr uint64_t kLogBytes = 20000;  // a round of images every few steps
constexpr uint64_t kRowFileMemtableBytes = 1024;

using Removals = std::vector<std::tuple<uint64_t, uint32_t, uint64_t>>;  // step, table, key

Removals RemovalsUpTo(uint64_t step, const std::vector<Reference>& references) {
  Removals all;
  for (uint64_t s = 1; s <= step; ++s) {
    for (const auto& [table, p] : references[s].removed()) {
      all.emplace_back(s, table, KeyOf(p, TableSalt(TableId(table))).value);
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

Removals RemovalsIn(const std::string& folder) {
  Removals all;
  const absl::Status s = storage::ReadRemoved(folder, [&](const storage::RemovedKeys& removed) {
    for (const uint64_t key : removed.keys) {
      all.emplace_back(removed.step, removed.table.value, key);
    }
    return absl::OkStatus();
  });
  INFO(s);
  REQUIRE(s.ok());
  std::sort(all.begin(), all.end());
  return all;
}

// What one writer is given.
struct Order {
  std::string folder;
  uint64_t acknowledged = 0;
  bool row_file = false;
  bool hbm = false;        // a GPU tier above
  std::string failpoints;  // where it kills itself
};

std::string CutFolder(const std::string& folder, uint64_t step) {
  return folder + "/checkpoints/step-" + std::to_string(step);
}

// The life of a writer, in a process of its own.
class Writer {
 public:
  Writer(const Order& order, const std::vector<Reference>& references, int acknowledge)
      : order_(order), references_(references), acknowledge_(acknowledge), bench_(1) {}

  void Run() {
    JobPlan& plan = bench_.plan();
    bench_.UseFolder(order_.folder);
    const std::string opened = order_.folder + "/opened";
    plan.was_open = std::filesystem::exists(opened);  // which its scheduler was told
    plan.log_bytes = kLogBytes;
    plan.tables = TestTablesWithLifeCycle();
    plan.removed = order_.folder + "/removed";
    plan.row_file = order_.row_file;
    if (order_.row_file) plan.tier_memtable_bytes = kRowFileMemtableBytes;
    bench_.LimitDram();
    if (order_.hbm) bench_.AddHbm();
    bench_.Start();
    REQUIRE(bench_.recovered_ >= plan.was_open);
    REQUIRE(WritePlainFile(opened, "").ok());
    REQUIRE(bench_.OpenSession().ok());
    REQUIRE(ArmFailpointsFromText(order_.failpoints).ok());
    for (uint64_t step = order_.acknowledged + 1; step <= kSteps; ++step) {
      REQUIRE(bench_.PushStep(kWork, step, {{0, 1}}).ok());
      // Serving the next step is the acknowledgement.
      auto reply = bench_.Pull(step + 1, 0);
      bench_.CheckServed(*reply, references_[step]);
      if (step == order_.acknowledged + 1) {
        REQUIRE(bench_.Hash(step) == references_[step].Hash());
        REQUIRE(RemovalsIn(plan.removed) == RemovalsUpTo(step, references_));
      }
      REQUIRE(write(acknowledge_, &step, sizeof step) == sizeof step);
      if (step % kCutEvery == 0) bench_.Checkpoint(step, CutFolder(order_.folder, step));
    }
    bench_.Stop();
    REQUIRE(RemovalsIn(plan.removed) == RemovalsUpTo(kSteps, references_));
  }

 private:
  const Order order_;
  const std::vector<Reference>& references_;
  const int acknowledge_;
  JobBench bench_;
};

struct Death {
  uint64_t acknowledged = 0;
  bool killed = false;
};

// Runs a writer; kills it `kill_after` acknowledgements and some microseconds later, unless it
// ended before. Fails the test where the writer found something wrong.
Death RunWriter(const Order& order, const std::vector<Reference>& references,
                std::optional<uint64_t> kill_after, uint32_t kill_delay_us) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    close(ends[0]);
    int code = 0;
    try {
      Writer(order, references, ends[1]).Run();
    } catch (...) {  // a REQUIRE; it has printed what it found
      code = 9;
    }
    _exit(code);
  }
  close(ends[1]);
  Death death;
  death.acknowledged = order.acknowledged;
  uint64_t heard = 0;
  uint64_t step = 0;
  while (true) {
    if (kill_after && heard == *kill_after) {
      if (kill_delay_us > 0) usleep(kill_delay_us);
      kill(child, SIGKILL);
    }
    if (read(ends[0], &step, sizeof step) != sizeof step) break;
    REQUIRE(step == death.acknowledged + 1);
    death.acknowledged = step;
    ++heard;
  }
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  death.killed = WIFSIGNALED(status);
  INFO("folder " << order.folder << ", acknowledged " << order.acknowledged << ", failpoints '"
                 << order.failpoints << "', status " << status);
  REQUIRE((WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0));
  return death;
}

// Every checkpoint file that has its name is whole, and holds its step; others are absent. Returns
// how many there are.
size_t CheckCheckpoints(const std::string& folder, const std::vector<Reference>& references) {
  size_t whole = 0;
  for (uint64_t step = kCutEvery; step <= kSteps; step += kCutEvery) {
    const std::string cut = CutFolder(folder, step);
    if (!std::filesystem::exists(cut)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(cut)) {
      if (entry.path().extension() != ".strata") continue;
      INFO(entry.path().string());
      auto file = storage::ShardFileReader::Open(entry.path());
      REQUIRE(file.ok());
      auto summary = (*file)->Verify();
      REQUIRE(summary.ok());
      const storage::ShardFileHeader& h = (*file)->header();
      REQUIRE(h.clock == Step(step));
      REQUIRE(summary->hash == references[step].Hash(h.partitioning.First(h.partitions.first),
                                                     h.partitioning.Last(h.partitions.last)));
      ++whole;
    }
  }
  return whole;
}

std::vector<std::string> Places(bool row_file) {
  std::vector<std::string> places = {
      "server.commit.append",
      "server.commit.appended",
      "server.commit.applied",
      "removed.end",
      "removed.ended",
      "log.append",
      "log.written",
      "log.rotate",
      "log.rotated",
      "log.trim",
      "log.trimmed",
      "server.image",
      "server.image.remove",
      "server.checkpoint",
      "server.snapshot.write",
      "server.snapshot.finish",
      "server.snapshot.finished",
      "tier.write",
      "tier.written",
  };
  if (row_file) {
    places.insert(places.end(),
                  {"tier.flush", "tier.merge", "tier.sync", "tier.manifest", "tier.committed"});
  }
  return places;
}

TEST_CASE("no kill loses an acknowledged step or applies one twice", "[crash]") {
  const bool row_file = GENERATE(false, true);
  const uint64_t kills_wanted = LongRun() ? 1500 : 80;
  INFO("drawn with " << kDraws);
  std::mt19937_64 random(kDraws);
  const std::vector<Reference> references = References(kWork, 1, kSteps, TestTablesWithLifeCycle());
  REQUIRE(RemovalsUpTo(kSteps, references).size() > kSteps);
  const std::vector<std::string> places = Places(row_file);
  uint64_t kills = 0;
  size_t checkpoints = 0;
  std::vector<uint64_t> at_place(places.size());
  // A place that is never met is a test of nothing.
  const auto enough = [&] {
    return kills >= kills_wanted && checkpoints > 0 &&
           std::find(at_place.begin(), at_place.end(), 0) == at_place.end();
  };
  for (uint64_t turn = 0; !enough();) {
    INFO("turn " << turn << ", kills at places " << Catch::Detail::stringify(at_place));
    REQUIRE(turn < 8 * kills_wanted);
    TempFolder folder;
    uint64_t acknowledged = 0;
    while (acknowledged < kSteps) {
      // The lives of one folder have it or not: what is on disk does not know of it.
      const bool hbm = row_file && random() % 2 == 0;
      Order order = {folder.path(), acknowledged, row_file, hbm, ""};
      std::optional<uint64_t> kill_after;
      // One that was not met yet, if there is one; then early, as few lives are long.
      const auto unmet = std::find(at_place.begin(), at_place.end(), 0);
      const bool fresh = unmet != at_place.end() && turn % 4 == 1;
      const size_t place =
          fresh ? static_cast<size_t>(unmet - at_place.begin()) : turn / 2 % places.size();
      if (turn % 2 == 0) {
        kill_after = random() % 8;
      } else {
        order.failpoints =
            places[place] + "=kill@" + std::to_string(1 + random() % (fresh ? 2 : 6));
      }
      ++turn;
      const auto delay_us = static_cast<uint32_t>(random() % 4000);
      const Death death = RunWriter(order, references, kill_after, delay_us);
      kills += death.killed;
      at_place[place] += death.killed && !order.failpoints.empty();
      acknowledged = death.acknowledged;
    }
    checkpoints += CheckCheckpoints(folder.path(), references);
  }
  std::fprintf(stderr, "%llu kills, %zu checkpoint files\n", static_cast<unsigned long long>(kills),
               checkpoints);
}

}  // namespace
}  // namespace strata::server
