// Items of a GPU table's kernels that several lanes work on, with lanes that are threads: they do
// what one thread does.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "ops/cuda/kernel/group.h"
#include "storage/eviction/lrfu_score.h"
#include "storage/gpu/bucket.h"
#include "storage/gpu/calls.h"
#include "storage/gpu/control.h"
#include "storage/gpu/group.h"
#include "storage/gpu/score.h"
#include "storage/gpu/select.h"
#include "storage/gpu/shape.h"
#include "storage/gpu/slots.h"
#include "tests/ops/cuda/kernel/lane_threads.h"

namespace strata::storage::gpu {
namespace {

using ops::gpu::OneLane;
using ops::gpu::testing::ForEachLane;
using ops::gpu::testing::LaneThread;
using ops::gpu::testing::RunByLanes;

constexpr uint32_t kBuckets = 3;

// A table's memory, full of rows of random flags and scores.
class Table {
 public:
  Table(uint32_t bucket_slots, uint64_t seed)
      : shape_{.row_bytes = 40,
               .bucket_slots = bucket_slots,
               .eviction = EvictionKind::kLrfu,
               .buckets = kBuckets,
               .places = 300},
        memory_(shape_.bytes() + GpuShape::kAlign) {
    const auto address = reinterpret_cast<uintptr_t>(memory_.data());
    t = shape_.At(memory_.data() + (GpuShape::kAlign - address % GpuShape::kAlign));
    std::copy(LrfuGainTable().begin(), LrfuGainTable().end(), t.gains);
    scoring = {.kind = shape_.eviction, .now = 700, .gains = t.gains};
    std::mt19937_64 rng(seed);
    const auto slots = static_cast<uint32_t>(shape_.slots());
    std::vector<uint32_t> rows(kBuckets);
    for (uint64_t p = 0; p < 1'000'000; ++p) {
      const uint32_t bucket = GpuBucketOf(p, kBuckets);
      if (rows[bucket] == bucket_slots) continue;
      const uint32_t slot = bucket * bucket_slots + rows[bucket]++;
      SetSlot(t, slot, {p, 0, static_cast<uint8_t>(rng() % 16)},
              static_cast<uint16_t>(1 + rng() % 500));
      t.pins[slot] = rng() % 8 == 0;
      std::memset(t.rows + size_t{slot} * t.stride, static_cast<int>(rng() % 256), t.stride);
    }
    for (uint32_t slot = 0; slot < slots; ++slot) {
      t.ghosts[slot] = {static_cast<uint16_t>(rng()), static_cast<uint16_t>(rng() % 600)};
    }
  }

  std::vector<uint8_t> Bytes() const { return {t.rows, t.rows + shape_.bytes()}; }

  GpuSlots t;
  GpuScoring scoring;

 private:
  const GpuShape shape_;
  std::vector<uint8_t> memory_;
};

template <int kSlots>
void CheckFind(GpuUse use) {
  Table alone(kSlots, 1), shared(kSlots, 1);
  std::mt19937_64 rng(2);
  std::vector<uint64_t> positions;
  std::vector<uint32_t> guesses;
  for (uint64_t p = 0; p < 6 * kSlots; p += 1 + rng() % 3) {
    positions.push_back(p);
    guesses.push_back(static_cast<uint32_t>(rng() % (4 * kSlots)));
  }
  ClearSlot(alone.t, 5);
  ClearSlot(shared.t, 5);
  std::vector<uint8_t> scored(positions.size(), 9), other_scored = scored;
  std::vector<uint32_t> slots = guesses, other = guesses;
  const auto call = [&](Table& table, std::vector<uint32_t>& found, std::vector<uint8_t>& score) {
    return GpuFind{table.t, table.scoring, use, positions.data(), found.data(), score.data()};
  };
  const GpuFind by_one = call(alone, slots, scored);
  const GpuFind by_lanes = call(shared, other, other_scored);
  for (size_t i = 0; i < positions.size(); ++i) FindOne<kSlots>(OneThread(), by_one, i);
  ForEachLane<kFindLanes<kSlots>>([&](const LaneThread<kFindLanes<kSlots>>& group) {
    for (size_t i = 0; i < positions.size(); ++i) FindOne<kSlots>(group, by_lanes, i);
  });
  CHECK(slots == other);
  CHECK(scored == other_scored);
  CHECK(alone.Bytes() == shared.Bytes());
  CHECK(std::count(slots.begin(), slots.end(), kNoGpuSlot) > 0);
  CHECK(slots != guesses);
}

TEST_CASE("lanes find rows as one thread does", "[storage][gpu]") {
  for (const GpuUse use : {GpuUse::kLook, GpuUse::kRead, GpuUse::kUpdate}) {
    CheckFind<32>(use);
    CheckFind<64>(use);
    CheckFind<128>(use);
  }
}

template <int kSlots>
void CheckLookUp() {
  Table table(kSlots, 9);
  std::vector<uint64_t> positions;
  for (uint64_t p = 0; p < 5 * kSlots; ++p) positions.push_back(p);
  ClearSlot(table.t, 5);
  const std::vector<uint8_t> cleared = table.Bytes();
  const size_t stride = table.t.stride;
  std::vector<uint32_t> slots(positions.size());
  std::vector<GpuSixteen> rows(positions.size() * stride / sizeof(GpuSixteen), {77, 77});
  const GpuLookUp call{.t = table.t,
                       .positions = positions.data(),
                       .slots = slots.data(),
                       .rows = reinterpret_cast<uint8_t*>(rows.data())};
  ForEachLane<kFindLanes<kSlots>>([&](const LaneThread<kFindLanes<kSlots>>& group) {
    for (size_t i = 0; i < positions.size(); ++i) LookUpOne<kSlots>(group, call, i);
  });
  bool right = true;
  size_t missing = 0;
  for (size_t i = 0; i < positions.size(); ++i) {
    const uint32_t bucket = GpuBucketOf(positions[i], kBuckets);
    right &= slots[i] == FindInBucket<kSlots>(OneThread(), table.t, bucket, positions[i]);
    const uint8_t* const got = reinterpret_cast<const uint8_t*>(rows.data()) + i * stride;
    if (slots[i] == kNoGpuSlot) {
      ++missing;
      right &= got[0] == 77 && got[8] == 77;
    } else {
      right &= std::memcmp(got, table.t.rows + slots[i] * stride, stride) == 0;
    }
  }
  CHECK(right);
  CHECK((missing > 0 && missing < positions.size() / 2));
  CHECK(table.Bytes() == cleared);
}

TEST_CASE("rows are looked up, and nothing changes", "[storage][gpu]") {
  CheckLookUp<32>();
  CheckLookUp<64>();
  CheckLookUp<128>();
}

template <int kSlots>
void CheckInsert() {
  Table alone(kSlots, 3), shared(kSlots, 3);
  std::mt19937_64 rng(4);
  std::vector<GpuArrival> arrivals;
  std::vector<uint32_t> order, begins = {0};
  for (uint32_t i = 0; i < 90; ++i) {
    arrivals.push_back({rng() % (8 * kSlots), i, static_cast<uint8_t>(rng() % 16)});
  }
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    for (uint32_t i = 0; i < arrivals.size(); ++i) {
      if (GpuBucketOf(arrivals[i].position, kBuckets) == bucket) order.push_back(i);
    }
    begins.push_back(static_cast<uint32_t>(order.size()));
  }
  std::vector<GpuPlaced> placed(arrivals.size()), other(arrivals.size());
  const GpuInsert by_one{alone.t,      alone.scoring, arrivals.data(),
                         order.data(), begins.data(), placed.data()};
  const GpuInsert by_lanes{shared.t,     shared.scoring, arrivals.data(),
                           order.data(), begins.data(),  other.data()};
  for (uint32_t run = 0; run < kBuckets; ++run) InsertRun<kSlots>(OneThread(), by_one, run);
  ForEachLane<kSlots / 8>([&](const LaneThread<kSlots / 8>& group) {
    for (uint32_t run = 0; run < kBuckets; ++run) InsertRun<kSlots>(group, by_lanes, run);
  });
  bool same = true;
  size_t staged = 0;
  for (size_t i = 0; i < placed.size(); ++i) {
    same &= placed[i].slot == other[i].slot && placed[i].left == other[i].left &&
            placed[i].left_flags == other[i].left_flags &&
            placed[i].left_position == other[i].left_position;
    staged += placed[i].left != 0 && (placed[i].left_flags & kGpuDirty) != 0;
  }
  CHECK(same);
  CHECK(staged > 5);
  CHECK(alone.Bytes() == shared.Bytes());
}

TEST_CASE("lanes insert rows as one thread does", "[storage][gpu]") {
  CheckInsert<32>();
  CheckInsert<64>();
  CheckInsert<128>();
}

template <int kSlots>
void CheckLeaving() {
  Table table(kSlots, 5);
  ClearSlot(table.t, 2 * kSlots + 1);  // a free slot in the last bucket: none leaves
  using Line = std::vector<GpuRow>;
  std::vector<Line> want(kBuckets, Line(kLeavingLine<kSlots>)), got = want;
  for (uint32_t b = 0; b < kBuckets; ++b) {
    LeavingRows<kSlots>(OneThread(), table.t, b, want[b].data());
  }
  ForEachLane<32>([&](const LaneThread<32>& group) {
    for (uint32_t b = 0; b < kBuckets; ++b) {
      LeavingRows<kSlots>(group, table.t, b, got[b].data());
    }
  });
  size_t rows = 0;
  for (uint32_t b = 0; b < kBuckets; ++b) {
    for (size_t i = 0; i < want[b].size(); ++i) {
      CHECK(want[b][i].slot == got[b][i].slot);
      if (want[b][i].slot == kNoGpuSlot) break;
      CHECK(want[b][i].position == got[b][i].position);
      CHECK(want[b][i].flags == got[b][i].flags);
      ++rows;
    }
  }
  CHECK(rows > 0);
  CHECK(want[2][0].slot == kNoGpuSlot);
}

TEST_CASE("a warp names the rows that leave next as one thread does", "[storage][gpu]") {
  CheckLeaving<32>();
  CheckLeaving<64>();
  CheckLeaving<128>();
}

// Some threads of a block, with its shared memory.
struct BlockThread : LaneThread<8> {
  BlockThread(const LaneThread<8>& lane, void* memory) : LaneThread<8>(lane), memory(memory) {}
  void* shared() const { return memory; }
  void* memory;
};

TEST_CASE("a block counts dirty rows, and a warp chooses a part, as one thread does",
          "[storage][gpu]") {
  Table table(64, 6);
  const uint32_t slots = 64 * kBuckets;
  std::vector<uint64_t> dirty;
  for (uint32_t slot = 0; slot < slots; ++slot) {
    if (slot % 3 == 0) table.t.positions[slot] = uint64_t{slot} * slot << 40;
    if (table.t.flags[slot] & kGpuDirty) dirty.push_back(table.t.positions[slot]);
  }
  std::sort(dirty.begin(), dirty.end());
  REQUIRE(dirty.size() > 50);
  for (const uint32_t wanted : {1u, 7u, 40u, static_cast<uint32_t>(dirty.size()), 1000u}) {
    GpuSelect select{.low = 0, .high = ~0ull, .wanted = wanted}, other = select;
    std::vector<uint32_t> bins(kSelectBins), other_bins(kSelectBins);
    std::vector<uint32_t> memory(kSelectBins, 77), other_memory = memory;
    uint32_t passes = 0;
    for (; passes < SelectPasses(~0ull) && select.done == 0; ++passes) {
      OneLane one;
      one.scratch = reinterpret_cast<char*>(memory.data());
      const CountParts count{table.t, slots, &select, bins.data()};
      count(one, 0);
      const CountParts by_lanes{table.t, slots, &other, other_bins.data()};
      ForEachLane<8>(
          [&](const LaneThread<8>& lane) { by_lanes(BlockThread(lane, other_memory.data()), 0); });
      REQUIRE(bins == other_bins);
      ChoosePart{&select, bins.data()}(OneLane(), 0);
      RunByLanes(ChoosePart{&other, other_bins.data()});
      REQUIRE(std::count(bins.begin(), bins.end(), 0u) == kSelectBins);
      REQUIRE(bins == other_bins);
      REQUIRE((select.low == other.low && select.high == other.high));
      REQUIRE((select.wanted == other.wanted && select.done == other.done));
    }
    CHECK(select.done == 1);
    const auto chosen = std::upper_bound(dirty.begin(), dirty.end(), select.high) - dirty.begin();
    CHECK(static_cast<size_t>(chosen) == std::min<size_t>(wanted, dirty.size()));
  }
}

}  // namespace
}  // namespace strata::storage::gpu
