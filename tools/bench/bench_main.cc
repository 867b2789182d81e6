// strata-bench: runs benchmarks by name. tools/bench/run builds and calls it.
#include <glog/logging.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "proto/runtime/daemon/allocator.h"
#include "proto/runtime/transport/process_tls.h"
#include "tools/bench/base/figure.h"
#include "tools/bench/checkpoint/bench.h"
#include "tools/bench/checkpoint/log_bench.h"
#include "tools/bench/checkpoint/restart_bench.h"
#include "tools/bench/daemons/failover_bench.h"
#include "tools/bench/daemons/idle_bench.h"
#include "tools/bench/data/file_bench.h"
#include "tools/bench/data/generate_bench.h"
#include "tools/bench/data/parse_bench.h"
#include "tools/bench/hit_rate/bench.h"
#include "tools/bench/ssd/bench.h"
#include "tools/bench/table/bench.h"
#include "tools/bench/train/bench.h"
#include "tools/bench/train/cluster_bench.h"
#include "tools/bench/train/tiered_bench.h"
#include "tools/bench/wire/bench.h"
#include "tools/bench/wire/echo_server.h"
#include "tools/bench/wire/guarantees_bench.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::bench {
namespace {

std::vector<NamedBenchmark> All() {
  std::vector<NamedBenchmark> all = WireBenchmarks();
  for (auto& b : TrainBenchmarks()) all.push_back(std::move(b));
  for (auto& b : TrainClusterBenchmarks()) all.push_back(std::move(b));
  for (auto& b : FileBenchmarks()) all.push_back(std::move(b));
  for (auto& b : ParseBenchmarks()) all.push_back(std::move(b));
  for (auto& b : GenerateBenchmarks()) all.push_back(std::move(b));
  for (auto& b : HitRateBenchmarks()) all.push_back(std::move(b));
  for (auto& b : TieredTrainingBenchmarks()) all.push_back(std::move(b));
  for (auto& b : TableBenchmarks()) all.push_back(std::move(b));
  for (auto& b : LogBenchmarks()) all.push_back(std::move(b));
  for (auto& b : RestartBenchmarks()) all.push_back(std::move(b));
  for (auto& b : CheckpointBenchmarks()) all.push_back(std::move(b));
  for (auto& b : SsdBenchmarks()) all.push_back(std::move(b));
  for (auto& b : WireGuaranteeBenchmarks()) all.push_back(std::move(b));
  for (auto& b : FailoverBenchmarks()) all.push_back(std::move(b));
  for (auto& b : IdleBenchmarks()) all.push_back(std::move(b));
  return all;
}

int List() {
  for (const NamedBenchmark& b : All()) std::printf("%-16s %s\n", b.name.c_str(), b.about.c_str());
  return 0;
}

int RunNamed(const std::vector<std::string>& names, BenchOptions options, bool json) {
  const std::vector<NamedBenchmark> all = All();
  std::vector<const NamedBenchmark*> chosen;  // before any of them runs for minutes
  for (const std::string& name : names) {
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const NamedBenchmark& b) { return b.name == name; });
    if (found == all.end()) {
      std::fprintf(stderr, "no benchmark is named %s; --list shows them\n", name.c_str());
      return 2;
    }
    chosen.push_back(&*found);
  }
  auto scratch = ScratchFolder::Make("strata-bench");
  if (!scratch.ok()) {
    std::fprintf(stderr, "%s\n", std::string(scratch.status().message()).c_str());
    return 1;
  }
  options.directory = scratch->path();
  if (!json) std::printf("%s", TableHead().c_str());
  for (const NamedBenchmark* b : chosen) {
    const absl::Status status = b->run(options, [json](const Figure& f) {
      std::printf("%s%s", (json ? ToJson(f) : ToRow(f)).c_str(), json ? "\n" : "");
      std::fflush(stdout);
    });
    if (!status.ok()) {
      std::fprintf(stderr, "%s: %s\n", b->name.c_str(), std::string(status.message()).c_str());
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace strata::bench

int main(int argc, char** argv) {
  strata::AllowTls13Alone();
  strata::TuneAllocator();
  FLAGS_logtostderr = true;
  FLAGS_minloglevel = google::GLOG_WARNING;
  google::InitGoogleLogging(argv[0]);
  CLI::App app{
      "Benchmarks of Strata. Every figure stands beside a limit measured in the same run."};
  app.footer(
      "A peer is a program in --baselines, run in turn with ours. Without one there are\n"
      "Belady's figures in hit_rate, and ps-lite's in wire_*: constants of another machine.");
  std::vector<std::string> names;
  bool list = false, json = false;
  strata::bench::BenchOptions options;
  app.add_option("names", names, "Benchmarks to run; all by default");
  app.add_flag("--list", list, "Name the benchmarks");
  app.add_flag("--json", json, "One JSON line per figure");
  app.add_option("--seconds", options.seconds, "Length of a measured window")
      ->check(CLI::PositiveNumber);
  app.add_option("--rounds", options.rounds, "Windows; the median counts")
      ->check(CLI::PositiveNumber);
  app.add_option("--baselines", options.baselines, "Folder of peer programs, run in turn with ours")
      ->check(CLI::ExistingDirectory);
  std::string echo;
  size_t echo_reply = 0;
  app.add_option("--echo", echo)
      ->group("");  // hidden: the transport's limit runs this program again
  app.add_option("--echo-reply", echo_reply)->group("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  if (!echo.empty()) return strata::bench::RunEchoServer(echo, echo_reply);
  if (list) return strata::bench::List();
  if (names.empty()) {
    for (const auto& b : strata::bench::All()) names.push_back(b.name);
  }
  return strata::bench::RunNamed(names, options, json);
}
