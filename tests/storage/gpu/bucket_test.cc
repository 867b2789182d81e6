#include "storage/gpu/bucket.h"

#include <algorithm>
#include <barrier>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <map>
#include <new>
#include <random>
#include <set>
#include <thread>
#include <type_traits>
#include <vector>

#include "storage/eviction/lrfu_score.h"
#include "storage/gpu/control.h"
#include "storage/gpu/group.h"
#include "storage/gpu/score.h"
#include "storage/gpu/shape.h"
#include "storage/gpu/slots.h"
#include "tests/skip.h"

namespace strata::storage::gpu {
namespace {

static_assert(std::is_trivially_copyable_v<GpuSlots> && std::is_trivially_copyable_v<GpuScoring>);

// Zeroed memory of a table.
class Table {
 public:
  Table(uint32_t buckets, uint32_t bucket_slots, EvictionKind eviction)
      : shape_{.row_bytes = 8,
               .bucket_slots = bucket_slots,
               .eviction = eviction,
               .buckets = buckets,
               .places = 16},
        memory_(static_cast<uint8_t*>(
            ::operator new (shape_.bytes(), std::align_val_t{GpuShape::kAlign}))) {
    std::memset(memory_, 0, shape_.bytes());
    slots = shape_.At(memory_);
    scoring = {.kind = eviction, .now = 1, .gains = slots.gains};
    if (slots.gains != nullptr) {
      std::copy(LrfuGainTable().begin(), LrfuGainTable().end(), slots.gains);
    }
  }
  ~Table() { ::operator delete (memory_, std::align_val_t{GpuShape::kAlign}); }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  template <int kSlots>
  GpuPlaced Insert(uint64_t position, uint8_t flags = 0) {
    return FindOrInsert<kSlots>(OneThread(), slots, scoring, GpuBucketOf(position, slots.buckets),
                                {.position = position, .flags = flags});
  }
  template <int kSlots>
  uint32_t Find(uint64_t position) const {
    return FindInBucket<kSlots>(OneThread(), slots, GpuBucketOf(position, slots.buckets), position);
  }
  void Touch(uint32_t slot) { slots.scores[slot] = TouchedScore(scoring, slots.scores[slot]); }

  GpuSlots slots;
  GpuScoring scoring;

 private:
  const GpuShape shape_;
  uint8_t* const memory_;
};

// So many positions of one bucket, in the order of their numbers.
std::vector<uint64_t> OfBucket(uint32_t bucket, uint32_t buckets, size_t n) {
  std::vector<uint64_t> out;
  for (uint64_t p = 0; out.size() < n; ++p) {
    if (GpuBucketOf(p, buckets) == bucket) out.push_back(p);
  }
  return out;
}

TEST_CASE("equal bytes of a word are marked, and no others", "[storage][gpu]") {
  std::mt19937_64 rng(1);
  bool right = true;
  for (size_t i = 0; i < Operations(100'000); ++i) {
    const auto sought = static_cast<uint8_t>(rng());
    uint8_t bytes[16];
    // Neighbours of what is sought, which a borrow would mark, and any others.
    for (uint8_t& b : bytes) b = static_cast<uint8_t>(rng() % 4 == 0 ? rng() : sought + rng() % 3);
    const GpuSixteen sixteen = [&] {
      GpuSixteen words;
      std::memcpy(&words, bytes, sizeof(words));
      return words;
    }();
    const uint64_t marks = EqualBytes(sixteen.words[0], sought);
    const auto first = std::find(bytes, bytes + 8, sought) - bytes;
    right &= (marks == 0) == (first == 8);
    right &= marks == 0 || LowestByte(marks) == first;
    std::set<uint32_t> want, got;
    for (uint32_t b = 0; b < 16; ++b) {
      if (bytes[b] == sought) want.insert(b);
    }
    for (uint64_t hits = HitsOfSixteen(sixteen, sought); hits != 0;) got.insert(TakeHit(hits));
    right &= got == want;
    for (uint32_t b = 0; b < 8; ++b) right &= (marks >> 8 * b & 0xff) == (want.count(b) * 0x80);
  }
  CHECK(right);
}

// Shards are told apart by the top bits; dense tables have neighbours.
TEST_CASE("positions of a shard, and neighbours, spread over buckets", "[storage][gpu]") {
  const uint32_t buckets = 1000;
  std::mt19937_64 rng(2);
  const auto fullest = [&](auto&& position) {
    std::vector<int> rows(buckets);
    for (uint64_t i = 0; i < 64 * buckets; ++i) ++rows[GpuBucketOf(position(i), buckets)];
    return *std::max_element(rows.begin(), rows.end());
  };
  // Random: 64 on average, deviation 8.
  CHECK(fullest([&](uint64_t) { return 0xabc0000000000000ull | rng() >> 12; }) < 64 + 8 * 6);
  CHECK(fullest([](uint64_t i) { return 0x1230000000000000ull + i; }) <= 66);
  std::set<uint8_t> digests;
  for (uint64_t i = 0; i < 256; ++i) digests.insert(GpuControlOf(777 + i));
  CHECK(digests.size() == 255);  // 0 is a free slot's
  CHECK(digests.count(0) == 0);
}

template <int kSlots>
void FillsWhole() {
  const uint32_t buckets = 13;
  Table t(buckets, kSlots, EvictionKind::kLru);
  std::map<uint64_t, uint32_t> slots;
  std::set<uint32_t> taken;
  const uint64_t extremes[] = {0, ~0ull, 1, ~0ull - 1};
  for (uint32_t bucket = 0; bucket < buckets; ++bucket) {
    std::vector<uint64_t> positions = OfBucket(bucket, buckets, kSlots + 4);
    for (const uint64_t p : extremes) {
      if (GpuBucketOf(p, buckets) == bucket) positions.insert(positions.begin(), p);
    }
    for (const uint64_t p : positions) {
      if (slots.count(p) > 0 || taken.size() == size_t{bucket + 1} * kSlots) continue;
      CHECK(t.Find<kSlots>(p) == kNoGpuSlot);
      const GpuPlaced placed = t.Insert<kSlots>(p);
      REQUIRE(placed.slot / kSlots == bucket);
      REQUIRE(placed.left == 0);
      REQUIRE(taken.insert(placed.slot).second);
      slots[p] = placed.slot;
    }
  }
  REQUIRE(taken.size() == buckets * kSlots);  // load factor 1.0
  for (const auto& [position, slot] : slots) CHECK(t.Find<kSlots>(position) == slot);
  for (const uint64_t p : extremes) CHECK(slots.count(p) == 1);
  // There, it is found, whatever the flags.
  const GpuPlaced again = t.Insert<kSlots>(0, kGpuDirty);
  CHECK((again.slot == slots[0] && again.left == 0));
  CHECK(t.slots.flags[again.slot] == kGpuDirty);
  ClearSlot(t.slots, slots[~0ull]);
  CHECK(t.Find<kSlots>(~0ull) == kNoGpuSlot);
  CHECK(t.Find<kSlots>(0) == slots[0]);
}

TEST_CASE("every slot can be taken, by any position", "[storage][gpu]") {
  FillsWhole<32>();
  FillsWhole<64>();
  FillsWhole<128>();
}

TEST_CASE("the lowest score leaves, then the lowest slot; pinned and held rows stay",
          "[storage][gpu]") {
  constexpr int kSlots = 64;
  Table t(4, kSlots, EvictionKind::kLru);
  const std::vector<uint64_t> p = OfBucket(2, 4, 2 * kSlots);
  for (int i = 0; i < kSlots; ++i) REQUIRE(t.Insert<kSlots>(p[i]).slot == 2u * kSlots + i);
  t.scoring.now = 2;
  for (int i = 0; i < kSlots; ++i) {
    if (i != 7 && i != 9 && i != 11 && i != 30) t.Touch(2 * kSlots + i);
  }
  t.slots.pins[2 * kSlots + 7] = 1;
  t.slots.flags[2 * kSlots + 9] = kGpuHeld;
  t.slots.flags[2 * kSlots + 11] = kGpuDirty | kGpuBelow;
  GpuPlaced placed = t.Insert<kSlots>(p[kSlots], kGpuHeld);
  CHECK((placed.left == 1 && placed.left_position == p[11]));
  CHECK(placed.left_flags == (kGpuDirty | kGpuBelow));
  CHECK(placed.slot == 2u * kSlots + 11);
  placed = t.Insert<kSlots>(p[kSlots + 1], kGpuHeld);
  CHECK((placed.left_position == p[30] && placed.left_flags == 0));
  placed = t.Insert<kSlots>(p[kSlots + 2], kGpuHeld);
  CHECK(placed.left_position == p[0]);  // the first of those that were touched
  // Nothing may leave: the bucket is as it was.
  for (int i = 0; i < kSlots; ++i) t.slots.pins[2 * kSlots + i] = 1;
  placed = t.Insert<kSlots>(p[kSlots + 3]);
  CHECK((placed.slot == kNoGpuSlot && placed.left == 0));
  CHECK(t.Find<kSlots>(p[kSlots + 3]) == kNoGpuSlot);
  CHECK(t.Find<kSlots>(p[kSlots + 2]) == 2u * kSlots);
  CHECK(t.Insert<kSlots>(OfBucket(3, 4, 1)[0]).slot == 3u * kSlots);
}

TEST_CASE("lfu goes by how often rows were referenced", "[storage][gpu]") {
  constexpr int kSlots = 32;
  Table t(1, kSlots, EvictionKind::kLfu);
  for (uint64_t p = 0; p < kSlots; ++p) t.Insert<kSlots>(p);
  for (uint32_t slot = 0; slot < kSlots; ++slot) {
    for (uint32_t n = 0; n < (slot * 7 + 3) % kSlots; ++n) t.Touch(slot);
  }
  const uint32_t rarest = 9;  // 9 * 7 + 3 = 66
  REQUIRE(t.Find<kSlots>(rarest) == rarest);
  // 64 + 2: slot 9 was referenced twice more; slot 18 (129 = 4 * 32 + 1) once, slot 27 never.
  CHECK(t.Insert<kSlots>(100, kGpuHeld).left_position == 27);
  CHECK(t.Insert<kSlots>(101, kGpuHeld).left_position == 18);
  CHECK(t.Insert<kSlots>(102, kGpuHeld).left_position == 9);
}

TEST_CASE("lrfu remembers rows that left", "[storage][gpu]") {
  constexpr int kSlots = 32;
  Table t(1, kSlots, EvictionKind::kLrfu);
  for (uint64_t p = 0; p < kSlots; ++p) t.Insert<kSlots>(p);
  for (uint32_t slot = 0; slot < kSlots; ++slot) {
    for (uint32_t n = 0; n < (slot == 5 ? 3 : 6); ++n) t.Touch(slot);
  }
  const uint16_t left_with = t.slots.scores[5];
  CHECK(left_with > 1 + kLrfuUnit);  // four references are worth two doublings
  CHECK(t.Insert<kSlots>(100).left_position == 5);
  CHECK(t.slots.scores[5] == 1);  // seen once
  // It comes back as one that was referenced once more; the other, seen once, goes.
  CHECK(t.Insert<kSlots>(5).left_position == 100);
  CHECK(t.slots.scores[5] == LrfuSum(left_with, 1, LrfuGainTable().data()));
  // What was taken is forgotten: a second return is that of what it left with now.
  CHECK(TakeGhost<kSlots>(t.slots, 0, 5) == 0);
}

// A warp of four lanes, each a thread.
struct Warp {
  static constexpr uint32_t kLanes = 4;
  std::barrier<> together{kLanes};
  uint32_t said[kLanes] = {};
};
struct Lane {
  Warp* warp;
  uint32_t number;
  uint32_t lane() const { return number; }
  uint32_t lanes() const { return Warp::kLanes; }
  void Sync() const { warp->together.arrive_and_wait(); }
  uint32_t Max(uint32_t x) const {
    warp->said[number] = x;
    Sync();
    const uint32_t most = *std::max_element(warp->said, warp->said + Warp::kLanes);
    Sync();
    return most;
  }
};

TEST_CASE("the lanes of a warp do what one thread does", "[storage][gpu]") {
  constexpr int kSlots = 64;
  Table alone(1, kSlots, EvictionKind::kLrfu), shared(1, kSlots, EvictionKind::kLrfu);
  for (uint64_t p = 0; p < kSlots; ++p) {
    for (Table* table : {&alone, &shared}) table->Insert<kSlots>(p);
  }
  std::mt19937_64 rng(5);
  std::vector<GpuArrival> arrivals(Operations(2000));
  for (GpuArrival& a : arrivals) {
    a.position = rng() % (2 * kSlots);
    a.flags = static_cast<uint8_t>(rng() % 32 == 0 ? uint64_t{kGpuHeld} : rng() % 4);
  }
  // In the end no row may leave.
  for (uint64_t p = 0; p <= kSlots; ++p) arrivals.push_back({.position = p, .flags = kGpuHeld});
  std::vector<GpuPlaced> want, got(arrivals.size());
  for (const GpuArrival& a : arrivals) {
    want.push_back(FindOrInsert<kSlots>(OneThread(), alone.slots, alone.scoring, 0, a));
  }
  Warp warp;
  const auto run = [&](uint32_t number) {
    for (size_t i = 0; i < arrivals.size(); ++i) {
      const GpuPlaced placed =
          FindOrInsert<kSlots>(Lane{&warp, number}, shared.slots, shared.scoring, 0, arrivals[i]);
      if (number == Warp::kLanes - 1) got[i] = placed;
    }
  };
  std::vector<std::thread> lanes;
  for (uint32_t number = 0; number < Warp::kLanes; ++number) lanes.emplace_back(run, number);
  for (std::thread& lane : lanes) lane.join();
  bool right = true;
  size_t left = 0, none = 0;
  for (size_t i = 0; i < arrivals.size(); ++i) {
    right &= want[i].slot == got[i].slot && want[i].left == got[i].left;
    right &= want[i].left_flags == got[i].left_flags;
    right &= want[i].left_position == got[i].left_position;
    left += want[i].left;
    none += want[i].slot == kNoGpuSlot;
  }
  CHECK(right);
  CHECK((left > arrivals.size() / 8 && none > 0));
  CHECK(std::equal(alone.slots.scores, alone.slots.scores + kSlots, shared.slots.scores));
}

TEST_CASE("scores age: rows keep one, ghosts nothing", "[storage][gpu]") {
  CHECK(AgedScore({.lower = 10}, 0, 1) == 0);
  CHECK(AgedScore({.lower = 10}, 10, 1) == 1);
  CHECK(AgedScore({.lower = 10}, 5, 1) == 1);
  CHECK(AgedScore({.lower = 10}, 5, 0) == 0);
  CHECK(AgedScore({.lower = 10}, 0xffff, 1) == 0xffff - 10);
  CHECK(AgedScore({.halve = true}, 0xffff, 1) == 0x7fff);
  CHECK(AgedScore({.halve = true}, 1, 1) == 1);
}

}  // namespace
}  // namespace strata::storage::gpu
