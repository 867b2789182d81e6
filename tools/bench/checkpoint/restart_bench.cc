#include "tools/bench/checkpoint/restart_bench.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tools/bench/wire/driver.h"

namespace strata::bench {
namespace {

namespace fs = std::filesystem;

constexpr size_t kRestartRows = 14'000'000;

constexpr uint64_t kImageBytes = uint64_t{1} << 30, kLogBytes = uint64_t{256} << 20;

struct OnDisk {
  uint64_t images = 0;
  uint64_t log = 0;
  bool writing = false;  // an image
};

// What a recovery reads is put on the disk and out of the page cache.
void Chill(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
    if (!entry.is_regular_file(error)) continue;
    const int file = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    (void)::fdatasync(file);
    (void)::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    ::close(file);
  }
}

OnDisk Sizes(const std::string& folder) {
  OnDisk bytes;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (absl::EndsWith(name, ".strata")) bytes.images += entry.file_size(error);
    if (absl::EndsWith(name, ".log")) bytes.log += entry.file_size(error);
    bytes.writing |= absl::EndsWith(name, ".tmp");
  }
  return bytes;
}

// Pushes a little and waits for the images that become due, until they hold the table and the log
// behind them has kLogBytes, a quarter more at most (logBytesPerServer, where the next is due).
absl::Status Settle(WireDriver& driver) {
  const std::string folder = driver.cluster().server_folder();
  for (const absl::Time end = absl::Now() + absl::Minutes(3); absl::Now() < end;) {
    absl::SleepFor(absl::Milliseconds(200));
    const OnDisk bytes = Sizes(folder);
    if (bytes.writing) continue;
    if (bytes.images >= kImageBytes && bytes.log >= kLogBytes && bytes.log <= kLogBytes * 5 / 4) {
      return absl::OkStatus();
    }
    if (auto pushes = driver.Pushes(0.02); !pushes.ok()) return pushes.status();
  }
  return absl::InternalError("images and log do not come to their sizes");
}

absl::Status RunRestart(const BenchOptions& o, const Report& report) {
  auto driver = WireDriver::Open(
      o, {.durability = "logged", .log_bytes = "320MiB", .rows = kRestartRows, .shards = 1});
  if (!driver.ok()) return driver.status();
  if (absl::Status s = Settle(**driver); !s.ok()) return s;
  std::vector<double> seconds;
  OnDisk bytes;
  WireCluster& cluster = (*driver)->cluster();
  for (int round = 0; round < o.rounds; ++round) {
    if (absl::Status s = (*driver)->PullOnce(); !s.ok()) return s;
    cluster.KillServer();
    bytes = Sizes(cluster.server_folder());
    Chill(cluster.server_folder());
    const absl::Time from = absl::Now();
    if (absl::Status s = cluster.StartServer(); !s.ok()) return s;
    if (absl::Status s = (*driver)->PullOnce(); !s.ok()) return s;
    seconds.push_back(absl::ToDoubleSeconds(absl::Now() - from));
  }
  Figure f;
  f.bench = "restart";
  f.name = absl::StrCat("strata-server, one shard: ", bytes.images >> 20, " MiB of images, ",
                        bytes.log >> 20, " MiB of log");
  f.value = Median(seconds);
  f.unit = "s";
  f.limit = 10;
  f.limit_name = "wanted, at most";
  report(f);
  return absl::OkStatus();
}

}  // namespace

std::vector<NamedBenchmark> RestartBenchmarks() {
  return {{"restart", "a killed server, from its start to the first pull served", RunRestart}};
}

}  // namespace strata::bench
