// Rows of one size in memory, found by position: an open-addressing index over rows in slabs. The
// common ground of the DRAM table and of the DRAM tier of the tiered table.
//
// Index: buckets of one cache line with 12 entries each (a control byte, 28 bits of slot number and
// 4 more control bits), probed linearly from a home bucket. No position is reserved: the control
// byte says whether an entry is taken. Spread::kUniform: the home bucket rises with the position,
// so a request that ascends by position sweeps the index in order. Spread::kClustered: it is a hash
// of the position. A uniform index whose positions turn out to be clustered (a probe of more than
// kMaxProbeBuckets) is rebuilt as a clustered one, once.
//
// Bytes, for n rows at load kLoad (9.6 of 12 entries):
//   n * (row_bytes + 8)                 rows, each behind its position
//   + 64 * BucketsFor(n)                index: 6.67 bytes a row, BucketsFor(n) = ceil(n / 9.6) + 1
//   + n * extra_bytes                   what the owner keeps per slot
// Beyond weights, state and position a row costs 8 (its metadata) + 6.67 = 14.67 bytes at that
// load. Without a limit the index grows by 1.5x, so right after growing 18. With a limit the index
// is sized once for CapacityFor(limit) rows, and kPageSlack bytes of the limit are set aside, since
// memory comes in pages.
#ifndef STRATA_STORAGE_ROW_STORE_H_
#define STRATA_STORAGE_ROW_STORE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "proto/core/position.h"
#include "storage/huge_memory.h"

namespace strata::storage {

// How positions lie in the shard's range.
enum class Spread : uint8_t {
  kUniform,    // hashed tables
  kClustered,  // dense tables: runs of consecutive positions
};

struct RowStoreOptions {
  size_t row_bytes = 0;  // a multiple of 4, >= 8
  Position first{0};     // all positions lie in [first, last]
  Position last{~0ull};
  Spread spread = Spread::kUniform;
  uint64_t limit_bytes = 0;  // 0 = none
  size_t extra_bytes = 0;    // per slot, kept by the owner but counted here
};

// Not thread-safe. Slots are numbers below slot_bound(); a slot names the same row until Remove.
class RowStore {
 public:
  static constexpr uint32_t kNoSlot = ~0u;
  static constexpr size_t kBucketEntries = 12;
  static constexpr size_t kMaxProbeBuckets = 64;
  static constexpr uint64_t kPageSlack = 2 * 4096;
  static constexpr int kSlotBits = 28;
  static constexpr uint32_t kMaxSlots = (1u << kSlotBits) - 1;  // and slot numbers are below it

  static uint64_t BucketsFor(uint64_t rows);
  static uint64_t BytesFor(const RowStoreOptions& options, uint64_t rows);
  // Most rows that fit options.limit_bytes (which is not 0).
  static uint64_t CapacityFor(const RowStoreOptions& options);

  explicit RowStore(const RowStoreOptions& options);

  size_t size() const { return size_; }
  // Most rows at once: CapacityFor, or the slot numbers' bound without a limit.
  uint64_t capacity() const { return capacity_; }
  // Every slot in use is below this.
  uint32_t slot_bound() const { return next_slot_; }
  // Rows (with owner's extra bytes) and index, now.
  uint64_t bytes() const;

  // slots[i] = slot of positions[i], or kNoSlot. Positions strictly ascend.
  void Find(std::span<const Position> positions, std::span<uint32_t> slots) const;

  // The same where slots[i] holds a guess, any number: one that is right is kept without a search.
  // `in_use(slot)` tells a row's slot from one that was removed; it is asked about slots below
  // slot_bound().
  template <typename InUse>
  void Find(std::span<const Position> positions, std::span<uint32_t> slots, InUse in_use) const;

  // Makes room for `rows` more: that many Insert calls cannot fail. RESOURCE_EXHAUSTED names
  // requested and free bytes.
  absl::Status Reserve(size_t rows);
  // Adds an absent position; the row's bytes are uninitialised. REQUIRES: absent, room reserved.
  uint32_t Insert(Position position);
  void Remove(uint32_t slot);

  Position PositionAt(uint32_t slot) const {
    Position p;
    std::memcpy(&p, SlotAt(slot), sizeof(p));
    return p;
  }
  uint8_t* RowAt(uint32_t slot) { return SlotAt(slot) + sizeof(Position); }
  const uint8_t* RowAt(uint32_t slot) const { return SlotAt(slot) + sizeof(Position); }

  // Rows of [first, last] in order of position. Valid while no row is inserted or removed. Memory:
  // a window of at most kWindow rows' slots (uniform), or twice that (clustered, by repeated
  // sweeps).
  class Cursor {
   public:
    Cursor(const RowStore& store, Position first, Position last);
    bool Valid() const { return at_ < window_.size(); }
    Position position() const { return window_[at_].position; }
    uint32_t slot() const { return window_[at_].slot; }
    void Next();

   private:
    struct Entry {
      Position position;
      uint32_t slot;
      friend bool operator<(const Entry& a, const Entry& b) { return a.position < b.position; }
    };
    static constexpr size_t kWindow = 1 << 16;
    void Fill();
    void FillUniform();
    void FillClustered();

    const RowStore& store_;
    Position first_, last_;
    bool done_ = false;
    uint64_t next_bucket_ = 0;
    std::vector<Entry> window_;
    size_t at_ = 0;
  };

 private:
  // One cache line. tags[i] == 0: entry i is free. passed: rows that lie further on although their
  // way from home came through here; 0 ends a search. entries[i]: kSlotBits of slot number below
  // four bits of the position's hash.
  struct alignas(64) Bucket {
    uint8_t tags[kBucketEntries];
    uint32_t passed;
    uint32_t entries[kBucketEntries];
    uint32_t SlotOf(size_t i) const { return entries[i] & kMaxSlots; }
  };
  static_assert(sizeof(Bucket) == 64);

  uint8_t* SlotAt(uint32_t slot) const {
    return slabs_[uint64_t{slot} >> slab_shift_].data() + (slot & slab_mask_) * stride_;
  }
  uint64_t HashOf(Position position) const;
  uint64_t HomeOf(Position position) const;
  template <Spread kSpread>
  static uint64_t HashIn(Position position);
  template <Spread kSpread>
  uint64_t HomeIn(Position position) const;
  template <Spread kSpread>
  void FindIn(std::span<const Position> positions, uint32_t* slots) const;
  uint32_t GuessFrom(uint64_t bucket, uint64_t hash) const;
  uint32_t FindFrom(uint64_t bucket, uint64_t hash, Position position) const;
  // Buckets from home to where the entry went.
  size_t Place(Position position, uint32_t slot);
  absl::Status GrowIndex(uint64_t rows);
  absl::Status GrowSlabs(uint64_t rows);
  void SetScale();
  void RebuildClustered();
  Bucket* buckets() const { return reinterpret_cast<Bucket*>(index_.data()); }

  const RowStoreOptions options_;
  const size_t stride_;
  uint64_t capacity_;
  Spread spread_;
  uint32_t slab_shift_;
  uint64_t slab_mask_;
  uint64_t slab_rows_;  // rows of a full slab
  int range_shift_;     // normalises offsets in the range to 64 bits
  uint64_t scale_ = 0;  // home = high half of (normalised offset * scale)

  HugeMemory index_;
  uint64_t bucket_count_ = 0;
  std::vector<HugeMemory> slabs_;
  uint64_t slots_allocated_ = 0;
  uint32_t next_slot_ = 0;
  uint32_t free_slot_ = kNoSlot;  // chained through the freed slots' position fields
  size_t size_ = 0;
};

template <typename InUse>
void RowStore::Find(std::span<const Position> positions, std::span<uint32_t> slots,
                    InUse in_use) const {
  constexpr size_t kAhead = 12;
  const size_t n = positions.size();
  std::vector<uint32_t> wrong;  // indices
  for (size_t i = 0; i < n; ++i) {
    if (i + kAhead < n && slots[i + kAhead] < next_slot_) {
      const uint8_t* row = SlotAt(slots[i + kAhead]);
      __builtin_prefetch(row);
      __builtin_prefetch(row + stride_ - 1);
    }
    const uint32_t slot = slots[i];
    if (slot >= next_slot_ || !in_use(slot) || PositionAt(slot) != positions[i]) {
      wrong.push_back(static_cast<uint32_t>(i));
    }
  }
  if (wrong.empty()) return;
  std::vector<Position> missing(wrong.size());
  std::vector<uint32_t> found(wrong.size());
  for (size_t k = 0; k < wrong.size(); ++k) missing[k] = positions[wrong[k]];
  Find(missing, found);
  for (size_t k = 0; k < wrong.size(); ++k) slots[wrong[k]] = found[k];
}

}  // namespace strata::storage

#endif  // STRATA_STORAGE_ROW_STORE_H_
