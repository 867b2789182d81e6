#include "tools/cli/inspect/top_command.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/runtime/base/clock.h"
#include "proto/runtime/transport/process_tls.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/strata/control.pb.h"
#include "tools/cli/base/interrupt.h"
#include "tools/cli/context/connection.h"
#include "tools/cli/inspect/top_scrape.h"
#include "tools/cli/inspect/top_table.h"

namespace strata {
namespace {

constexpr absl::Duration kCallTimeout = absl::Seconds(5);
constexpr absl::Duration kScrapeTimeout = absl::Seconds(1);
// Scrapes at a time: a cluster of this many is seen in one kScrapeTimeout at most.
constexpr size_t kScrapers = 64;

// Clocks of the bsp jobs that have servers. In asynchronous modes there is no common clock: a
// server's counts the windows of all lanes, a worker's step its own.
struct Clocks {
  std::map<std::string, uint64_t> of_server;  // smallest over its shards
  std::map<uint64_t, uint64_t> newest;        // by job: largest over its shards
};

absl::StatusOr<Clocks> ReadClocks(SchedulerClient& client, const ClusterStatus& cluster) {
  std::set<uint64_t> jobs;
  for (const NodeStatus& n : cluster.nodes()) jobs.insert(n.jobs().begin(), n.jobs().end());
  Clocks clocks;
  for (uint64_t job : jobs) {
    JobRef ref;
    ref.set_job(job);
    auto shards = client.GetShards(ref, kCallTimeout);
    if (absl::IsNotFound(shards.status())) continue;  // ended since
    if (!shards.ok()) return shards.status();
    if (shards->spec().spec().training().mode() != "bsp") continue;
    for (const ShardStatus& s : shards->shards()) {
      const auto server = static_cast<int>(s.place().server());
      if (!s.has_report() || server >= shards->servers_size()) continue;
      const std::string& name = shards->servers(server).name();
      const auto at = clocks.of_server.emplace(name, s.report().clock()).first;
      at->second = std::min(at->second, s.report().clock());
      uint64_t& newest = clocks.newest[job];
      newest = std::max(newest, s.report().clock());
    }
  }
  return clocks;
}

void ScrapeInto(TopSample& sample, const std::shared_ptr<ProcessTls>& tls) {
  if (sample.metrics_address.empty()) {
    sample.trouble = "it has no metrics address (--metrics-listen)";
    return;
  }
  auto metrics =
      Scrape(sample.metrics_address, kScrapeTimeout, tls == nullptr ? nullptr : tls->source());
  sample.time = Clock::Real()->Now();
  if (metrics.ok()) {
    sample.metrics = *std::move(metrics);
  } else {
    sample.trouble = std::string(metrics.status().message());
  }
}

// Where a look goes: to the scheduler, and by `tls` (null: without) to the processes.
struct Looking {
  std::unique_ptr<SchedulerClient> client;
  std::shared_ptr<ProcessTls> tls;
};

absl::StatusOr<std::vector<TopSample>> Take(const Looking& looking) {
  SchedulerClient& client = *looking.client;
  auto cluster = client.GetCluster(kCallTimeout);
  if (!cluster.ok()) return cluster.status();
  auto clocks = ReadClocks(client, *cluster);
  if (!clocks.ok()) return clocks.status();
  std::vector<TopSample> samples;
  for (const NodeStatus& n : cluster->nodes()) {
    TopSample sample;
    sample.name = n.name();
    sample.role = n.role() == SERVER ? "server" : "worker";
    sample.alive = n.alive();
    sample.metrics_address = n.metrics_address();
    sample.time = Clock::Real()->Now();
    for (uint64_t job : n.jobs()) {
      const auto newest = clocks->newest.find(job);
      if (newest == clocks->newest.end()) continue;
      sample.newest = std::max(sample.newest.value_or(0), newest->second);
    }
    const auto clock = clocks->of_server.find(n.name());
    if (clock != clocks->of_server.end()) sample.clock = clock->second;
    samples.push_back(std::move(sample));
  }
  std::atomic<size_t> next{0};
  std::vector<std::thread> scrapers;
  const auto scrape = [&] {
    for (size_t i = next++; i < samples.size(); i = next++) {
      if (samples[i].alive) ScrapeInto(samples[i], looking.tls);
    }
  };
  for (size_t i = 0; i < std::min(kScrapers, samples.size()); ++i) scrapers.emplace_back(scrape);
  for (std::thread& t : scrapers) t.join();
  for (TopSample& sample : samples) {
    const auto step = sample.metrics.find("strata_worker_step");
    // A worker at step n has seen clock n - 1.
    if (sample.newest && step != sample.metrics.end() && step->second >= 1) {
      sample.clock = static_cast<uint64_t>(step->second) - 1;
    }
  }
  return samples;
}

// Sleeps, but not past Ctrl-C.
void Pause(absl::Duration interval, const std::atomic<bool>* interrupted) {
  const absl::Time end = Clock::Real()->Now() + interval;
  while (Clock::Real()->Now() < end && (interrupted == nullptr || !*interrupted)) {
    absl::SleepFor(std::min(absl::Milliseconds(50), end - Clock::Real()->Now()));
  }
}

void Show(const std::vector<TopRow>& rows, bool json, bool redraw) {
  if (json) {
    std::printf("%s\n", TopJson(rows, absl::Now()).c_str());
  } else {
    // Home, and each line cleared to its end: nothing flickers.
    std::string text = rows.empty() ? "no servers or workers\n" : TopTable(rows);
    if (redraw) {
      std::string clean = "\x1b[H";
      for (char c : text) clean += c == '\n' ? std::string("\x1b[K\n") : std::string(1, c);
      text = clean + "\x1b[J";
    }
    std::printf("%s", text.c_str());
  }
  std::fflush(stdout);
}

ExitCode Live(const Looking& looking, const TopOptions& options, std::vector<TopSample> before) {
  const std::atomic<bool>& interrupted = CatchInterrupts();
  const absl::Duration interval = absl::Seconds(options.interval_seconds);
  const bool redraw = !options.json;
  if (redraw) std::printf("\x1b[2J");
  Show(TopRows({}, before), options.json, redraw);
  while (true) {
    Pause(interval, &interrupted);
    if (interrupted) return kExitOk;
    auto now = Take(looking);
    if (!now.ok()) return ReportError(now.status());
    Show(TopRows(before, *now), options.json, redraw);
    before = *std::move(now);
  }
}

}  // namespace

ExitCode RunTop(const TopOptions& options) {
  auto way = FindWay(options.cluster);
  if (!way.ok()) return ReportError(way.status());
  const Looking looking{ConnectScheduler(*way), way->tls};
  auto before = Take(looking);
  if (!before.ok()) return ReportError(before.status());
  if (!options.once && isatty(STDOUT_FILENO) != 0) {
    return Live(looking, options, *std::move(before));
  }
  Pause(absl::Seconds(options.interval_seconds), nullptr);
  auto now = Take(looking);
  if (!now.ok()) return ReportError(now.status());
  const std::vector<TopRow> rows = TopRows(*before, *now);
  Show(rows, options.json, false);
  for (const TopRow& row : rows) {
    if (row.trouble.empty()) continue;
    std::fprintf(stderr, "%s: %s\n", row.name.c_str(), row.trouble.c_str());
  }
  return kExitOk;
}

}  // namespace strata
