#include "storage/row_store.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"

namespace strata::storage {
namespace {

constexpr uint64_t kLoadNumerator = 4;  // load .8 = 9.6 of 12 entries
constexpr uint64_t kLoadDenominator = 5;
constexpr uint64_t kSlabBytes = uint64_t{32} << 20;
constexpr uint64_t kGrowthNumerator = 3;  // x 1.5
constexpr uint64_t kGrowthDenominator = 2;
constexpr size_t kPage = 4096;

uint64_t RowsForBuckets(uint64_t buckets) {
  return buckets == 0
             ? 0
             : (buckets - 1) * RowStore::kBucketEntries * kLoadNumerator / kLoadDenominator;
}

uint8_t TagOf(uint64_t hash) {
  const uint8_t tag = static_cast<uint8_t>(hash);
  return tag == 0 ? 1 : tag;  // 0 says "free"
}

// Four more bits of the hash, in the high bits of an entry's slot number: an entry whose tag and
// mark fit is another position's once in 400 lookups, and each such row costs a cache miss.
uint32_t MarkOf(uint64_t hash) { return static_cast<uint32_t>(hash >> 8) << RowStore::kSlotBits; }

// Bit i: tags[i] == tag, for the 12 entries of a bucket. Reads the 4 bytes behind the tags too.
uint32_t MatchTags(const uint8_t* tags, uint8_t tag) {
  const __m128i have = _mm_load_si128(reinterpret_cast<const __m128i*>(tags));
  const __m128i want = _mm_set1_epi8(static_cast<char>(tag));
  return static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(have, want))) & 0xfffu;
}

}  // namespace

uint64_t RowStore::BucketsFor(uint64_t rows) {
  const uint64_t per = kBucketEntries * kLoadNumerator;
  return (rows * kLoadDenominator + per - 1) / per + 1;
}

uint64_t RowStore::BytesFor(const RowStoreOptions& options, uint64_t rows) {
  return rows * (options.row_bytes + sizeof(Position) + options.extra_bytes) +
         BucketsFor(rows) * sizeof(Bucket);
}

uint64_t RowStore::CapacityFor(const RowStoreOptions& options) {
  if (options.limit_bytes <= kPageSlack) return 0;
  const uint64_t budget = options.limit_bytes - kPageSlack;
  uint64_t low = 0;
  uint64_t high = std::min<uint64_t>(
      kMaxSlots, budget / (options.row_bytes + sizeof(Position) + options.extra_bytes));
  while (low < high) {  // the most rows whose bytes fit
    const uint64_t middle = low + (high - low + 1) / 2;
    if (BytesFor(options, middle) <= budget) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

RowStore::RowStore(const RowStoreOptions& options)
    : options_(options),
      stride_(options.row_bytes + sizeof(Position)),
      capacity_(options.limit_bytes == 0 ? kMaxSlots : CapacityFor(options)),
      spread_(options.spread),
      slab_rows_(std::bit_floor(std::max<uint64_t>(1, kSlabBytes / stride_))),
      range_shift_(std::countl_zero((options.last.value - options.first.value) | 1)) {
  slab_shift_ = static_cast<uint32_t>(std::countr_zero(slab_rows_));
  slab_mask_ = slab_rows_ - 1;
}

uint64_t RowStore::bytes() const {
  return size_ * (stride_ + options_.extra_bytes) + bucket_count_ * sizeof(Bucket);
}

template <Spread kSpread>
uint64_t RowStore::HashIn(Position position) {
  return kSpread == Spread::kUniform ? position.value : Mix64(position.value);
}

template <Spread kSpread>
uint64_t RowStore::HomeIn(Position position) const {
  const uint64_t place = kSpread == Spread::kUniform
                             ? (position.value - options_.first.value) << range_shift_
                             : Mix64(position.value);
  return static_cast<uint64_t>((static_cast<unsigned __int128>(place) * scale_) >> 64);
}

uint64_t RowStore::HashOf(Position position) const {
  return spread_ == Spread::kUniform ? HashIn<Spread::kUniform>(position)
                                     : HashIn<Spread::kClustered>(position);
}

uint64_t RowStore::HomeOf(Position position) const {
  return spread_ == Spread::kUniform ? HomeIn<Spread::kUniform>(position)
                                     : HomeIn<Spread::kClustered>(position);
}

void RowStore::SetScale() {
  if (spread_ == Spread::kClustered) {
    scale_ = bucket_count_;
    return;
  }
  // Normalised offsets end at `top`, in [2^63, 2^64): floor(buckets * 2^64 / (top + 1)) keeps the
  // last home below bucket_count_.
  const uint64_t top = (options_.last.value - options_.first.value) << range_shift_;
  if (top == 0) {  // a range of one position
    scale_ = 0;
    return;
  }
  const unsigned __int128 one = 1;
  scale_ =
      static_cast<uint64_t>((static_cast<unsigned __int128>(bucket_count_) << 64) / (one + top));
}

uint32_t RowStore::FindFrom(uint64_t bucket, uint64_t hash, Position position) const {
  const Bucket* all = buckets();
  const uint8_t tag = TagOf(hash);
  const uint32_t mark = MarkOf(hash);
  // In a small index rows may have passed every bucket: one round is enough.
  for (uint64_t left = bucket_count_; left > 0; --left) {
    const Bucket& b = all[bucket];
    for (uint32_t match = MatchTags(b.tags, tag); match != 0; match &= match - 1) {
      const uint32_t slot = b.entries[std::countr_zero(match)] ^ mark;
      if (slot <= kMaxSlots && PositionAt(slot) == position) return slot;
    }
    if (b.passed == 0) return kNoSlot;
    if (++bucket == bucket_count_) bucket = 0;
  }
  return kNoSlot;
}

// The first slot on the way from `bucket` whose tag and mark fit, among the first kGuessBuckets;
// kNoSlot if none does. Nearly always the position's own, or none at all, so only index lines are
// read here.
inline uint32_t RowStore::GuessFrom(uint64_t bucket, uint64_t hash) const {
  constexpr int kGuessBuckets = 3;  // at load .8 one row in ten lies behind its home
  const Bucket* all = buckets();
  const uint8_t tag = TagOf(hash);
  const uint32_t mark = MarkOf(hash);
  for (int left = kGuessBuckets; left > 0; --left) {
    const Bucket& b = all[bucket];
    for (uint32_t match = MatchTags(b.tags, tag); match != 0; match &= match - 1) {
      const uint32_t slot = b.entries[std::countr_zero(match)] ^ mark;
      if (slot <= kMaxSlots) return slot;
    }
    if (b.passed == 0) return kNoSlot;
    if (++bucket == bucket_count_) bucket = 0;
  }
  return kNoSlot;
}

void RowStore::Find(std::span<const Position> positions, std::span<uint32_t> slots) const {
  if (size_ == 0) {
    std::fill_n(slots.begin(), positions.size(), kNoSlot);
  } else if (spread_ == Spread::kUniform) {
    FindIn<Spread::kUniform>(positions, slots.data());
  } else {
    FindIn<Spread::kClustered>(positions, slots.data());
  }
}

template <Spread kSpread>
void RowStore::FindIn(std::span<const Position> positions, uint32_t* slots) const {
  // Three passes per block, so that the cache misses of a block overlap: index lines, then row
  // lines, then the comparison. Rows are fetched into the second-level cache: a chunk of them fits
  // only there anyway.
  constexpr size_t kBlock = 64;
  uint64_t homes[kBlock];
  const uint8_t* rows[kBlock];
  const size_t row_lines = std::min<size_t>((stride_ + 63) / 64, 4);
  const Bucket* all = buckets();
  for (size_t begin = 0; begin < positions.size(); begin += kBlock) {
    const size_t n = std::min(kBlock, positions.size() - begin);
    const Position* const at = &positions[begin];
    uint32_t* const out = &slots[begin];
    for (size_t i = 0; i < n; ++i) {
      homes[i] = HomeIn<kSpread>(at[i]);
      __builtin_prefetch(&all[homes[i]]);
    }
    for (size_t i = 0; i < n; ++i) {
      out[i] = GuessFrom(homes[i], HashIn<kSpread>(at[i]));
      if (out[i] == kNoSlot) continue;
      const uint8_t* row = rows[i] = SlotAt(out[i]);
      for (size_t line = 0; line < row_lines; ++line) __builtin_prefetch(row + 64 * line, 0, 2);
    }
    for (size_t i = 0; i < n; ++i) {
      if (out[i] != kNoSlot && std::memcmp(rows[i], &at[i], sizeof(Position)) == 0) continue;
      out[i] = FindFrom(homes[i], HashIn<kSpread>(at[i]), at[i]);
    }
  }
}

size_t RowStore::Place(Position position, uint32_t slot) {
  Bucket* all = buckets();
  uint64_t bucket = HomeOf(position);
  const uint64_t hash = HashOf(position);
  for (size_t probes = 0;; ++probes) {
    Bucket& b = all[bucket];
    const uint32_t free = MatchTags(b.tags, 0);
    if (free != 0) {
      const int entry = std::countr_zero(free);
      b.tags[entry] = TagOf(hash);
      b.entries[entry] = slot | MarkOf(hash);
      return probes;
    }
    ++b.passed;
    if (++bucket == bucket_count_) bucket = 0;
  }
}

uint32_t RowStore::Insert(Position position) {
  uint32_t slot = free_slot_;
  if (slot != kNoSlot) {
    std::memcpy(&free_slot_, SlotAt(slot), sizeof(free_slot_));
  } else {
    slot = next_slot_++;
  }
  std::memcpy(SlotAt(slot), &position, sizeof(position));
  ++size_;
  if (Place(position, slot) > kMaxProbeBuckets && spread_ == Spread::kUniform) RebuildClustered();
  return slot;
}

void RowStore::Remove(uint32_t slot) {
  Bucket* all = buckets();
  const Position position = PositionAt(slot);
  const uint64_t hash = HashOf(position);
  const uint32_t entry = slot | MarkOf(hash);
  uint64_t bucket = HomeOf(position);
  for (;;) {
    Bucket& b = all[bucket];
    uint32_t match = MatchTags(b.tags, TagOf(hash));
    while (match != 0 && b.entries[std::countr_zero(match)] != entry) match &= match - 1;
    if (match != 0) {
      b.tags[std::countr_zero(match)] = 0;
      break;
    }
    --b.passed;
    if (++bucket == bucket_count_) bucket = 0;
  }
  std::memcpy(SlotAt(slot), &free_slot_, sizeof(free_slot_));
  free_slot_ = slot;
  --size_;
}

absl::Status RowStore::Reserve(size_t rows) {
  const uint64_t want = size_ + uint64_t{rows};
  if (want > capacity_) {
    const uint64_t row = stride_ + options_.extra_bytes;
    return absl::ResourceExhaustedError(
        absl::StrCat("the table needs ", rows * row, " bytes for ", rows, " new rows, but ",
                     (capacity_ - size_) * row, " bytes are free of its DRAM limit of ",
                     options_.limit_bytes, "; raise spec.storage.dramBytesPerServer"));
  }
  if (rows == 0) return absl::OkStatus();
  if (absl::Status s = GrowSlabs(want); !s.ok()) return s;
  return GrowIndex(want);
}

absl::Status RowStore::GrowSlabs(uint64_t rows) {
  while (slots_allocated_ < rows) {
    const uint64_t add = std::min(slab_rows_, capacity_ - slots_allocated_);
    absl::StatusOr<HugeMemory> slab = HugeMemory::Allocate(add * stride_);
    if (!slab.ok()) return slab.status();
    slabs_.push_back(*std::move(slab));
    slots_allocated_ += add;
  }
  return absl::OkStatus();
}

absl::Status RowStore::GrowIndex(uint64_t rows) {
  if (rows <= RowsForBuckets(bucket_count_)) return absl::OkStatus();
  uint64_t count;
  if (options_.limit_bytes != 0) {
    count = BucketsFor(capacity_);
  } else {
    count = std::max(BucketsFor(rows), bucket_count_ * kGrowthNumerator / kGrowthDenominator);
    count = std::max<uint64_t>(count, kPage / sizeof(Bucket));
  }
  absl::StatusOr<HugeMemory> index = HugeMemory::Allocate(count * sizeof(Bucket));
  if (!index.ok()) return index.status();
  const HugeMemory old = std::exchange(index_, *std::move(index));
  const uint64_t old_count = std::exchange(bucket_count_, count);
  SetScale();
  // In the old index's order, which is the new one's too; rows are fetched ahead.
  const Bucket* from = reinterpret_cast<const Bucket*>(old.data());
  constexpr uint64_t kAhead = 4;
  size_t longest = 0;
  for (uint64_t b = 0; b < old_count; ++b) {
    if (b + kAhead < old_count) {
      const Bucket& ahead = from[b + kAhead];
      for (size_t i = 0; i < kBucketEntries; ++i) {
        if (ahead.tags[i] != 0) __builtin_prefetch(SlotAt(ahead.SlotOf(i)));
      }
    }
    for (size_t i = 0; i < kBucketEntries; ++i) {
      if (from[b].tags[i] == 0) continue;
      const uint32_t slot = from[b].SlotOf(i);
      longest = std::max(longest, Place(PositionAt(slot), slot));
    }
  }
  if (longest > kMaxProbeBuckets && spread_ == Spread::kUniform) RebuildClustered();
  return absl::OkStatus();
}

void RowStore::RebuildClustered() {
  // In place: the limit leaves no room for a second index. One bit per slot tells rows from freed
  // slots meanwhile.
  std::vector<bool> freed(next_slot_, false);
  for (uint32_t slot = free_slot_; slot != kNoSlot;) {
    freed[slot] = true;
    std::memcpy(&slot, SlotAt(slot), sizeof(slot));
  }
  std::memset(index_.data(), 0, bucket_count_ * sizeof(Bucket));
  spread_ = Spread::kClustered;
  SetScale();
  for (uint32_t slot = 0; slot < next_slot_; ++slot) {
    if (!freed[slot]) Place(PositionAt(slot), slot);
  }
}

}  // namespace strata::storage
