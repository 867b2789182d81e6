// A shard's table that is read into a device's memory, and updated from there: beside one in DRAM
// that is read and updated by the host, to the bit.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/api/host_api.h"
#include "proto/core/ids.h"
#include "proto/core/table_spec.h"
#include "server/table/change_list.h"
#include "server/table/device_stage.h"
#include "server/table/row_block.h"
#include "server/table/shard_table.h"
#include "server/table/snapshot.h"
#include "server/table/sums.h"
#include "storage/gpu/backend.h"
#include "storage/gpu/device/backend.h"
#include "storage/gpu/shape.h"
#include "storage/row/table.h"
#include "tests/ops/cuda/api/failing_api.h"
#include "tests/server/table/gpu_table_fixture.h"

namespace strata::server {
namespace {

using ops::gpu::testing::FailingApi;

constexpr uint64_t kRange = 400;  // positions in use: neighbours, 7 apart
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kUnwritten = 12345.0f;

std::vector<uint32_t> Bits(const std::vector<float>& floats) {
  std::vector<uint32_t> bits(floats.size());
  std::memcpy(bits.data(), floats.data(), floats.size() * 4);
  return bits;
}

// The two tables. What stands for the device's memory are vectors of exactly the right size.
class Twins {
 public:
  Twins(const TableSpec& spec, uint64_t hbm_bytes, const storage::gpu::GpuBackendFactory& make_gpu)
      : spec_(spec),
        here_(MakeTable(spec)),
        there_(MakeTable(spec, hbm_bytes, make_gpu)),
        rng_(spec.dim()) {
    CHECK(here_->values_device().empty());
    CHECK_FALSE(there_->values_device().empty());
  }

  ShardTable& here() { return *here_; }
  ShardTable& there() { return *there_; }
  uint64_t applied() const { return applied_; }

  // A commit of one position in `of`. Before some of them a ticket pulled the rows, and some of
  // them come by the host.
  void Step(uint64_t number, uint64_t of = 3) {
    const auto positions = Some(of);
    std::vector<float> sums(positions.size() * spec_.push_dim());
    for (float& x : sums) x = (static_cast<float>(rng_() % 2001) - 1000.0f) / 300.0f;
    for (size_t i = 0; i < sums.size(); i += 97) sums[i] = kNan;
    KeptRows kept;
    const bool ticket = number % 2 == 0, by_host = number % 5 == 0;
    if (ticket) {
      kept.slots.assign(positions.size(), storage::kNoRow);
      if (number % 4 == 0) REQUIRE(there_->Warm(positions, kept).ok());
      Read(positions, &kept);
    }
    here_->preimages().Clear();
    there_->preimages().Clear();
    size_t done = 0;
    const TableSums plain = {positions, sums.data(), nullptr, nullptr};
    REQUIRE(here_->Apply(plain, {number, 3}, true, done).ok());
    TableSums work = {positions, by_host ? sums.data() : nullptr, nullptr, nullptr};
    if (!by_host) work.values_there = sums.data();
    if (ticket) work.kept = &kept;
    CheckOnHost(work, sums);
    done = 0;
    REQUIRE(there_->Apply(work, {number, 3}, true, done).ok());
    CHECK(done == positions.size());
    applied_ += positions.size();
    Compare();
  }

  void Compare() {
    const std::vector<Position> all = Some(1);
    Read(all, nullptr);
    ReadPreimages(all);
    ReadPreimages(Some(4));
    REQUIRE(HashOf(*here_) == HashOf(*there_));
    REQUIRE(here_->refused_rows() == there_->refused_rows());
    REQUIRE(here_->clipped_rows() == there_->clipped_rows());
    REQUIRE(here_->counters().rows == there_->counters().rows);
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
  void Read(const std::vector<Position>& positions, KeptRows* kept) {
    std::vector<float> a(positions.size() * spec_.dim()), b(a.size(), kUnwritten);
    REQUIRE(here_->Read(positions, a.data()).ok());
    REQUIRE(there_->Read(positions, nullptr, {.kept = kept, .there = b.data()}).ok());
    REQUIRE(Bits(a) == Bits(b));
  }
  void ReadPreimages(const std::vector<Position>& positions) {
    std::vector<float> a(positions.size() * spec_.dim()), b(a.size(), kUnwritten);
    REQUIRE(here_->ReadPreimages(positions, a.data()).ok());
    REQUIRE(there_->ReadPreimages(positions, nullptr, {.there = b.data()}).ok());
    REQUIRE(Bits(a) == Bits(b));
  }
  void CheckOnHost(const TableSums& work, const std::vector<float>& sums) {
    const auto copy = there_->OnHost(work);
    REQUIRE(copy.ok());
    REQUIRE(copy->values_there == nullptr);
    REQUIRE(copy->kept == work.kept);
    REQUIRE(std::equal(work.positions.begin(), work.positions.end(), copy->positions.begin(),
                       copy->positions.end()));
    REQUIRE(Bits({copy->values, copy->values + sums.size()}) == Bits(sums));
  }

  const TableSpec spec_;
  const std::unique_ptr<ShardTable> here_, there_;
  std::mt19937_64 rng_;
  uint64_t applied_ = 0;
};

TEST_CASE("by a device's memory, every optimizer", "[shard_table][gpu]") {
  const Backends backends;
  for (const Backend& backend : backends.all()) {
    for (const TableSpec& spec : EveryOptimizer()) {
      for (const uint64_t buckets : {1, 3, 20}) {
        INFO(backend.name << ", " << buckets << " buckets, optimizer "
                          << static_cast<int>(spec.segments[0].optimizer.type));
        Twins twins(spec, HbmBytes(spec, buckets), backend.make);
        twins.Compare();  // no row is there yet
        for (uint64_t number = 1; number <= 12; ++number) twins.Step(number);
        const storage::TableCounters c = twins.there().counters();
        CHECK(c.hbm_gathered > 1000);
        CHECK(c.hbm_updated > twins.applied() / 2);
        if (buckets == 20) CHECK(c.hbm_updated == twins.applied());
        if (buckets == 1) CHECK(c.hbm_evicted > 100);
        CHECK(twins.there().refused_rows() > 0);
      }
    }
  }
}

TEST_CASE("rows that are crowded out go by the host", "[shard_table][gpu]") {
  const Backends backends;
  OptimizerSpec optimizer = Spec(OptimizerType::kAdagrad);
  optimizer.clip_norm = 2.0f;
  const TableSpec spec = TableOf({{"a", 9, {InitializerType::kUniform, 0.5f}, optimizer}});
  for (const Backend& backend : backends.all()) {
    INFO(backend.name);
    Twins twins(spec, HbmBytes(spec, 3), backend.make);
    uint64_t number = 1;
    while (number <= 10) twins.Step(number++);
    // Tickets that pin all that may be pinned: half of the slots.
    const size_t part = twins.there().rows().max_batch() / 2;
    const std::vector<Position> all = twins.Some(1);
    std::vector<KeptRows> tickets(all.size() / part);
    const auto of = [&](size_t i) { return std::span(all).subspan(i * part, part); };
    for (size_t i = 0; i < tickets.size(); ++i) {
      tickets[i].slots.assign(part, storage::kNoRow);
      REQUIRE(twins.there().Warm(of(i), tickets[i]).ok());
    }
    CHECK(twins.there().counters().pinned == twins.there().rows().max_batch());
    while (number <= 16) twins.Step(number++, 1);
    for (size_t i = 0; i < tickets.size(); ++i) twins.there().Unpin(of(i), tickets[i]);
    const storage::TableCounters c = twins.there().counters();
    CHECK(c.pinned == 0);
    CHECK(c.hbm_updated > 0);
    CHECK(c.hbm_updated < twins.applied());
    CHECK(twins.there().clipped_rows() > 0);
  }
}

TEST_CASE("who watches sees rows before sums on a device change them", "[shard_table][gpu]") {
  const Backends backends;
  const TableSpec spec = TableOf({{"a", 5, {}, Spec(OptimizerType::kAdam)}});
  for (const Backend& backend : backends.all()) {
    INFO(backend.name);
    Twins twins(spec, HbmBytes(spec, 5), backend.make);
    for (uint64_t number = 1; number <= 2; ++number) twins.Step(number);
    std::vector<std::unique_ptr<TableSnapshot>> snapshots;
    for (ShardTable* table : {&twins.here(), &twins.there()}) {
      TableSnapshot::Options options;
      options.table = spec.id;
      options.row_bytes = table->layout().row_bytes();
      options.rows = table->counters().rows;
      options.step = 2;
      snapshots.push_back(std::make_unique<TableSnapshot>(options));
      table->Watch(snapshots.back().get());
      table->changes().Begin(2, table->counters().rows);
    }
    for (uint64_t number = 3; number <= 6; ++number) twins.Step(number);
    std::vector<std::vector<uint8_t>> rows(2);
    std::vector<ChangeList::Changes> changes;
    for (size_t at = 0; at < 2; ++at) {
      ShardTable& table = at == 0 ? twins.here() : twins.there();
      CHECK(snapshots[at]->held() > 0);
      while (!snapshots[at]->done()) {
        RowBlock piece;
        REQUIRE(snapshots[at]->Next(table.rows(), piece).ok());
        rows[at].insert(rows[at].end(), piece.rows.begin(), piece.rows.end());
      }
      table.Unwatch(snapshots[at].get());
      changes.push_back(table.changes().Take());
    }
    CHECK(rows[0] == rows[1]);
    CHECK(changes[0].before == changes[1].before);
  }
}

TEST_CASE("which tables take values on a device", "[shard_table][gpu]") {
  const Backends backends;
  const storage::gpu::GpuBackendFactory on_host = backends.all()[0].make;
  const storage::gpu::GpuBackendFactory on_device = backends.all()[1].make;
  const TableSpec plain = TableOf({{"a", 5, {}, Spec(OptimizerType::kAdagrad)}});
  const auto device = [](const TableSpec& spec, const storage::gpu::GpuBackendFactory& make) {
    return MakeTable(spec, HbmBytes(spec, 1), make)->values_device();
  };
  CHECK(device(plain, on_host) == "host");
  CHECK(device(plain, on_device) == ops::gpu::HostApi({}).properties().uuid);
  TableSpec admitting = plain;
  admitting.life_cycle.admission = {AdmissionType::kExact, 2, 1.0f, 1 << 16};
  CHECK(device(admitting, on_host).empty());
  TableSpec scored = plain;
  scored.life_cycle.removal.scored = true;
  scored.life_cycle.removal.show_weight = 1.0f;
  CHECK(device(scored, on_host).empty());
  CHECK(MakeTable(plain)->values_device().empty());
}

// What a worker on the device has a table do, until the first error.
absl::Status Play(ShardTable& table, std::vector<Position>& positions) {
  std::vector<float> there(positions.size() * table.spec().dim(), 1.0f);
  TableSums sums = {.positions = positions, .values_there = there.data()};
  for (uint64_t number = 1; number <= 2; ++number) {
    std::vector<float> read(there.size());
    absl::Status s = table.Read(positions, nullptr, {.there = read.data()});
    if (s.ok()) s = table.OnHost(sums).status();
    table.preimages().Clear();
    size_t done = 0;
    if (s.ok()) s = table.Apply(sums, {number, 3}, /*keep_preimages=*/true, done);
    if (s.ok()) s = table.ReadPreimages(positions, nullptr, {.there = read.data()});
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

TEST_CASE("a call of the device that fails ends what is done with it", "[shard_table][gpu]") {
  const TableSpec spec = TableOf({{"a", 9, {}, Spec(OptimizerType::kAdagrad)}});
  const auto make = [&](ops::gpu::CudaApi& api) {
    return MakeTable(spec, HbmBytes(spec, 3), [&api](const storage::gpu::GpuShape& shape) {
      return storage::gpu::MakeDeviceGpuBackend(&api, shape, {});
    });
  };
  std::vector<Position> positions;
  for (uint64_t p = 0; p < 150; ++p) positions.emplace_back(p * 7);
  uint64_t first = 0;  // after the table is made
  {
    FailingApi never(~uint64_t{0});
    const auto table = make(never);
    first = never.calls();
    REQUIRE(Play(*table, positions).ok());
  }
  uint64_t failing = first;
  for (;; ++failing) {
    FailingApi api(failing);
    const auto table = make(api);
    const absl::Status s = Play(*table, positions);
    if (api.calls() <= failing) {
      CHECK(s.ok());
      break;
    }
    INFO("call " << failing);
    CHECK_FALSE(s.ok());
    std::vector<float> read(positions.size() * spec.dim());
    CHECK_FALSE(table->Read(positions, nullptr, {.there = read.data()}).ok());
  }
  CHECK(failing > first + 50);
}

TEST_CASE("rows on the device cost three waits a chunk to read", "[shard_table][gpu]") {
  const TableSpec spec = TableOf({{"a", 9, {}, Spec(OptimizerType::kAdagrad)}});
  ops::gpu::HostApi api({});
  const auto table =
      MakeTable(spec, HbmBytes(spec, 20), [&api](const storage::gpu::GpuShape& shape) {
        return storage::gpu::MakeDeviceGpuBackend(&api, shape, {});
      });
  std::vector<Position> positions;
  for (uint64_t p = 0; p < 300; ++p) positions.emplace_back(p * 7);
  REQUIRE(table->rows().max_batch() > positions.size());
  REQUIRE(Play(*table, positions).ok());
  std::vector<float> read(positions.size() * spec.dim());
  const uint64_t waits = api.counts().synchronisations, copies = table->counters().hbm_gathered;
  REQUIRE(table->Read(positions, nullptr, {.there = read.data()}).ok());
  CHECK(api.counts().synchronisations == waits + 3);  // found, gathered, let go
  CHECK(table->counters().hbm_gathered == copies + positions.size());
}

TEST_CASE("rows go up and down in pieces", "[device_stage][gpu]") {
  constexpr uint32_t kDim = 9;
  constexpr size_t kRows = 60, kPiece = 13;  // rows
  const Backends backends;
  const TableSpec spec = TableOf({{"a", kDim, {}, Spec(OptimizerType::kSgd)}});
  for (const Backend& backend : backends.all()) {
    INFO(backend.name);
    const auto table = MakeTable(spec, HbmBytes(spec, 2), backend.make);
    REQUIRE(table->rows().max_batch() >= kRows);
    DeviceStage stage(table->rows().device_rows(), table->rows().max_batch(),
                      (kPiece + 1) * kDim * sizeof(float) - 1);
    std::vector<float> there(2 * kRows * kDim, kUnwritten);
    std::vector<uint32_t> numbers;
    for (uint32_t k = 0; k < kRows; ++k) numbers.push_back(2 * (kRows - k) - 1);
    const auto value = [](size_t k, size_t i) { return static_cast<float>(k * kDim + i); };
    REQUIRE(stage
                .Upload(numbers, kDim, there.data(),
                        [&](size_t k, float* row) {
                          for (size_t i = 0; i < kDim; ++i) row[i] = value(k, i);
                        })
                .ok());
    size_t wrong = 0, taken = 0;
    for (size_t k = 0; k < kRows; ++k) {
      for (size_t i = 0; i < kDim; ++i) {
        wrong += there[numbers[k] * kDim + i] != value(k, i);
        wrong += there[(numbers[k] - 1) * kDim + i] != kUnwritten;
      }
    }
    CHECK(wrong == 0);
    const auto take = [&](size_t first, size_t n, const float* rows) {
      CHECK(first == taken);
      CHECK(n == std::min(kPiece, kRows - first));
      taken += n;
      for (size_t k = 0; k < n; ++k) {
        for (size_t i = 0; i < kDim; ++i) wrong += rows[k * kDim + i] != value(first + k, i);
      }
    };
    REQUIRE(stage.Download(there.data(), numbers, kDim, take).ok());
    CHECK(taken == kRows);
    std::vector<float> all(there.size());
    REQUIRE(stage.DownloadAll(there.data(), 2 * kRows, kDim, all.data()).ok());
    CHECK(all == there);
    CHECK(wrong == 0);
  }
}

}  // namespace
}  // namespace strata::server
