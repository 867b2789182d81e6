// What rows of a GPU tier weighed before a commit stays on the device until it is read, where there
// is room for it: beside a table in DRAM, to the bit.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ops/cuda/api/host_api.h"
#include "proto/core/ids.h"
#include "proto/core/partition.h"
#include "proto/core/table_spec.h"
#include "server/table/memory.h"
#include "server/table/preimages.h"
#include "server/table/shard_table.h"
#include "server/table/sums.h"
#include "storage/gpu/backend.h"
#include "storage/gpu/device/backend.h"
#include "storage/gpu/host_backend.h"
#include "storage/gpu/shape.h"
#include "storage/row/layout.h"

namespace strata::server {
namespace {

constexpr uint32_t kDim = 9;
constexpr uint64_t kRange = 600;  // positions in use, 7 apart
const Position kFirst(0), kLast(~uint64_t{0});

TableSpec Table() {
  TableSpec spec;
  spec.id = TableId(0);
  spec.name = "features";
  spec.segments = {{"a", kDim, {InitializerType::kUniform, 0.5f}, {OptimizerType::kAdagrad, 0.1f}}};
  return spec;
}

// So many buckets of 64 rows: a chunk is half of all rows.
uint64_t HbmBytes(uint64_t buckets) {
  return buckets * storage::gpu::MinimumHbmBytes(storage::RowLayout::For(Table()).row_bytes(), 64,
                                                 storage::EvictionKind::kLrfu);
}

// What a GPU tier's device has beside the table itself; none: plenty.
using FreeBytes = std::optional<uint64_t>;

struct Backend {
  std::string name;
  storage::gpu::GpuBackendFactory make;
};

storage::gpu::GpuBackendFactory OnHost(FreeBytes free) {
  return [free](const storage::gpu::GpuShape& shape) {
    const uint64_t bytes = free ? shape.bytes() + *free : 0;
    return storage::gpu::MakeHostGpuBackend(shape, {.threads = 2, .memory_bytes = bytes});
  };
}

// On kernels of a device, whose memory is that of `api`; it outlives the tables.
storage::gpu::GpuBackendFactory OnDevice(FreeBytes free, std::unique_ptr<ops::gpu::HostApi>& api) {
  return [free, &api](const storage::gpu::GpuShape& shape) {
    ops::gpu::HostApi::Options options;
    options.threads = 2;
    if (free) {
      ops::gpu::HostApi plenty(options);
      size_t left = 0, total = 0;
      const auto made = storage::gpu::MakeDeviceGpuBackend(&plenty, shape, {});
      REQUIRE((made.ok() && plenty.MemoryInfo(&left, &total).ok()));
      options.device_bytes = total - left + *free;
    }
    api = std::make_unique<ops::gpu::HostApi>(options);
    return storage::gpu::MakeDeviceGpuBackend(api.get(), shape, {});
  };
}

std::unique_ptr<ShardTable> Make(const TableSpec& spec, uint64_t hbm_bytes,
                                 const storage::gpu::GpuBackendFactory& make_gpu) {
  auto memory = DivideMemory({spec}, kFirst, kLast, 0, 1);
  REQUIRE(memory.ok());
  if (hbm_bytes != 0) memory->hbm_limits = {hbm_bytes};
  auto rows = MakeTables({spec}, kFirst, kLast, *memory, nullptr, make_gpu);
  REQUIRE(rows.ok());
  return std::make_unique<ShardTable>(spec, 1, std::move((*rows)[0]));
}

// A table with a GPU tier, and one without.
class Twins {
 public:
  Twins(const TableSpec& spec, uint64_t buckets, const storage::gpu::GpuBackendFactory& make)
      : dram_(Make(spec, 0, nullptr)), gpu_(Make(spec, HbmBytes(buckets), make)) {}

  ShardTable& gpu() { return *gpu_; }

  // A commit of one position in `of`. Returns how many.
  size_t Step(uint64_t number, uint64_t of) { return StepOf(number, Some(of)); }
  // Of the first `n` positions.
  size_t StepOfFirst(uint64_t number, size_t n) {
    std::vector<Position> positions = Some(1);
    positions.resize(n);
    return StepOf(number, positions);
  }
  void Sweep(uint64_t number) {
    for (ShardTable* table : {dram_.get(), gpu_.get()}) {
      PartitionId next;
      REQUIRE(
          table->Sweep({PartitionId(0), PartitionId(0)}, {number, true, nullptr, 0}, next).ok());
    }
  }

  // The step before, of all positions; then the pre-images are on the host.
  void Compare() {
    const std::vector<Position> all = Some(1);
    for (int round = 0; round < 2; ++round) {
      std::vector<float> a(all.size() * kDim, 1.0f), b(a.size(), 2.0f);
      REQUIRE(dram_->ReadPreimages(all, a.data()).ok());
      REQUIRE(gpu_->ReadPreimages(all, b.data()).ok());
      REQUIRE(std::memcmp(a.data(), b.data(), a.size() * 4) == 0);
      REQUIRE(gpu_->preimages().on_host());
    }
    const PreImages &a = dram_->preimages(), &b = gpu_->preimages();
    REQUIRE(std::equal(a.positions().begin(), a.positions().end(), b.positions().begin(),
                       b.positions().end()));
    REQUIRE(a.all_weights().size() == b.all_weights().size());
    REQUIRE(std::memcmp(a.all_weights().data(), b.all_weights().data(),
                        a.all_weights().size() * 4) == 0);
    std::vector<float> now(all.size() * kDim), then(now.size());
    REQUIRE(dram_->Read(all, now.data()).ok());
    REQUIRE(gpu_->Read(all, then.data()).ok());
    REQUIRE(std::memcmp(now.data(), then.data(), now.size() * 4) == 0);
  }

 private:
  size_t StepOf(uint64_t number, const std::vector<Position>& positions) {
    std::vector<float> sums(positions.size() * kDim);
    for (float& x : sums) x = (static_cast<float>(rng_() % 2001) - 1000.0f) / 300.0f;
    for (ShardTable* table : {dram_.get(), gpu_.get()}) {
      table->preimages().Clear();
      size_t done = 0;
      REQUIRE(table->Apply({positions, sums.data(), nullptr}, {number, 3}, true, done).ok());
    }
    return positions.size();
  }
  std::vector<Position> Some(uint64_t of) {
    std::vector<Position> out;
    for (uint64_t p = 0; p < kRange; ++p) {
      if (of == 1 || rng_() % of == 0) out.emplace_back(p * 7);
    }
    return out;
  }

  const std::unique_ptr<ShardTable> dram_, gpu_;
  std::mt19937_64 rng_{5};
};

template <typename Body>
void OnEach(FreeBytes free, const Body& body) {
  std::unique_ptr<ops::gpu::HostApi> api;
  for (const Backend& backend :
       {Backend{"host", OnHost(free)}, Backend{"device", OnDevice(free, api)}}) {
    INFO(backend.name);
    body(backend.make);
  }
}

TEST_CASE("pre-images stay on the device until they are read", "[shard_table][gpu]") {
  for (const uint64_t buckets : {1, 3, 20}) {
    OnEach(std::nullopt, [&](const storage::gpu::GpuBackendFactory& make) {
      INFO(buckets << " buckets");
      Twins twins(Table(), buckets, make);
      size_t most = 0;
      for (uint64_t number = 1; number <= 12; ++number) {
        const size_t rows = twins.Step(number, 1 + number % 4);
        most = std::max(most, rows);
        CHECK(!twins.gpu().preimages().on_host());
        CHECK(twins.gpu().preimages().positions().size() == rows);
        if (number % 3 == 0) twins.Compare();
      }
      // A quarter more than the largest step, and a chunk at the end of a piece.
      const uint64_t bytes = twins.gpu().counters().hbm_extra_bytes;
      const uint64_t chunk = twins.gpu().rows().max_batch() * kDim * 4;
      CHECK(bytes >= most * kDim * 4);
      CHECK(bytes <= most * kDim * 4 * 5 / 4 + chunk);
      for (uint64_t number = 13; number <= 20; ++number) twins.Step(number, 1 + number % 4);
      CHECK(twins.gpu().counters().hbm_extra_bytes == bytes);
      twins.Compare();
    });
  }
}

TEST_CASE("steps that grow row by row seldom take more of a device", "[shard_table][gpu]") {
  OnEach(std::nullopt, [](const storage::gpu::GpuBackendFactory& make) {
    Twins twins(Table(), 20, make);
    REQUIRE(twins.gpu().rows().max_batch() >= 32);
    twins.StepOfFirst(1, 32);  // born
    uint64_t number = 1;
    for (size_t n = 33; n <= 64; ++n) twins.StepOfFirst(++number, n);
    // Pieces of 40, 51 and 65 rows.
    CHECK(twins.gpu().counters().hbm_extra_bytes <= 3 * 64 * kDim * 4);
    twins.Compare();
  });
}

TEST_CASE("pre-images for which a device has no room are on the host", "[shard_table][gpu]") {
  // None at all, and only some chunks of a step: then the rest of the step follows on the host.
  for (const uint64_t free : {uint64_t{0}, uint64_t{6'000}, uint64_t{10'000}}) {
    OnEach(free, [&](const storage::gpu::GpuBackendFactory& make) {
      INFO(free << " bytes free");
      Twins twins(Table(), 1, make);
      for (uint64_t number = 1; number <= 6; ++number) {
        const size_t rows = twins.Step(number, 1 + number % 2);
        const uint64_t there = twins.gpu().counters().hbm_extra_bytes;
        CHECK(there < rows * kDim * 4);
        CHECK((there > 0) == (free > 0));
        CHECK(twins.gpu().preimages().on_host() == (free == 0));
        if (number % 2 == 0) twins.Compare();
      }
      twins.Compare();
    });
  }
}

TEST_CASE("what removed rows weighed joins what is on the device", "[shard_table][gpu]") {
  TableSpec spec = Table();
  spec.life_cycle.removal.ttl_steps = 2;
  OnEach(std::nullopt, [&](const storage::gpu::GpuBackendFactory& make) {
    Twins twins(spec, 3, make);
    size_t removed = 0;
    for (uint64_t number = 1; number <= 12; ++number) {
      const size_t rows = twins.Step(number, 3);
      CHECK(!twins.gpu().preimages().on_host());
      twins.Sweep(number);
      removed += twins.gpu().preimages().positions().size() - rows;
      if (number % 2 == 0) twins.Compare();
    }
    CHECK(removed > 100);
  });
}

}  // namespace
}  // namespace strata::server
