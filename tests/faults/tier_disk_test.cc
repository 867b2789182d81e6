// Promises P1, P3 and P9 where rows lie below DRAM, in each SSD tier: its disk is full, its files
// are damaged while nobody looks, or under a server that runs.
#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/faults/tiered_job.h"
#include "tests/skip.h"
#include "tests/small_disk.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

namespace fs = std::filesystem;

// No seed of tests/seed.h: it would repeat no run. Which files a tier has when its servers are met,
// and what is in them, no number says. It draws where they are damaged.
constexpr uint64_t kDraws = 1;

// Turns a bit of one byte of every 512.
void FlipBits(const std::string& path, std::mt19937_64& random) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return;  // gone meanwhile
  const off_t size = lseek(fd, 0, SEEK_END);
  for (off_t block = 0; block < size; block += 512) {
    const off_t at = block + static_cast<off_t>(random() % 512);
    uint8_t byte = 0;
    if (pread(fd, &byte, 1, at) != 1) continue;
    byte ^= static_cast<uint8_t>(1 << random() % 8);
    if (pwrite(fd, &byte, 1, at) != 1) break;
  }
  close(fd);
}

// Bits, an end that is cut off, garbage behind it, or nothing at all.
void Damage(const std::string& path, std::mt19937_64& random) {
  switch (random() % 4) {
    case 0:
      return FlipBits(path, random);
    case 1:
      return fs::resize_file(path, random() % (fs::file_size(path) + 1));
    case 2:
      std::ofstream(path, std::ios::app | std::ios::binary) << std::string(5000, '\x5a');
      return;
    default:
      fs::remove(path);
  }
}

TEST_CASE("a tier that is damaged while its server is down is not looked at", "[faults][p3]") {
  std::mt19937_64 random(kDraws);
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  const TrainingJob job = TieredJob(folder->path(), 4);
  const JobStatus reference = Train(job);
  ProcessCluster cluster({.folder = folder->path() + "/cluster", .server_flags = SmallMemtables()});
  for (int round = 0; round < (LongRun() ? 40 : 2); ++round) {
    const std::string ssd = round % 2 == 0 ? "rocksdb" : "rowfile";
    INFO(ssd << ", drawn with " << kDraws << ", round " << round);
    const uint64_t id =
        cluster.SubmitAndStop(BelowDram(job, ssd), "server-1", StopAtStep(15 + random() % 10));
    AwaitRowsBelow(cluster.folder());
    for (const char* name : {"server-0", "server-1"}) cluster.Kill(name);
    const std::vector<std::string> files = TierFiles(cluster.folder());
    REQUIRE(files.size() >= 2);
    for (const std::string& file : files) Damage(file, random);
    for (const char* name : {"server-0", "server-1"}) cluster.Start(name);
    const JobStatus end = cluster.AwaitEnd(id);
    CheckSameModel(end, reference);
    CHECK(end.rollbacks() == 0);
  }
}

struct Under {
  std::string ssd, mode, durability;
};

// RocksDB may have in memory what it needs of the files; then nothing is noticed.
void DamageUnder(ProcessCluster& cluster, const Under& under, TrainingJob job,
                 const JobStatus& reference, std::mt19937_64& random) {
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_training()->set_mode(under.mode);
  spec.mutable_storage()->set_durability(under.durability);
  // async: windows, each a commit of four shards at most
  const uint64_t id = cluster.SubmitAndStop(BelowDram(job, under.ssd), "server-1",
                                            StopAtStep(under.mode == "bsp" ? 25 : 4 * 25));
  AwaitRowsBelow(cluster.folder());
  for (const std::string& file : TierFiles(cluster.folder() + "/server-0")) {
    FlipBits(file, random);
  }
  cluster.process("server-1").Signal(SIGCONT);
  const JobStatus end = cluster.AwaitEnd(id);
  INFO(Conditions(end));
  CHECK(end.state() == SUCCEEDED);
  if (under.mode == "bsp") CheckSameModel(end, reference);
  if (under.ssd == "rowfile") {
    CHECK(HasCondition(end, under.durability == "memory" ? "RolledBack" : "TierDamaged"));
    CHECK(absl::StrContains(Conditions(end), "/tier/ROWS, offset "));
  }
  if (under.durability == "logged") CHECK(end.rollbacks() == 0);
  CHECK(cluster.Running("server-0"));
}

TEST_CASE("a tier that is damaged under its server is filled afresh", "[faults][p1][p3]") {
  std::mt19937_64 random(kDraws);
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  TrainingJob job = TieredJob(folder->path(), 8);
  const JobStatus reference = Train(job);
  ProcessCluster cluster({.folder = folder->path() + "/cluster", .server_flags = SmallMemtables()});
  int round = 0;
  for (const Under& under :
       {Under{"rocksdb", "bsp", "logged"}, Under{"rowfile", "bsp", "logged"},
        Under{"rowfile", "bsp", "memory"}, Under{"rowfile", "async", "logged"}}) {
    INFO(under.ssd << ", " << under.mode << ", " << under.durability << ", drawn with " << kDraws);
    CheckpointSpec& checkpoint = *job.mutable_spec()->mutable_checkpoint();
    checkpoint.set_directory(absl::StrCat(folder->path(), "/checkpoints-", round++));
    checkpoint.set_every_steps(8);
    DamageUnder(cluster, under, job, reference, random);
  }
}

// RocksDB syncs some files when it opens the tier; a failure there is the job's.
TEST_CASE("a tier whose write or sync failed is filled afresh", "[faults][p1][p3]") {
  struct Broken {
    std::string ssd, failpoint;
  };
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  const TrainingJob job = TieredJob(folder->path(), 3);
  const JobStatus reference = Train(job);
  ProcessCluster cluster({.folder = folder->path() + "/cluster", .server_flags = SmallMemtables()});
  for (const Broken& broken : {Broken{"rowfile", "tier.sync=error(UNAVAILABLE)@5*1"},
                               Broken{"rocksdb", "tier.sync=error(UNAVAILABLE)@20*1"},
                               Broken{"rocksdb", "tier.file.write=error(UNAVAILABLE)@20*1"}}) {
    INFO(broken.ssd << ", " << broken.failpoint);
    cluster.Kill("server-1");
    cluster.Start("server-1", broken.failpoint);
    cluster.AwaitRegistered();
    const JobStatus end = cluster.AwaitEnd(cluster.Submit(BelowDram(job, broken.ssd)));
    CheckSameModel(end, reference);
    CHECK(end.rollbacks() == 0);
    CHECK(HasCondition(end, "TierDamaged"));
    if (broken.ssd == "rocksdb") {  // of which file
      CHECK(absl::StrContains(Conditions(end), cluster.folder() + "/server-1"));
      CHECK(absl::StrContains(Conditions(end), "Input/output error"));
    }
  }
}

// When a server logged `event`, in seconds of the day.
std::vector<double> TimesOf(const std::string& event, const std::string& log) {
  std::vector<double> times;
  std::ifstream in(log);
  for (std::string line; std::getline(in, line);) {
    int hours = 0, minutes = 0;
    double seconds = 0;
    if (!absl::StrContains(line, event)) continue;
    if (std::sscanf(line.c_str(), "%*s %d:%d:%lf", &hours, &minutes, &seconds) != 3) continue;
    times.push_back(hours * 3600 + minutes * 60 + seconds);
  }
  return times;
}

TEST_CASE("a row file that can never be synced is tried in measure", "[faults][p1][p3]") {
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  const TrainingJob job = TieredJob(folder->path(), 3);
  const JobStatus reference = Train(job);
  ProcessCluster cluster({.folder = folder->path() + "/cluster", .server_flags = SmallMemtables()});
  cluster.Kill("server-1");
  cluster.Start("server-1", "tier.sync=error(UNAVAILABLE)@5");
  cluster.AwaitRegistered();
  const uint64_t id = cluster.Submit(BelowDram(job, "rowfile"));
  std::vector<double> met;  // seconds of the day
  AwaitThat("it was opened three times", [&] {
    met = TimesOf("job_not_opened", cluster.folder() + "/server-1.log.err");
    return met.size() >= 3;
  });
  CHECK(std::fmod(met[2] - met[1] + 86400, 86400) >= 1.9);  // 2 s of the server's clock
  CHECK(cluster.Status(id).state() == RUNNING);
  // What lies in images and log is not what is damaged.
  CHECK(TimesOf("image_damaged", cluster.folder() + "/server-1.log.err").empty());
  cluster.KillAndStart({"server-1"});
  const JobStatus end = cluster.AwaitEnd(id);
  CheckSameModel(end, reference);
  CHECK(end.rollbacks() == 0);
}

void FillUnder(ProcessCluster& cluster, SmallDisk& disk, const Under& under,
               const TrainingJob& whole, const JobStatus& reference) {
  TrainingJob job = BelowDram(whole, under.ssd);
  job.mutable_spec()->mutable_storage()->set_durability(under.durability);
  job.mutable_spec()->mutable_storage()->set_directory(disk.path());
  disk.Fill(1 << 20);  // enough to begin with; rows below DRAM need twice that
  const uint64_t id = cluster.Submit(job);
  const JobStatus stalled =
      cluster.Await(id, [](const JobStatus& s) { return HasCondition(s, "DiskFull"); });
  INFO(Conditions(stalled));
  CHECK(stalled.state() == RUNNING);
  AwaitRowsBelow(disk.path());
  CHECK(absl::StrContains(Conditions(stalled), "No space left on device"));
  CHECK(absl::StrContains(Conditions(stalled), "free disk space"));
  CHECK(absl::StrContains(Conditions(stalled), "DiskFull: server-"));
  CHECK(absl::StrContains(Conditions(stalled), disk.path()));
  if (under.durability == "memory") {
    CHECK(absl::StrContains(Conditions(stalled), "SSD tier in " + disk.path()));
  } else {
    cluster.Kill("server-1");  // on the full disk: what is there is enough
    cluster.Start("server-1");
  }
  disk.Free();
  const JobStatus end = cluster.AwaitEnd(id);
  CheckSameModel(end, reference);
  CHECK(end.rollbacks() == 0);
  CHECK(HasCondition(end, "Recovered"));
  CHECK(cluster.Running("server-0"));
}

TEST_CASE("a full disk under a tier", "[faults][p9]") {
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  const TrainingJob job = TieredJob(folder->path(), 6);
  const JobStatus reference = Train(job);
  ProcessCluster cluster({.folder = folder->path() + "/cluster", .server_flags = SmallMemtables()});
  // Without a log, so that the tier is what meets the full disk; and with one.
  int round = 0;
  for (const Under& under : {Under{"rocksdb", "bsp", "memory"}, Under{"rowfile", "bsp", "memory"},
                             Under{"rowfile", "bsp", "logged"}}) {
    INFO(under.ssd << ", " << under.durability);
    SmallDisk disk(absl::StrCat(folder->path(), "/disk-", round++), 96 << 20);
    if (!disk.mounted()) STRATA_SKIP(disk.reason());
    FillUnder(cluster, disk, under, job, reference);
  }
}

}  // namespace
}  // namespace strata::testing
