// Checkpoints while training goes on: shards, their disks and the scheduler's orders move in random
// order; most cuts are interrupted by a disk that fails, by an order that is taken back, or by the
// end of a process. One shard's features lie below DRAM, but for a few. Every checkpoint that
// became complete is the serial account's model of its step, to the last byte of weights, state and
// metadata, and its pairs of weights sum to zero.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/runtime/base/executor.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/runtime/base/manual_timer.h"
#include "server/shard/request.h"
#include "server/shard/runner.h"
#include "server/shard/view.h"
#include "server/table/memory.h"
#include "storage/checkpoint/shard_file.h"
#include "storage/dram/store.h"
#include "storage/row/layout.h"
#include "storage/row_file/tier.h"
#include "storage/tier/row_tier.h"
#include "tests/seed.h"
#include "tests/server/shard/shard_fixture.h"
#include "tests/temp_folder.h"

namespace strata::server {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kShards = 2;
constexpr uint32_t kTiered = 1;  // the shard with little DRAM and a row file
constexpr int kPairs = 8;

// Two positions for each pair, in different shards.
std::vector<std::pair<Position, Position>> Pairs() {
  const TableSpec features = TestTables()[0];
  const uint64_t middle = uint64_t{1} << 63;
  std::vector<Position> low, high;
  for (uint64_t k = 100000; low.size() < kPairs || high.size() < kPairs; ++k) {
    const Position p = features.PositionOfKey(Key(k));
    (p.value < middle ? low : high).push_back(p);
  }
  std::vector<std::pair<Position, Position>> pairs;
  for (int i = 0; i < kPairs; ++i) pairs.emplace_back(low[i], high[i]);
  return pairs;
}

LaneWork Work(uint64_t step) {
  LaneWork work = WorkOf(5, step, 0);
  for (const auto& [a, b] : Pairs()) {
    const auto x = static_cast<float>((step + a.value) % 7);
    work.sums[0][a] = {0, 0, 0, 0, x};
    work.sums[0][b] = {0, 0, 0, 0, -x};
  }
  return work;
}

struct Checkpoint {
  CutNumber cut = 0;
  uint64_t step = 0;
  std::string folder;
  std::vector<std::vector<CutFile>> files;  // by shard
};

// One shard's process: its executor and its disk run when the test says so.
struct Server {
  std::unique_ptr<ManualExecutor> executor;
  std::unique_ptr<ManualExecutor> disk;
  std::unique_ptr<storage::RowTier> tier;
  std::unique_ptr<ShardRunner> runner;
  std::map<CutNumber, ShardCut> answers;
};

class Sim {
 public:
  explicit Sim(uint64_t seed) : random_(seed), account_(1) {
    for (uint32_t s = 0; s < kShards; ++s) servers_.emplace_back();
    StartAll();
  }
  ~Sim() { StopAll(); }

  // One checkpoint, from the order to its end, whatever that is.
  void Attempt();
  uint64_t interrupted = 0, complete = 0, increments = 0;
  uint64_t mostly_below = 0;  // how often the shard with a tier was, when one was complete

 private:
  enum class End { kNone, kFail, kTakeBack, kKill };

  void StartAll();
  void StopAll();
  void Event(uint32_t s);
  void Push(uint32_t s);
  void Drain();
  void Check(const Checkpoint& checkpoint);
  void Restore(Shard& shard, const Checkpoint& checkpoint);
  const Reference& At(uint64_t step);
  uint64_t Clock(uint32_t s) const { return servers_[s].runner->view().clock; }
  uint64_t Newest() const { return std::max(Clock(0), Clock(1)); }

  std::mt19937_64 random_;
  TempFolder folder_;
  ManualTimer timer_;
  SnapshotPace pace_{0};
  std::vector<Server> servers_;
  std::vector<Reference> account_;  // by step
  std::vector<Checkpoint> kept_;
  CutNumber next_cut_ = 1;
};

const Reference& Sim::At(uint64_t step) {
  while (account_.size() <= step) {
    account_.push_back(account_.back());
    account_.back().Apply(Work(account_.size() - 1), account_.size() - 1);
  }
  return account_[step];
}

void Sim::Restore(Shard& shard, const Checkpoint& checkpoint) {
  for (const auto& files : checkpoint.files) {
    for (const CutFile& file : files) {
      auto reader = storage::ShardFileReader::Open(absl::StrCat(checkpoint.folder, "/", file.name));
      INFO(reader.status());
      REQUIRE(reader.ok());
      const absl::Status s = shard.Restore(**reader, Step(checkpoint.step));
      INFO(s);
      REQUIRE(s.ok());
    }
  }
}

void Sim::StartAll() {
  for (uint32_t s = 0; s < kShards; ++s) {
    Server& server = servers_[s];
    ShardSetup setup = {.range = Ranges(kShards)[s], .id = s, .lanes = 1};
    if (s == kTiered) {
      auto tier = storage::OpenRowFileTier(
          {.directory = absl::StrCat(folder_.path(), "/tier"), .partitions = kPartitions});
      INFO(tier.status());
      REQUIRE(tier.ok());
      server.tier = *std::move(tier);
      setup.tier = server.tier.get();
      setup.dram_bytes = LeastDramBytesPerServer(TestTables(), 1);
    }
    auto shard = MakeShard(setup);
    if (!kept_.empty()) Restore(*shard, kept_.back());
    server.executor = std::make_unique<ManualExecutor>();
    server.disk = std::make_unique<ManualExecutor>();
    server.answers.clear();
    ShardRunner::Options options;
    options.timer = &timer_;
    options.disk = server.disk.get();
    options.pace = &pace_;
    options.committed = [] {};
    options.cut_done = [&server](CutNumber cut, const ShardCut& result) {
      REQUIRE(server.answers.emplace(cut, result).second);
    };
    server.runner = std::make_unique<ShardRunner>(std::move(shard), std::move(options));
    server.runner->SetExecutor(server.executor.get());
  }
}

// The end of a process, but that its threads end one after the other.
void Sim::StopAll() {
  for (Server& server : servers_) {
    server.runner->Close(absl::UnavailableError("stopped"));
    server.executor->RunAll();
    server.runner->SetExecutor(nullptr);
    server.disk->RunAll();
    server.runner.reset();
    server.tier.reset();
  }
}

// More of the features' rows than twice those that DRAM has room for.
bool MostlyBelow(const ShardView& view) {
  storage::RowStoreOptions options;
  options.row_bytes = storage::RowLayout::For(TestTables()[0]).row_bytes();
  options.limit_bytes = LeastDramBytesPerServer(TestTables(), 1);
  return view.table_rows[0] > 2 * storage::RowStore::CapacityFor(options);
}

void Sim::Push(uint32_t s) {
  const uint64_t step = Clock(s) + 1;
  if (step > Clock(1 - s) + 1) return;
  At(step);
  const PartitionRange range = Ranges(kShards)[s];
  const Partitioning partitioning(kPartitions);
  wire::PushFields fields;
  fields.step = Step(step);
  PushPart part;
  part.nodes.push_back({0, 1});
  part.updates.push_back(
      UpdateFor(Work(step), partitioning.First(range.first), partitioning.Last(range.last)));
  servers_[s].runner->Push(std::make_shared<PushCall>(wire::ServerState{}, fields, 1,
                                                      [](const absl::StatusOr<Buffer>&) {}),
                           std::move(part));
}

void Sim::Event(uint32_t s) {
  switch (random_() % 4) {
    case 0:
      return Push(s);
    case 1:
      servers_[s].disk->RunOne();
      return;
    default:
      servers_[s].executor->RunOne();
  }
}

void Sim::Drain() {
  for (Server& server : servers_) {
    while (server.executor->RunAll() + server.disk->RunAll() > 0) {
    }
  }
}

void Sim::Check(const Checkpoint& checkpoint) {
  const Reference& account = At(checkpoint.step);
  const auto shards = static_cast<uint32_t>(1 + random_() % 5);
  storage::HashSum hash, share;
  size_t rows = 0;
  std::map<Position, float> weights;
  for (uint32_t s = 0; s < shards; ++s) {
    auto shard = MakeShard({.range = Ranges(shards)[s], .id = s, .lanes = 1});
    Restore(*shard, checkpoint);
    const auto summary = shard->Summarize();
    REQUIRE(summary.ok());
    hash += summary->hash;
    rows += summary->rows;
    for (const auto& [a, b] : Pairs()) {
      for (const Position p : {a, b}) {
        if (p < shard->first_position() || shard->last_position() < p) continue;
        float row[5];
        REQUIRE(shard->Read(TableId(0), std::vector<Position>{p}, row).ok());
        weights[p] = row[4];
      }
    }
  }
  REQUIRE(hash == account.Hash());
  REQUIRE(rows == account.rows());
  for (const auto& [a, b] : Pairs()) REQUIRE(weights.at(a) + weights.at(b) == 0);
  int64_t change = 0;
  for (const auto& files : checkpoint.files) {
    for (const CutFile& file : files) {
      share += file.hash;
      change += file.row_change;
    }
  }
  REQUIRE(share == account.Hash());
  REQUIRE(change == static_cast<int64_t>(account.rows()));
}

void Sim::Attempt() {
  const CutNumber cut = next_cut_++;
  CutOrder order{.cut = cut,
                 .step = Step(Newest() + 1 + random_() % 3),
                 .directory = absl::StrCat(folder_.path(), "/cut-", cut),
                 .follow = random_() % 8 != 0};
  if (!kept_.empty() && random_() % 4 != 0) order.base = kept_.back().cut;
  const End end = static_cast<End>(random_() % 4);
  const uint64_t when = random_() % 60;
  for (Server& server : servers_) server.runner->SetCuts({order});
  for (uint64_t event = 0; event < 5000; ++event) {
    if (end == End::kFail && event == when) {
      const char* const places[] = {"server.snapshot.write", "server.snapshot.finish",
                                    "server.snapshot.finished", "server.checkpoint"};
      const absl::Status why = random_() % 2 == 0
                                   ? absl::ResourceExhaustedError("no space left on device")
                                   : absl::UnavailableError("input/output error");
      ArmFailpoint(places[random_() % 4], {.act = FailWith(why), .hits = 1});
    }
    if (end == End::kTakeBack && event == when) {
      for (Server& server : servers_) server.runner->SetCuts({});
    }
    if (end == End::kKill && event == when) break;
    if (servers_[0].answers.contains(cut) && servers_[1].answers.contains(cut)) break;
    Event(static_cast<uint32_t>(random_() % kShards));
  }
  DisarmAllFailpoints();
  if (end == End::kKill && random_() % 2 == 0) {
    StopAll();
    StartAll();
    ++interrupted;
    return;
  }
  Drain();
  Checkpoint made{cut, order.step.value, order.directory, {}};
  bool whole = true;
  for (Server& server : servers_) {
    const auto it = server.answers.find(cut);
    whole &= it != server.answers.end() && it->second.outcome == ShardCut::Outcome::kDone;
    if (whole) made.files.push_back(it->second.files);
    server.runner->SetCuts({});
    server.executor->RunAll();
  }
  if (!whole) {
    ++interrupted;
    return;
  }
  ++complete;
  mostly_below += MostlyBelow(servers_[kTiered].runner->view());
  for (const auto& files : made.files) increments += files.size() > 1;
  Check(made);
  kept_.push_back(std::move(made));
  // Retention: what goes is of no concern to what stays.
  while (kept_.size() > 2) {
    fs::remove_all(kept_.front().folder);
    kept_.erase(kept_.begin());
  }
  for (const Checkpoint& c : kept_) Check(c);
}

TEST_CASE("every complete checkpoint is the model of its step", "[cut][snapshot][seeds]") {
  const uint64_t seed = GENERATE(from_range(Seeds("cut_consistency")));
  INFO("seed " << seed);
  Sim sim(seed);
  uint64_t interrupted = std::getenv("STRATA_LONG") != nullptr ? 2000 : 120;
  if (SeedsAreGiven()) interrupted = 24;
  while (sim.interrupted < interrupted) sim.Attempt();
  if (SeedsAreGiven()) return;
  CHECK(sim.complete > interrupted / 8);
  CHECK(sim.increments > 0);
  CHECK(sim.mostly_below > sim.complete / 2);
  WARN(sim.interrupted << " interrupted, " << sim.complete << " complete, " << sim.increments
                       << " files were increments");
}

}  // namespace
}  // namespace strata::server
