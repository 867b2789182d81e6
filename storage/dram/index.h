// From positions to slots: an open-addressing index of cache lines, beside the rows' slabs.
//
// A bucket has 12 entries (a control byte, 28 bits of slot number and 4 more control bits), probed
// linearly from a home bucket. No position is reserved: the control byte says whether an entry is
// taken. Homes rise with a row's place. Spread::kUniform: the place is the position, so a request
// that ascends by position sweeps the index in order. Spread::kClustered: it is a hash of it. A
// uniform index whose positions turn out to be clustered (a probe of more than kMaxProbeBuckets) is
// rebuilt as a clustered one, once, and in one go.
//
// Growth is incremental. An index that is full (load .8) gets a new array of 1.2 times its buckets,
// and each Insert then moves the rows of one bucket of the old array, in order: rows whose old home
// lies below the boundary are in the new array, the others in the old one. Both arrays are in order
// of place, so behind the boundary the old one's pages go back to the kernel as the new one's pages
// fill, and neither time nor memory jumps. Moving ends after as many insertions as the old array
// had buckets; the load is then .8 * (1 + 1 / 9.6) / 1.2 = .736.
//
// Bytes for n rows: 64 * BucketsFor(n) when full, 6.67 a row; at most 7.25 a row while it grows,
// for n > 40,000 (below 4096 buckets it doubles). With fixed_rows: 64 * BucketsFor(fixed_rows) from
// the first row on.
// Tested by tests/storage/dram/store_test.cc
#ifndef STRATA_STORAGE_DRAM_INDEX_H_
#define STRATA_STORAGE_DRAM_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "proto/core/position.h"
#include "storage/dram/slabs.h"
#include "storage/io/huge_memory.h"

namespace strata::storage {

// How positions lie in the shard's range.
enum class Spread : uint8_t {
  kUniform,    // hashed tables
  kClustered,  // dense tables: runs of consecutive positions
};

struct RowIndexOptions {
  Position first{0};  // all positions lie in [first, last]
  Position last{~0ull};
  Spread spread = Spread::kUniform;
  uint64_t fixed_rows = 0;  // sized once for so many; 0: it grows
};

// Not thread-safe. Reads rows' positions from `slabs`, which outlives it.
class RowIndex {
  struct Bucket;

 public:
  static constexpr size_t kBucketEntries = 12;
  // While a growing index of uniform positions is drained, its end is at a load of .88; 256 buckets
  // in a row hold too much there once in 10^11 times, 64 once in 4000.
  static constexpr size_t kMaxProbeBuckets = 256;

  static uint64_t BucketsFor(uint64_t rows);
  static uint64_t BytesFor(uint64_t rows) { return BucketsFor(rows) * 64; }
  // Growing, at its largest.
  static uint64_t MostBytesFor(uint64_t rows);

  RowIndex(const RowSlabs& slabs, const RowIndexOptions& options);

  // Of arrays, as far as they are in use now.
  uint64_t bytes() const;
  bool growing() const { return old_.begin != nullptr; }

  // slots[i] = slot of positions[i], or kNoSlot. Positions strictly ascend.
  void Find(std::span<const Position> positions, uint32_t* slots) const;

  // Inserts cannot fail up to `rows` rows in all. Maps, touches nothing.
  absl::Status Reserve(uint64_t rows);
  // Up to `rows` rows in all are about to be inserted in order of place. Without it an index that
  // is small beside such a run is crowded where the run begins, and takes its positions for
  // clustered. Starts growing; does nothing where memory is short, or while a large index grows
  // already.
  void Expect(uint64_t rows);
  Spread spread() const { return spread_; }
  // REQUIRES: absent, reserved, and slabs.PositionAt(slot) == position.
  void Insert(Position position, uint32_t slot);
  // REQUIRES: present there.
  void Remove(Position position, uint32_t slot);

  // Rows of [first, last] in order of position. Valid while no row is inserted or removed. Memory:
  // a window of at most kWindow rows' slots (uniform), or twice that (clustered, by repeated
  // sweeps).
  class Cursor {
   public:
    Cursor(const RowIndex& index, Position first, Position last);
    bool Valid() const { return at_ < window_.size(); }
    Position position() const { return window_[at_].position; }
    uint32_t slot() const { return window_[at_].slot; }
    // Of the row that Next comes to after `n` calls; kNoSlot where that is not known yet.
    uint32_t SlotAfter(size_t n) const {
      return at_ + n < window_.size() ? window_[at_ + n].slot : RowSlabs::kNoSlot;
    }
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
    const Bucket* PrefetchRows(const Bucket* bucket) const;

    const RowIndex& index_;
    Position first_, last_;
    bool done_ = false;
    const Bucket* next_ = nullptr;  // home of the next run
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
    uint32_t SlotOf(size_t i) const { return entries[i] & RowSlabs::kMaxSlots; }
  };
  static_assert(sizeof(Bucket) == 64);

  struct Array {
    HugeMemory memory;
    Bucket* begin = nullptr;
    Bucket* end = nullptr;
    uint64_t scale = 0;  // home = high half of (place * scale)
    uint64_t count() const { return static_cast<uint64_t>(end - begin); }
    uint64_t HomeOf(uint64_t place) const {
      return static_cast<uint64_t>((static_cast<unsigned __int128>(place) * scale) >> 64);
    }
  };

  template <Spread kSpread>
  uint64_t PlaceIn(Position position) const;
  template <bool kGrowing>
  Bucket* HomeAt(uint64_t place) const;
  uint64_t PlaceOf(Position position) const;
  uint64_t HashOf(Position position) const;
  Bucket* HomeOf(Position position) const;
  // The bucket that a probe looks at after `b`: an old array is followed by the new one, and that
  // by itself.
  template <typename B>
  B* After(B* b) const {
    ++b;
    return b == old_.end || b == now_.end ? now_.begin : b;
  }
  bool SameArray(const Bucket* a, const Bucket* b) const {
    return (a >= now_.begin && a < now_.end) == (b >= now_.begin && b < now_.end);
  }
  template <Spread kSpread, bool kGrowing>
  void FindIn(std::span<const Position> positions, uint32_t* slots) const;
  uint32_t GuessFrom(const Bucket* bucket, uint64_t hash) const;
  uint32_t FindFrom(const Bucket* bucket, uint64_t hash, Position position) const;

  absl::StatusOr<Array> MapArray(uint64_t count) const;
  void SetScale(Array& array) const;
  // Both return the number of buckets passed.
  size_t PutFrom(Bucket* bucket, uint64_t hash, uint32_t slot);
  size_t Put(Position position, uint32_t slot);
  void StartGrowth();
  void MoveWrapped();
  // Moves the rows whose home is the old array's bucket at the boundary; the longest probe.
  size_t DrainBucket();
  void CollectPassed(Bucket* home, uint64_t home_number);
  void RebuildClustered();

  const RowSlabs& slabs_;
  const RowIndexOptions options_;
  const int range_shift_;  // normalises offsets in the range to 64 bits
  Spread spread_;
  uint64_t rows_ = 0;

  Array now_;
  Array old_;                     // while growing
  Array next_;                    // mapped by Reserve for the next growth
  uint64_t drained_ = 0;          // of old_: homes below are empty, their rows in now_
  std::vector<uint32_t> moving_;  // slots on their way, within one call
};

}  // namespace strata::storage

#endif  // STRATA_STORAGE_DRAM_INDEX_H_
