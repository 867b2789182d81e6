// A shard's table whose hottest rows lie in a GPU's memory, and are read and updated there: beside
// one in DRAM, commit by commit, to the bit.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "ops/codec.h"
#include "proto/core/ids.h"
#include "proto/core/table_spec.h"
#include "server/table/row_block.h"
#include "server/table/shard_table.h"
#include "server/table/snapshot.h"
#include "server/table/sums.h"
#include "storage/gpu/backend.h"
#include "storage/row/table.h"
#include "tests/server/table/gpu_table_fixture.h"

namespace strata::server {
namespace {

constexpr uint64_t kRange = 400;  // positions in use: neighbours, 7 apart
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The two tables, plain and with a GPU tier.
class Twins {
 public:
  Twins(const TableSpec& spec, uint64_t hbm_bytes, const storage::gpu::GpuBackendFactory& make_gpu)
      : spec_(spec),
        dram_(MakeTable(spec)),
        gpu_(MakeTable(spec, hbm_bytes, make_gpu)),
        rng_(spec.dim()) {}

  ShardTable& dram() { return *dram_; }
  ShardTable& gpu() { return *gpu_; }
  uint64_t applied() const { return applied_; }

  // A commit of one position in `of`; before some of them a ticket pulled the rows.
  void Step(uint64_t number, uint64_t of = 3) {
    const auto positions = Some(of);
    std::vector<float> sums(positions.size() * spec_.push_dim());
    for (float& x : sums) x = (static_cast<float>(rng_() % 2001) - 1000.0f) / 300.0f;
    for (size_t i = 0; i < sums.size(); i += 97) sums[i] = kNan;
    KeptRows kept;
    if (number % 2 == 0) {
      kept.slots.assign(positions.size(), storage::kNoRow);
      REQUIRE(gpu_->Warm(positions, kept).ok());
      Read(positions, ops::RowCodec::kFloat32, &kept);
    }
    for (ShardTable* table : {dram_.get(), gpu_.get()}) {
      table->preimages().Clear();
      size_t done = 0;
      const bool knows = table == gpu_.get() && number % 2 == 0;
      const TableSums work = {positions, sums.data(), nullptr, knows ? &kept : nullptr};
      REQUIRE(table->Apply(work, {number, 3}, true, done).ok());
    }
    applied_ += positions.size();
    Compare();
  }

  void Compare() {
    std::vector<Position> all = Some(1);
    for (const auto codec : {ops::RowCodec::kFloat32, ops::RowCodec::kBf16, ops::RowCodec::kInt8}) {
      Read(all, codec, nullptr);
    }
    std::vector<float> a(all.size() * spec_.dim()), b(a.size());
    REQUIRE(dram_->ReadPreimages(all, a.data()).ok());
    REQUIRE(gpu_->ReadPreimages(all, b.data()).ok());
    REQUIRE(std::equal(a.begin(), a.end(), b.begin()));
    REQUIRE(HashOf(*dram_) == HashOf(*gpu_));
    REQUIRE(dram_->refused_rows() == gpu_->refused_rows());
    REQUIRE(dram_->clipped_rows() == gpu_->clipped_rows());
    REQUIRE(dram_->counters().rows == gpu_->counters().rows);
    REQUIRE(dram_->life_cycle() == gpu_->life_cycle());
  }

  // One position in `of`, ascending.
  std::vector<Position> Some(uint64_t of) {
    std::vector<Position> out;
    for (uint64_t p = 0; p < kRange; ++p) {
      if (of == 1 || rng_() % of == 0) out.emplace_back(p * 7);
    }
    return out;
  }

 private:
  void Read(const std::vector<Position>& positions, ops::RowCodec codec, KeptRows* kept) {
    std::vector<uint8_t> a(positions.size() * ops::EncodedRowBytes(codec, spec_.dim()), 1);
    std::vector<uint8_t> b(a.size(), 2);
    REQUIRE(dram_->Read(positions, a.data(), {.codec = codec}).ok());
    REQUIRE(gpu_->Read(positions, b.data(), {.codec = codec, .kept = kept}).ok());
    REQUIRE(a == b);
  }

  const TableSpec spec_;
  const std::unique_ptr<ShardTable> dram_, gpu_;
  std::mt19937_64 rng_;
  uint64_t applied_ = 0;
};

TEST_CASE("rows are read and updated where they lie, by every optimizer", "[shard_table][gpu]") {
  const Backends backends;
  for (const Backend& backend : backends.all()) {
    for (const TableSpec& spec : EveryOptimizer()) {
      for (const uint64_t buckets : {1, 3, 20}) {
        INFO(backend.name << ", " << buckets << " buckets, optimizer "
                          << static_cast<int>(spec.segments[0].optimizer.type));
        Twins twins(spec, HbmBytes(spec, buckets), backend.make);
        for (uint64_t number = 1; number <= 8; ++number) twins.Step(number);
        const storage::TableCounters c = twins.gpu().counters();
        CHECK(c.hbm_gathered > 1000);
        CHECK(c.hbm_updated > twins.applied() / 2);
        CHECK(twins.dram().counters().hbm_updated == 0);
        if (buckets == 20) CHECK(c.hbm_updated == twins.applied());
        if (buckets == 1) CHECK(c.hbm_evicted > 100);
        CHECK(twins.gpu().refused_rows() > 0);
      }
    }
  }
}

TEST_CASE("rows that are pinned crowd others out, which are updated below", "[shard_table][gpu]") {
  const Backends backends;
  const TableSpec spec = TableOf({{"a", 9, {}, Spec(OptimizerType::kAdagrad)}});
  for (const Backend& backend : backends.all()) {
    INFO(backend.name);
    Twins twins(spec, HbmBytes(spec, 3), backend.make);
    uint64_t number = 1;
    while (number <= 10) twins.Step(number++);
    // Tickets that pin all that may be pinned: half of the slots.
    const size_t part = twins.gpu().rows().max_batch() / 2;
    const std::vector<Position> all = twins.Some(1);
    std::vector<KeptRows> tickets(all.size() / part);
    const auto of = [&](size_t i) { return std::span(all).subspan(i * part, part); };
    for (size_t i = 0; i < tickets.size(); ++i) {
      tickets[i].slots.assign(part, storage::kNoRow);
      REQUIRE(twins.gpu().Warm(of(i), tickets[i]).ok());
    }
    CHECK(twins.gpu().counters().pinned == twins.gpu().rows().max_batch());
    while (number <= 15) twins.Step(number++, 1);
    for (size_t i = 0; i < tickets.size(); ++i) twins.gpu().Unpin(of(i), tickets[i]);
    const storage::TableCounters c = twins.gpu().counters();
    CHECK(c.pinned == 0);
    CHECK(c.hbm_updated > 0);
    CHECK(c.hbm_updated < twins.applied());
  }
}

// What a table's snapshot says, in one block.
RowBlock All(ShardTable& table, TableSnapshot& snapshot) {
  RowBlock all;
  while (!snapshot.done()) {
    RowBlock piece;
    REQUIRE(snapshot.Next(table.rows(), piece).ok());
    all.positions.insert(all.positions.end(), piece.positions.begin(), piece.positions.end());
    all.rows.insert(all.rows.end(), piece.rows.begin(), piece.rows.end());
  }
  return all;
}

TEST_CASE("snapshots and lists of changes see rows before they change", "[shard_table][gpu]") {
  const Backends backends;
  const TableSpec spec = TableOf({{"a", 5, {}, Spec(OptimizerType::kAdam)}});
  for (const Backend& backend : backends.all()) {
    INFO(backend.name);
    Twins twins(spec, HbmBytes(spec, 5), backend.make);
    for (uint64_t number = 1; number <= 2; ++number) twins.Step(number);
    std::vector<RowBlock> moments;
    std::vector<ChangeList::Changes> changes;
    std::vector<std::unique_ptr<TableSnapshot>> snapshots;
    for (ShardTable* table : {&twins.dram(), &twins.gpu()}) {
      TableSnapshot::Options options;
      options.table = spec.id;
      options.row_bytes = table->layout().row_bytes();
      options.rows = table->counters().rows;
      options.step = 2;
      snapshots.push_back(std::make_unique<TableSnapshot>(options));
      TableSnapshot before(options);
      moments.push_back(All(*table, before));
      table->Watch(snapshots.back().get());
      table->changes().Begin(2, table->counters().rows);
    }
    for (uint64_t number = 3; number <= 6; ++number) twins.Step(number);
    size_t at = 0;
    for (ShardTable* table : {&twins.dram(), &twins.gpu()}) {
      CHECK(snapshots[at]->held() > 0);
      const RowBlock now = All(*table, *snapshots[at]);
      table->Unwatch(snapshots[at].get());
      CHECK(now.positions == moments[0].positions);
      CHECK(now.rows == moments[0].rows);
      changes.push_back(table->changes().Take());
      ++at;
    }
    CHECK(changes[0].before == changes[1].before);
    CHECK(changes[0].rows_before == changes[1].rows_before);
    for (auto& c : changes) std::sort(c.positions.begin(), c.positions.end());
    CHECK(changes[0].positions == changes[1].positions);
  }
}

TEST_CASE("admission and removal find rows where they lie", "[shard_table][gpu]") {
  const Backends backends;
  TableSpec spec = TableOf({{"a", 5, {}, Spec(OptimizerType::kAdagrad)}});
  spec.life_cycle.admission = {AdmissionType::kExact, 2, 1.0f, 1 << 16};
  for (const bool scored : {false, true}) {
    spec.life_cycle.removal.scored = scored;
    spec.life_cycle.removal.show_weight = 1.0f;
    spec.life_cycle.removal.decay = 0.9f;
    for (const Backend& backend : backends.all()) {
      INFO(backend.name << (scored ? ", with a score" : ""));
      Twins twins(spec, HbmBytes(spec, 5), backend.make);
      for (uint64_t number = 1; number <= 8; ++number) twins.Step(number);
      const storage::TableCounters c = twins.gpu().counters();
      CHECK(twins.gpu().life_cycle().refused > 0);
      CHECK(c.rows > 100);
      CHECK(c.hbm_gathered > 0);
      // Rows with a score are updated on the host.
      CHECK((c.hbm_updated == 0) == scored);
      const std::vector<Position> gone = twins.Some(4);
      REQUIRE(twins.dram().Erase(gone).ok());
      REQUIRE(twins.gpu().Erase(gone).ok());
      twins.Compare();
    }
  }
}

}  // namespace
}  // namespace strata::server
