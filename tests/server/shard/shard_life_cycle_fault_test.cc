// The life cycle over a table whose every call may fail.
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "proto/core/partition.h"
#include "server/table/memory.h"
#include "server/table/shard_table.h"
#include "storage/row/hash.h"
#include "storage/row/table.h"
#include "tests/seed.h"
#include "tests/server/shard/life_cycle_account.h"
#include "tests/server/shard/shard_fixture.h"

namespace strata::server {
namespace {

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
          "[shard_life_cycle][seeds]") {
  const uint64_t seed = GENERATE(from_range(Seeds("life_cycle_faults", 9)));
  CAPTURE(seed);
  std::mt19937_64 random(seed);
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
