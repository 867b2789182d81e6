// What the bars of the GPU table are made of, on host threads: positions, tables, rows that are
// checked, and probes.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "ops/cuda/api/host_api.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/api/stream.h"
#include "storage/eviction/kind.h"
#include "storage/gpu/bucket.h"
#include "storage/gpu/shape.h"
#include "storage/gpu/slots.h"
#include "tools/gpu/bars/bar.h"
#include "tools/gpu/table/fill.h"
#include "tools/gpu/table/memory.h"
#include "tools/gpu/table/probe.h"

namespace strata::gpu_check {
namespace {

using storage::EvictionKind;
using storage::gpu::GpuBucketOf;
using storage::gpu::GpuControlOf;
using storage::gpu::GpuShape;
using storage::gpu::GpuSlots;

TEST_CASE("positions are of the slots' buckets, with digests of every kind", "[gpu_check]") {
  for (const uint32_t bits : {0u, 3u, 21u, 26u}) {
    INFO(bits << " bits");
    std::set<uint64_t> positions;
    std::set<uint8_t> digests;
    uint32_t right = 0;
    const uint64_t slots = uint64_t{kBarBucketSlots} << bits;
    const uint64_t step = slots / std::min<uint64_t>(slots, 3000);
    for (uint64_t slot = 0; slot < slots; slot += step) {
      const uint64_t position = PositionAt(static_cast<uint32_t>(slot), bits);
      right += GpuBucketOf(position, uint32_t{1} << bits) == slot / kBarBucketSlots;
      positions.insert(position);
      digests.insert(GpuControlOf(position));
    }
    CHECK(right == positions.size());
    CHECK(positions.size() == (slots + step - 1) / step);
    CHECK(digests.size() > (bits == 0 ? 40 : 200));
  }
}

TEST_CASE("new positions are distinct, of random buckets, and of no table", "[gpu_check]") {
  constexpr uint32_t kBuckets = 256, kEach = 64;
  std::set<uint64_t> positions;
  std::vector<uint32_t> rows(kBuckets);
  for (uint64_t i = 0; i < kBuckets * kEach; ++i) {
    const uint64_t position = NewPosition(i + 1'000'000);
    positions.insert(position);
    ++rows[GpuBucketOf(position, kBuckets)];
  }
  CHECK(positions.size() == kBuckets * kEach);
  // As random ones: 64 on average, deviation 8.
  CHECK(*std::max_element(rows.begin(), rows.end()) < kEach + 8 * 6);
  CHECK(*std::max_element(rows.begin(), rows.end()) > kEach + 8);
  for (uint32_t slot = 0; slot < kBuckets * kBarBucketSlots; ++slot) {
    if (positions.count(PositionAt(slot, 8)) != 0) FAIL("slot " << slot);
  }
}

// A table of four buckets in the memory of host threads.
struct Fixture {
  explicit Fixture(EvictionKind eviction = EvictionKind::kLru, uint32_t row_bytes = 32)
      : shape(BarShape(row_bytes * (4 * kBarBucketSlots + 100), row_bytes, eviction, 5)) {
    auto made = ops::gpu::MakeStream(&api);
    REQUIRE(made.ok());
    stream = std::make_unique<ops::gpu::Stream>(*std::move(made));
    auto created = ops::gpu::Arena::Create(&api, ops::gpu::MemoryKind::kDevice,
                                           shape.bytes() + 4096, "a test");
    REQUIRE(created.ok());
    arena = *std::move(created);
    auto taken = arena->Allocate(shape.bytes());
    REQUIRE(taken.ok());
    memory = *std::move(taken);
    context.api = &api;
    context.stream = stream->get();
    auto table = MakeBarTable(context, shape, memory);
    REQUIRE(table.ok());
    t = *table;
  }
  const uint8_t* RowOf(uint32_t slot) const { return t.rows + size_t{slot} * t.stride; }

  ops::gpu::HostApi api{{}};
  const GpuShape shape;
  std::unique_ptr<ops::gpu::Stream> stream;
  std::unique_ptr<ops::gpu::Arena> arena;
  ops::gpu::Buffer memory;
  BarContext context;
  GpuSlots t;
};

TEST_CASE("a bar's table has a power of two of buckets, and the rows that it is told",
          "[gpu_check]") {
  CHECK(BarShape(size_t{4} << 30, 256, EvictionKind::kLru, 1).buckets == 1u << 18);
  CHECK(BarShape(1, 256, EvictionKind::kLru, 1).buckets == 1);
  Fixture f(EvictionKind::kLrfu);
  CHECK(f.t.buckets == 4);
  REQUIRE(f.t.gains != nullptr);
  CHECK(f.t.gains[0] > 0);
  CHECK(std::count(f.t.control, f.t.control + f.shape.slots(), 0) == 4 * kBarBucketSlots);
  CHECK(std::memcmp(f.RowOf(0), f.RowOf(1), f.t.stride) != 0);
  CHECK(std::count(f.RowOf(255), f.RowOf(256), 0) < 4);
  for (const uint32_t rows : {8u, kBarBucketSlots}) {
    REQUIRE(FillBuckets(f.api, f.t, rows, f.stream->get()).ok());
    bool right = true;
    for (uint32_t slot = 0; slot < f.shape.slots(); ++slot) {
      const bool taken = slot % kBarBucketSlots < rows;
      right &= (f.t.control[slot] != 0) == taken && f.t.scores[slot] == taken;
      right &= f.t.flags[slot] == (taken ? storage::gpu::kGpuDirty : 0);
      right &= !taken || f.t.positions[slot] == PositionAt(slot, 2);
    }
    CHECK(right);
    const std::vector<uint32_t> numbers = {0, rows - 1, rows, 3 * rows + 2};
    std::vector<uint32_t> slots(4);
    std::vector<uint64_t> positions(4);
    REQUIRE(NameRows(f.api, f.t, rows, numbers.data(), 4, slots.data(), positions.data(),
                     f.stream->get())
                .ok());
    CHECK(slots == std::vector<uint32_t>{0, rows - 1, kBarBucketSlots, 3 * kBarBucketSlots + 2});
    for (size_t i = 0; i < 4; ++i) CHECK(positions[i] == f.t.positions[slots[i]]);
  }
}

TEST_CASE("arrivals are dirty, with places of their own", "[gpu_check]") {
  Fixture f;
  std::vector<storage::gpu::GpuArrival> arrivals(7);
  REQUIRE(FillArrivals(f.api, 100, 7, arrivals.data(), f.stream->get()).ok());
  for (uint32_t i = 0; i < 7; ++i) {
    CHECK(arrivals[i].position == NewPosition(100 + i));
    CHECK(arrivals[i].place == i);
    CHECK(arrivals[i].flags == storage::gpu::kGpuDirty);
  }
  std::vector<storage::gpu::GpuPlaced> placed(3);
  for (uint32_t i = 0; i < 3; ++i) placed[i].slot = 9 - i;
  std::vector<uint32_t> slots(3);
  REQUIRE(SlotsOfPlaced(f.api, placed.data(), 3, slots.data(), f.stream->get()).ok());
  CHECK(slots == std::vector<uint32_t>{9, 8, 7});
}

TEST_CASE("rows that a bar has moved are compared with the table's", "[gpu_check]") {
  Fixture f;
  const std::vector<uint32_t> slots = {200, 3, 77};
  std::vector<uint8_t> rows(3 * f.t.stride);
  for (size_t i = 0; i < 3; ++i) std::memcpy(&rows[i * f.t.stride], f.RowOf(slots[i]), f.t.stride);
  CHECK(CheckRows(f.context, "x", f.t, slots.data(), 3, rows.data()).ok());
  rows[2 * f.t.stride + 31] ^= 1;
  const absl::Status wrong = CheckRows(f.context, "x", f.t, slots.data(), 3, rows.data());
  CHECK(wrong.code() == absl::StatusCode::kInternal);
  CHECK(wrong.message() == "x: row 2 is not that of slot 77");
}

TEST_CASE("probes move the rows that they are told, and change nothing", "[gpu_check]") {
  for (const uint32_t row_bytes : {32u, 256u}) {
    Fixture f(EvictionKind::kLru, row_bytes);
    REQUIRE(FillBuckets(f.api, f.t, kBarBucketSlots, f.stream->get()).ok());
    const std::vector<uint8_t> before(f.memory.as<uint8_t>(),
                                      f.memory.as<uint8_t>() + f.shape.bytes());
    const std::vector<uint32_t> slots = {255, 0, 64, 130, 7};
    for (const auto probe : {&ProbeLookUps, &ProbeInserts}) {
      std::vector<uint64_t> rows(slots.size() * f.t.stride / 8 + 2);
      auto* to = reinterpret_cast<uint8_t*>(rows.data());
      to += reinterpret_cast<uintptr_t>(to) % 16;
      REQUIRE(probe(f.api, {f.t, slots.data(), 5, to}, f.stream->get()).ok());
      CHECK(CheckRows(f.context, "probe", f.t, slots.data(), 5, to).ok());
      CHECK(std::equal(before.begin(), before.end(), f.memory.as<uint8_t>()));
    }
  }
}

}  // namespace
}  // namespace strata::gpu_check
