// Admission and removal in shards against an account that keeps rows in a map and looks at all of
// them at every step: the same rows, bit for bit, whatever the shards, tiers and restarts.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ops/optimizer.h"
#include "server/shard.h"
#include "server/table_memory.h"
#include "storage/rocks_tier.h"
#include "storage/row_hash.h"
#include "tests/server/shard_fixture.h"

namespace strata::server {
namespace {

constexpr uint32_t kDim = 3;
constexpr uint64_t kSteps = 48;

TableSpec Table(const LifeCycleRules& rules) {
  TableSpec t;
  t.id = TableId(0);
  t.name = "features";
  t.segments = {{"a", 2, {InitializerType::kNormal, 0.5f}, {OptimizerType::kAdagrad, 0.1f}},
                {"b", 1, {}, {OptimizerType::kSgd, 0.25f}}};
  t.life_cycle = rules;
  return t;
}

using Push = std::map<Position, std::vector<float>>;  // gradients, then counts

Push PushOf(const TableSpec& table, uint64_t seed, uint64_t step) {
  std::mt19937_64 random(seed * 7919 + step);
  Push push;
  for (int i = 0; i < 40; ++i) {
    // Some keys come often, most seldom; both ends of the keys and of the positions are among them.
    const uint64_t n = random() % 4 == 0 ? random() % 12 : random() % 400;
    const uint64_t key = n == 0 ? 0 : n == 1 ? ~uint64_t{0} : n * 1000003;
    std::vector<float> row;
    for (uint32_t d = 0; d < kDim; ++d) row.push_back(static_cast<float>(random() % 64) / 32 - 1);
    if (random() % 50 == 0) row.assign(kDim, std::numeric_limits<float>::quiet_NaN());
    const auto shows = static_cast<float>(1 + random() % 5);
    if (table.life_cycle.scored()) {
      row.push_back(shows);
      row.push_back(random() % 3 == 0 ? 1.0f : 0.0f);
    }
    push[n == 2 ? Position(0) : n == 3 ? Position(~0ull) : table.PositionOfKey(Key(key))] = row;
  }
  return push;
}

class Account {
 public:
  explicit Account(const TableSpec& table)
      : table_(table),
        layout_(storage::RowLayout::For(table)),
        filter_(table.life_cycle.admission, table.id, kSeed, Partitioning(kPartitions)) {}

  void Step(const Push& push, uint64_t step, uint64_t examples) {
    for (const auto& [p, sums] : push) {
      if (!rows_.contains(p) && !Admitted(p, step)) continue;
      Update(p, sums, step, examples);
    }
    const RemovalRules& r = table_.life_cycle.removal;
    if (!r.any()) return;
    for (uint32_t part = 0; part < kPartitions; ++part) {
      if (part % r.every_steps == step % r.every_steps) Look(PartitionId(part), step);
    }
  }

  std::vector<float> Weights(Position p) const {
    std::vector<float> out(kDim);
    const auto it = rows_.find(p);
    if (it == rows_.end()) {
      storage::InitialWeights(table_, layout_, kSeed, table_.KeyAtPosition(p), out.data());
    } else {
      std::memcpy(out.data(), it->second.data(), kDim * 4);
    }
    return out;
  }

  storage::HashSum Hash() const {
    storage::HashSum sum;
    for (const auto& [p, row] : rows_) {
      sum += storage::HashRow(table_.id, table_.KeyAtPosition(p), row);
    }
    return sum;
  }

  LifeCycleCounters counters;

 private:
  bool Admitted(Position p, uint64_t step) {
    const AdmissionRules& a = table_.life_cycle.admission;
    if (a.type == AdmissionType::kAlways) return true;
    bool yes;
    if (a.type == AdmissionType::kExact) {
      yes = ++steps_[p] == a.min_steps;
      if (yes) steps_.erase(p);
    } else {
      yes = filter_.Admit(p, table_.KeyAtPosition(p), step);  // has a test of its own
    }
    ++(yes ? counters.admitted : counters.refused);
    return yes;
  }

  void Update(Position p, std::vector<float> sums, uint64_t step, uint64_t examples) {
    std::vector<uint8_t> row(layout_.row_bytes());
    const auto known = rows_.find(p);
    if (known != rows_.end()) {
      row = known->second;
    } else {
      storage::InitialRow(table_, layout_, kSeed, table_.KeyAtPosition(p), row.data());
    }
    bool applied = false;
    for (const storage::SegmentLayout& s : layout_.segments) {
      const ops::StepScalars scalars = ops::ScalarSource(s.optimizer).At(step, examples);
      float* weights = reinterpret_cast<float*>(row.data()) + s.weight_offset;
      float* state = reinterpret_cast<float*>(row.data()) + s.state_offset;
      uint8_t outcome = 0;
      ops::ApplyRows(s.optimizer, scalars, s.dim, 1, &weights, &state,
                     sums.data() + s.weight_offset, sums.size(), &outcome);
      applied |= outcome != ops::kRowRefused;
    }
    if (!applied) return;
    storage::RowMeta meta;
    std::memcpy(&meta, &row[layout_.meta_offset()], sizeof meta);
    if (table_.life_cycle.scored()) {
      const RemovalRules& r = table_.life_cycle.removal;
      const auto score = static_cast<float>(Decayed(row, step) + r.show_weight * sums[kDim] +
                                            r.click_weight * sums[kDim + 1]);
      std::memcpy(&row[layout_.score_offset()], &score, 4);
    }
    meta = {static_cast<uint32_t>(step), meta.updates + 1};
    std::memcpy(&row[layout_.meta_offset()], &meta, sizeof meta);
    rows_[p] = row;
  }

  // Decay is a power of two here, so that the order of multiplications does not matter.
  double Decayed(const std::vector<uint8_t>& row, uint64_t step) const {
    const RemovalRules& r = table_.life_cycle.removal;
    float score;
    std::memcpy(&score, &row[layout_.score_offset()], 4);
    double out = score;
    for (uint64_t t = Last(row) + 1; t <= step; ++t) {
      if (t % r.decay_steps == 0) out *= r.decay;
    }
    return out;
  }

  uint64_t Last(const std::vector<uint8_t>& row) const {
    uint32_t last;
    std::memcpy(&last, &row[layout_.meta_offset()], 4);
    return last;
  }

  RemovalRule RuleFor(const std::vector<uint8_t>& row, uint64_t step) const {
    const RemovalRules& r = table_.life_cycle.removal;
    uint32_t updates;
    std::memcpy(&updates, &row[layout_.meta_offset() + 4], 4);
    const uint64_t idle = step - Last(row);
    float w[kDim];
    std::memcpy(w, row.data(), sizeof w);
    if (r.ttl_steps != 0 && idle > r.ttl_steps) return RemovalRule::kTtl;
    if (updates < r.count_below && idle >= r.count_idle_steps) return RemovalRule::kCount;
    if (r.scored && static_cast<float>(Decayed(row, step)) < r.score_below) {
      return RemovalRule::kScore;
    }
    double squares = 0;
    for (const double x : w) squares += x * x;
    if (squares < double{r.norm_below} * r.norm_below && idle >= r.norm_idle_steps) {
      return RemovalRule::kNorm;
    }
    return RemovalRule::kNone;
  }

  void Look(PartitionId part, uint64_t step) {
    const Partitioning partitions(kPartitions);
    std::vector<std::tuple<float, int64_t, Position>> left;
    const auto remove = [&](Position p, RemovalRule rule) {
      rows_.erase(p);
      ++counters.removed[static_cast<size_t>(rule)];
    };
    const auto rows = rows_;
    for (const auto& [p, row] : rows) {
      if (partitions.Of(p) != part) continue;
      const RemovalRule rule = RuleFor(row, step);
      if (rule != RemovalRule::kNone) {
        remove(p, rule);
        continue;
      }
      const float score =
          table_.life_cycle.scored() ? static_cast<float>(Decayed(row, step)) : 0.0f;
      left.emplace_back(score, -static_cast<int64_t>(step - Last(row)), p);
    }
    const uint64_t budget = table_.life_cycle.removal.partition_bytes;
    if (budget == 0) return;
    std::sort(left.begin(), left.end());
    for (size_t i = 0; i < left.size() && (left.size() - i) * layout_.row_bytes() > budget; ++i) {
      remove(std::get<2>(left[i]), RemovalRule::kBytes);
    }
  }

  const TableSpec table_;
  const storage::RowLayout layout_;
  AdmissionFilter filter_;
  std::map<Position, uint32_t> steps_;
  std::map<Position, std::vector<uint8_t>> rows_;
};

struct Case {
  std::string name;
  LifeCycleRules rules;
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  {
    LifeCycleRules r;
    r.admission = {AdmissionType::kExact, 2, 1, 1 << 16};
    r.removal.every_steps = 3;
    r.removal.ttl_steps = 9;
    r.removal.count_below = 3;
    r.removal.count_idle_steps = 5;
    cases.push_back({"exact, ttl, count", r});
  }
  {
    LifeCycleRules r;
    r.admission = {AdmissionType::kCounting, 3, 1, 256};
    r.removal.every_steps = 1;
    r.removal.norm_below = 0.4f;
    r.removal.norm_idle_steps = 2;
    r.removal.partition_bytes = 6 * 36;
    cases.push_back({"counting, norm, bytes", r});
  }
  {
    LifeCycleRules r;
    r.admission.type = AdmissionType::kProbability;
    r.admission.probability = 0.4f;
    r.removal.every_steps = 5;
    r.removal.scored = true;
    r.removal.score_below = 0.25f;
    r.removal.show_weight = 0.125f;
    r.removal.click_weight = 1;
    r.removal.decay = 0.5f;
    r.removal.decay_steps = 4;
    r.removal.partition_bytes = 3 * 32;
    cases.push_back({"probability, score, bytes", r});
  }
  return cases;
}

struct Setup {
  uint32_t shards = 1;
  bool limited = false;
  storage::RowTier* tier = nullptr;
  storage::UpdateLog* log = nullptr;
};

std::vector<std::unique_ptr<Shard>> MakeShards(const TableSpec& table, const Setup& setup) {
  std::vector<std::unique_ptr<Shard>> shards;
  for (uint32_t i = 0; i < setup.shards; ++i) {
    ShardOptions o;
    o.job = JobId(1);
    o.generation = Generation(1);
    o.map_epoch = MapEpoch(1);
    o.id = ShardId(i);
    o.partitioning = Partitioning(kPartitions);
    o.range = Ranges(setup.shards)[i];
    o.tables = {table};
    o.seed = kSeed;
    o.log = setup.log;
    const Position first = o.partitioning.First(o.range.first);
    const Position last = o.partitioning.Last(o.range.last);
    const uint64_t dram = setup.limited ? LeastDramBytesPerServer({table}, 1) : 0;
    auto memory = DivideMemory(o.tables, first, last, dram, 1);
    REQUIRE(memory.ok());
    auto rows = MakeTables(o.tables, first, last, *memory, setup.tier);
    REQUIRE(rows.ok());
    shards.push_back(std::make_unique<Shard>(std::move(o), *std::move(rows)));
  }
  return shards;
}

void Commit(Shard& shard, const Push& push, uint64_t step, uint64_t examples) {
  struct Owned {
    std::vector<Position> positions;
    std::vector<float> values;
  };
  auto owned = std::make_shared<Owned>();
  for (const auto& [p, row] : push) {
    if (p < shard.first_position() || shard.last_position() < p) continue;
    owned->positions.push_back(p);
    owned->values.insert(owned->values.end(), row.begin(), row.end());
  }
  ShardUpdate update;
  update.examples = examples;
  update.tables.push_back({owned->positions, owned->values.data(), owned});
  REQUIRE(shard.Contribute(Step(step), {0, 1}, std::move(update)).verdict == GateVerdict::kHeld);
  auto done = shard.TryCommit();
  INFO(done.status());
  REQUIRE(done.ok());
  REQUIRE(*done);
}

storage::HashSum HashOf(const std::vector<std::unique_ptr<Shard>>& shards) {
  storage::HashSum sum;
  for (const auto& s : shards) {
    auto summary = s->Summarize();
    REQUIRE(summary.ok());
    sum += summary->hash;
  }
  return sum;
}

// Every key that was ever pushed reads as the account says, after the step and before it.
void CheckReads(Shard& shard, const std::set<Position>& known, const Account& before,
                const Account& after) {
  std::vector<Position> asked;
  for (const Position p : known) {
    if (shard.first_position() <= p && p <= shard.last_position()) asked.push_back(p);
  }
  std::vector<float> now(asked.size() * kDim), then(asked.size() * kDim);
  REQUIRE(shard.Read(TableId(0), asked, now.data()).ok());
  REQUIRE(shard.ReadPreimages(TableId(0), asked, then.data()).ok());
  for (size_t i = 0; i < asked.size(); ++i) {
    REQUIRE(std::memcmp(after.Weights(asked[i]).data(), &now[i * kDim], kDim * 4) == 0);
    REQUIRE(std::memcmp(before.Weights(asked[i]).data(), &then[i * kDim], kDim * 4) == 0);
  }
}

// Steps first .. last of `shards`, checked at each step.
void Train(std::vector<std::unique_ptr<Shard>>& shards, const std::vector<Account>& accounts,
           const TableSpec& table, uint64_t first, uint64_t last) {
  std::set<Position> known;
  for (uint64_t step = 1; step <= last; ++step) {
    const Push push = PushOf(table, 1, step);
    for (const auto& [p, row] : push) known.insert(p);
    if (step < first) continue;
    for (auto& s : shards) {
      Commit(*s, push, step, 1 + step % 3);
      CheckReads(*s, known, accounts[step - 1], accounts[step]);
    }
    INFO("step " << step);
    REQUIRE(HashOf(shards) == accounts[step].Hash());
  }
}

std::vector<Account> Accounts(const TableSpec& table) {
  std::vector<Account> accounts = {Account(table)};
  for (uint64_t step = 1; step <= kSteps; ++step) {
    accounts.push_back(accounts.back());
    accounts.back().Step(PushOf(table, 1, step), step, 1 + step % 3);
  }
  return accounts;
}

TEST_CASE("rows live and die as the account says, whatever the shards and tiers",
          "[shard_life_cycle]") {
  TempFolder folder;
  int round = 0;
  for (const Case& c : Cases()) {
    INFO(c.name);
    const TableSpec table = Table(c.rules);
    const std::vector<Account> accounts = Accounts(table);
    const LifeCycleCounters& expected = accounts.back().counters;
    REQUIRE(expected.admitted > 0);
    REQUIRE(expected.refused > 0);
    for (const uint32_t count : {1u, 3u}) {
      for (const bool limited : {false, true}) {
        auto tier =
            storage::OpenRocksTier({.directory = folder.path() + "/tier-" + std::to_string(round++),
                                    .partitions = kPartitions});
        REQUIRE(tier.ok());
        auto shards = MakeShards(table, {count, limited, tier->get()});
        Train(shards, accounts, table, 1, kSteps);
        LifeCycleCounters sum;
        for (const auto& s : shards) sum += s->life_cycle();
        CHECK(sum == expected);
      }
    }
    // Every rule of the case did something.
    const RemovalRules& r = c.rules.removal;
    const auto removed = [&](RemovalRule rule) {
      return expected.removed[static_cast<size_t>(rule)] > 0;
    };
    CHECK(removed(RemovalRule::kTtl) == (r.ttl_steps > 0));
    CHECK(removed(RemovalRule::kCount) == (r.count_below > 0));
    CHECK(removed(RemovalRule::kScore) == r.scored);
    CHECK(removed(RemovalRule::kNorm) == (r.norm_below > 0));
    CHECK(removed(RemovalRule::kBytes) == (r.partition_bytes > 0));
  }
}

TEST_CASE("images, logs and checkpoints carry the life cycle", "[shard_life_cycle]") {
  int round = 0;
  for (const Case& c : Cases()) {
    INFO(c.name);
    const TableSpec table = Table(c.rules);
    const std::vector<Account> accounts = Accounts(table);
    for (const uint64_t died : {uint64_t{7}, uint64_t{20}, uint64_t{33}}) {
      TempFolder folder;
      const std::string image = folder.path() + "/image";
      {
        auto log = OpenLog(folder.path() + "/log");
        auto shards = MakeShards(table, {1, false, nullptr, log.get()});
        Train(shards, accounts, table, 1, died - 5);
        REQUIRE(shards[0]->WriteImage(image, 0).ok());
        Train(shards, accounts, table, died - 4, died);
      }
      // Recovered: an image, and the steps after it from the log.
      auto log = OpenLog(folder.path() + "/log");
      auto shards = MakeShards(table, {1, false, nullptr, log.get()});
      auto reader = storage::ShardFileReader::Open(image);
      REQUIRE(reader.ok());
      REQUIRE(shards[0]->LoadImage(**reader).ok());
      REQUIRE(log->Replay(0, [&](const storage::LogRecordView& r) { return shards[0]->Replay(r); })
                  .ok());
      REQUIRE(shards[0]->clock() == Step(died));
      std::set<Position> known;
      for (const auto& [p, row] : PushOf(table, 1, died)) known.insert(p);
      CheckReads(*shards[0], known, accounts[died - 1], accounts[died]);
      Train(shards, accounts, table, died + 1, died + 4);
      // A checkpoint of it, on other numbers of shards.
      const std::string path = folder.path() + "/checkpoint-" + std::to_string(round++);
      REQUIRE(shards[0]->WriteCheckpoint(path, Step(died + 4)).ok());
      auto checkpoint = storage::ShardFileReader::Open(path);
      REQUIRE(checkpoint.ok());
      auto others = MakeShards(table, {4});
      for (auto& s : others) REQUIRE(s->Restore(**checkpoint, Step(died + 4)).ok());
      Train(others, accounts, table, died + 5, kSteps);
    }
  }
}

// A table whose every call may fail: before it did anything or, where repeating is harmless, after.
class Flaky : public storage::RowTable {
 public:
  Flaky(std::unique_ptr<storage::RowTable> table, std::mt19937_64* random)
      : table_(std::move(table)), random_(random) {}

  size_t max_batch() const override { return 7; }
  absl::Status Resolve(std::span<const Position> positions, storage::Access access,
                       std::span<storage::RowRef> refs,
                       std::span<storage::RowSlot> slots) override {
    if (Fails()) return Error();
    return table_->Resolve(positions, access, refs, slots);
  }
  void Release() override { table_->Release(); }
  size_t Pin(std::span<const storage::RowSlot> slots) override { return table_->Pin(slots); }
  void Unpin(std::span<const Position> p, std::span<const storage::RowSlot> s) override {
    table_->Unpin(p, s);
  }
  absl::Status Erase(std::span<const Position> positions) override {
    if (Fails()) return Error();
    if (absl::Status s = table_->Erase(positions); !s.ok()) return s;
    return Fails() ? Error() : absl::OkStatus();
  }
  absl::Status Scan(Position first, Position last, const Visitor& visit) override {
    absl::Status s = table_->Scan(first, last, visit);
    return s.ok() && Fails() ? Error() : s;
  }
  absl::Status Flush() override { return table_->Flush(); }
  absl::StatusOr<size_t> Tidy(size_t rows) override { return table_->Tidy(rows); }
  storage::TableCounters counters() const override { return table_->counters(); }

  bool calm = false;

 private:
  bool Fails() { return !calm && (*random_)() % 4 == 0; }
  static absl::Status Error() { return absl::UnavailableError("planted"); }

  const std::unique_ptr<storage::RowTable> table_;
  std::mt19937_64* const random_;
};

TEST_CASE("commits that fail anywhere, again and again, count and remove nothing twice",
          "[shard_life_cycle]") {
  std::mt19937_64 random(9);
  for (const Case& c : Cases()) {
    INFO(c.name);
    const TableSpec table = Table(c.rules);
    const std::vector<Account> accounts = Accounts(table);
    const Position first(0), last(~0ull);
    auto memory = DivideMemory({table}, first, last, 0, 1);
    REQUIRE(memory.ok());
    auto rows = MakeTables({table}, first, last, *memory, nullptr);
    REQUIRE(rows.ok());
    auto flaky = std::make_unique<Flaky>(std::move((*rows)[0]), &random);
    Flaky& faults = *flaky;
    ShardTable shard(table, kSeed, std::move(flaky), Partitioning(kPartitions));
    uint64_t failures = 0;
    const auto until_done = [&](const std::function<absl::Status()>& work) {
      for (int i = 0; i < 10000; ++i) {
        if (work().ok()) return;
        ++failures;
      }
      FAIL("never done");
    };
    for (uint64_t step = 1; step <= kSteps; ++step) {
      std::vector<Position> positions;
      std::vector<float> values;
      for (const auto& [p, row] : PushOf(table, 1, step)) {
        positions.push_back(p);
        values.insert(values.end(), row.begin(), row.end());
      }
      shard.preimages().Clear();
      size_t done = 0;
      until_done([&] {
        return shard.Apply({positions, values.data(), nullptr}, {step, 1 + step % 3}, true, done);
      });
      PartitionId next;
      const PartitionRange all = {PartitionId(0), PartitionId(kPartitions - 1)};
      until_done([&] { return shard.Sweep(all, {.step = step, .keep_preimages = true}, next); });
      faults.calm = true;
      storage::HashSum sum;
      REQUIRE(shard.rows()
                  .Scan(first, last,
                        [&](Position p, std::span<const uint8_t> row) {
                          sum += storage::HashRow(table.id, table.KeyAtPosition(p), row);
                          return absl::OkStatus();
                        })
                  .ok());
      INFO("step " << step);
      REQUIRE(sum == accounts[step].Hash());
      std::vector<float> out(positions.size() * kDim);
      REQUIRE(shard.ReadPreimages(positions, out.data()).ok());
      for (size_t i = 0; i < positions.size(); ++i) {
        const std::vector<float> want = accounts[step - 1].Weights(positions[i]);
        REQUIRE(std::memcmp(want.data(), &out[i * kDim], kDim * 4) == 0);
      }
      faults.calm = false;
    }
    CHECK(shard.life_cycle() == accounts.back().counters);
    CHECK(failures > 200);
  }
}

}  // namespace
}  // namespace strata::server
