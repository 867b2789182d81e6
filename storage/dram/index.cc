#include "storage/dram/index.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace strata::storage {
namespace {

constexpr uint32_t kNoSlot = RowSlabs::kNoSlot;
constexpr uint64_t kLoadNumerator = 4;  // load .8 = 9.6 of 12 entries
constexpr uint64_t kLoadDenominator = 5;
constexpr uint64_t kGrowthNumerator = 6;  // x 1.2
constexpr uint64_t kGrowthDenominator = 5;
constexpr uint64_t kSmallBuckets = 4096;  // an index below that doubles
constexpr uint64_t kLeastBuckets = 64;    // a page
constexpr uint64_t kReleaseBuckets = 1024;

uint64_t RowsForBuckets(uint64_t buckets) {
  return buckets == 0
             ? 0
             : (buckets - 1) * RowIndex::kBucketEntries * kLoadNumerator / kLoadDenominator;
}

uint8_t TagOf(uint64_t hash) {
  const uint8_t tag = static_cast<uint8_t>(hash);
  return tag == 0 ? 1 : tag;  // 0 says "free"
}

// Four more bits of the hash, in the high bits of an entry's slot number: an entry whose tag and
// mark fit is another position's once in 400 lookups, and each such row costs a cache miss.
uint32_t MarkOf(uint64_t hash) { return static_cast<uint32_t>(hash >> 8) << RowSlabs::kSlotBits; }

// Bit i: tags[i] == tag, for the 12 entries of a bucket. Reads the 4 bytes behind the tags too.
uint32_t MatchTags(const uint8_t* tags, uint8_t tag) {
  const __m128i have = _mm_load_si128(reinterpret_cast<const __m128i*>(tags));
  const __m128i want = _mm_set1_epi8(static_cast<char>(tag));
  return static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(have, want))) & 0xfffu;
}

template <Spread kSpread>
uint64_t HashIn(Position position) {
  return kSpread == Spread::kUniform ? position.value : Mix64(position.value);
}

}  // namespace

uint64_t RowIndex::BucketsFor(uint64_t rows) {
  const uint64_t per = kBucketEntries * kLoadNumerator;
  return (rows * kLoadDenominator + per - 1) / per + 1;
}

uint64_t RowIndex::MostBytesFor(uint64_t rows) {
  // Moving ends with kLoad * (1 + 1 / 9.6) / 1.2 of the entries taken, or 1.104 times the rows that
  // were the old array's when full.
  if (rows < kSmallBuckets * kBucketEntries) return 2 * BytesFor(rows) + kLeastBuckets * 64;
  return BytesFor(rows) * 1087 / 1000 + 2 * 64;
}

RowIndex::RowIndex(const RowSlabs& slabs, const RowIndexOptions& options)
    : slabs_(slabs),
      options_(options),
      range_shift_(std::countl_zero((options.last.value - options.first.value) | 1)),
      spread_(options.spread) {}

uint64_t RowIndex::bytes() const {
  if (!growing()) return now_.count() * sizeof(Bucket);
  const unsigned __int128 filled = now_.count();
  return (static_cast<uint64_t>(filled * drained_ / old_.count()) + old_.count() - drained_) *
         sizeof(Bucket);
}

// A place is an offset in the range, normalised to [0, 2^64), or a hash.
template <Spread kSpread>
uint64_t RowIndex::PlaceIn(Position position) const {
  return kSpread == Spread::kUniform ? (position.value - options_.first.value) << range_shift_
                                     : Mix64(position.value);
}

uint64_t RowIndex::PlaceOf(Position position) const {
  return spread_ == Spread::kUniform ? PlaceIn<Spread::kUniform>(position)
                                     : PlaceIn<Spread::kClustered>(position);
}

uint64_t RowIndex::HashOf(Position position) const {
  return spread_ == Spread::kUniform ? HashIn<Spread::kUniform>(position)
                                     : HashIn<Spread::kClustered>(position);
}

template <bool kGrowing>
RowIndex::Bucket* RowIndex::HomeAt(uint64_t place) const {
  if (kGrowing) {
    const uint64_t home = old_.HomeOf(place);
    if (home >= drained_) return old_.begin + home;
  }
  return now_.begin + now_.HomeOf(place);
}

RowIndex::Bucket* RowIndex::HomeOf(Position position) const {
  return growing() ? HomeAt<true>(PlaceOf(position)) : HomeAt<false>(PlaceOf(position));
}

void RowIndex::SetScale(Array& array) const {
  if (spread_ == Spread::kClustered) {
    array.scale = array.count();
    return;
  }
  // Normalised offsets end at `top`, in [2^63, 2^64): floor(buckets * 2^64 / (top + 1)) keeps the
  // last home below count().
  const uint64_t top = (options_.last.value - options_.first.value) << range_shift_;
  if (top == 0) {  // a range of one position
    array.scale = 0;
    return;
  }
  const unsigned __int128 one = 1;
  array.scale =
      static_cast<uint64_t>((static_cast<unsigned __int128>(array.count()) << 64) / (one + top));
}

uint32_t RowIndex::FindFrom(const Bucket* bucket, uint64_t hash, Position position) const {
  const uint8_t tag = TagOf(hash);
  const uint32_t mark = MarkOf(hash);
  // In a small index rows may have passed every bucket: one round is enough.
  for (uint64_t left = now_.count() + old_.count(); left > 0; --left) {
    for (uint32_t match = MatchTags(bucket->tags, tag); match != 0; match &= match - 1) {
      const uint32_t slot = bucket->entries[std::countr_zero(match)] ^ mark;
      if (slot <= RowSlabs::kMaxSlots && slabs_.PositionAt(slot) == position) return slot;
    }
    if (bucket->passed == 0) return kNoSlot;
    bucket = After(bucket);
  }
  return kNoSlot;
}

// The first slot on the way from `bucket` whose tag and mark fit, among the first kGuessBuckets;
// kNoSlot if none does. Nearly always the position's own, or none at all, so only index lines are
// read here.
inline uint32_t RowIndex::GuessFrom(const Bucket* bucket, uint64_t hash) const {
  constexpr int kGuessBuckets = 3;  // at load .8 one row in ten lies behind its home
  const uint8_t tag = TagOf(hash);
  const uint32_t mark = MarkOf(hash);
  for (int left = kGuessBuckets; left > 0; --left) {
    for (uint32_t match = MatchTags(bucket->tags, tag); match != 0; match &= match - 1) {
      const uint32_t slot = bucket->entries[std::countr_zero(match)] ^ mark;
      if (slot <= RowSlabs::kMaxSlots) return slot;
    }
    if (bucket->passed == 0) return kNoSlot;
    bucket = After(bucket);
  }
  return kNoSlot;
}

void RowIndex::Find(std::span<const Position> positions, uint32_t* slots) const {
  if (rows_ == 0) {
    std::fill_n(slots, positions.size(), kNoSlot);
  } else if (spread_ == Spread::kUniform) {
    growing() ? FindIn<Spread::kUniform, true>(positions, slots)
              : FindIn<Spread::kUniform, false>(positions, slots);
  } else {
    growing() ? FindIn<Spread::kClustered, true>(positions, slots)
              : FindIn<Spread::kClustered, false>(positions, slots);
  }
}

template <Spread kSpread, bool kGrowing>
void RowIndex::FindIn(std::span<const Position> positions, uint32_t* slots) const {
  // Three passes per block, so that the cache misses of a block overlap: index lines, then row
  // lines, then the comparison. Rows are fetched into the second-level cache: a chunk of them fits
  // only there anyway.
  constexpr size_t kBlock = 64;
  const Bucket* homes[kBlock];
  const uint8_t* rows[kBlock];
  const size_t row_lines = std::min<size_t>((slabs_.stride() + 63) / 64, 4);
  for (size_t begin = 0; begin < positions.size(); begin += kBlock) {
    const size_t n = std::min(kBlock, positions.size() - begin);
    const Position* const at = &positions[begin];
    uint32_t* const out = &slots[begin];
    for (size_t i = 0; i < n; ++i) {
      homes[i] = HomeAt<kGrowing>(PlaceIn<kSpread>(at[i]));
      __builtin_prefetch(homes[i]);
    }
    for (size_t i = 0; i < n; ++i) {
      out[i] = GuessFrom(homes[i], HashIn<kSpread>(at[i]));
      if (out[i] == kNoSlot) continue;
      const uint8_t* row = rows[i] = slabs_.At(out[i]);
      for (size_t line = 0; line < row_lines; ++line) __builtin_prefetch(row + 64 * line, 0, 2);
    }
    for (size_t i = 0; i < n; ++i) {
      if (out[i] != kNoSlot && std::memcmp(rows[i], &at[i], sizeof(Position)) == 0) continue;
      out[i] = FindFrom(homes[i], HashIn<kSpread>(at[i]), at[i]);
    }
  }
}

size_t RowIndex::PutFrom(Bucket* bucket, uint64_t hash, uint32_t slot) {
  for (size_t passed = 0;; ++passed) {
    const uint32_t free = MatchTags(bucket->tags, 0);
    if (free != 0) {
      const int entry = std::countr_zero(free);
      bucket->tags[entry] = TagOf(hash);
      bucket->entries[entry] = slot | MarkOf(hash);
      return passed;
    }
    ++bucket->passed;
    bucket = After(bucket);
  }
}

size_t RowIndex::Put(Position position, uint32_t slot) {
  return PutFrom(HomeOf(position), HashOf(position), slot);
}

void RowIndex::Insert(Position position, uint32_t slot) {
  ++rows_;
  size_t longest = 0;
  if (rows_ > RowsForBuckets(now_.count()) && options_.fixed_rows == 0) {
    while (growing()) longest = std::max(longest, DrainBucket());  // has ended long before
    StartGrowth();
  }
  if (growing()) longest = std::max(longest, DrainBucket());
  longest = std::max(longest, Put(position, slot));
  if (longest > kMaxProbeBuckets && spread_ == Spread::kUniform) RebuildClustered();
}

void RowIndex::Remove(Position position, uint32_t slot) {
  const uint64_t hash = HashOf(position);
  const uint32_t entry = slot | MarkOf(hash);
  for (Bucket* b = HomeOf(position);; b = After(b)) {
    uint32_t match = MatchTags(b->tags, TagOf(hash));
    while (match != 0 && b->entries[std::countr_zero(match)] != entry) match &= match - 1;
    if (match != 0) {
      b->tags[std::countr_zero(match)] = 0;
      break;
    }
    --b->passed;
  }
  --rows_;
}

absl::StatusOr<RowIndex::Array> RowIndex::MapArray(uint64_t count) const {
  const PageUse use = options_.fixed_rows == 0 ? PageUse::kGradual : PageUse::kHuge;
  absl::StatusOr<HugeMemory> memory = HugeMemory::Allocate(count * sizeof(Bucket), use);
  if (!memory.ok()) return memory.status();
  Array array;
  array.memory = *std::move(memory);
  array.begin = reinterpret_cast<Bucket*>(array.memory.data());
  array.end = array.begin + count;
  SetScale(array);
  return array;
}

absl::Status RowIndex::Reserve(uint64_t rows) {
  const uint64_t have = now_.count();
  if (rows <= RowsForBuckets(std::max(have, next_.count()))) return absl::OkStatus();
  uint64_t count = BucketsFor(options_.fixed_rows);
  if (options_.fixed_rows == 0) {
    const uint64_t grown =
        have < kSmallBuckets ? 2 * have : have * kGrowthNumerator / kGrowthDenominator;
    count = std::max({BucketsFor(rows), grown, kLeastBuckets});
  }
  absl::StatusOr<Array> array = MapArray(count);
  if (!array.ok()) return array.status();
  (have == 0 ? now_ : next_) = *std::move(array);
  return absl::OkStatus();
}

void RowIndex::Expect(uint64_t rows) {
  constexpr uint64_t kAtOnce = uint64_t{1} << 15;  // buckets: some 2 ms
  if (options_.fixed_rows != 0 || rows <= RowsForBuckets(now_.count())) return;
  if (growing() && old_.count() - drained_ > kAtOnce) return;
  if (!Reserve(rows).ok() || next_.count() == 0) return;
  while (growing()) DrainBucket();
  StartGrowth();
}

void RowIndex::StartGrowth() {
  old_ = std::exchange(now_, std::exchange(next_, Array()));
  SetScale(now_);  // mapped before a rebuild, perhaps
  drained_ = 0;
  MoveWrapped();
}

// Rows that passed the old array's end lie at its beginning, which is to be emptied; from now on
// the way from its end leads to the new array's beginning.
void RowIndex::MoveWrapped() {
  uint32_t left = (old_.end - 1)->passed;
  moving_.clear();
  for (Bucket* b = old_.begin; moving_.size() < left; ++b) {
    for (size_t i = 0; i < kBucketEntries; ++i) {
      if (b->tags[i] == 0) continue;
      const uint32_t slot = b->SlotOf(i);
      if (old_.HomeOf(PlaceOf(slabs_.PositionAt(slot))) <= static_cast<uint64_t>(b - old_.begin)) {
        continue;
      }
      b->tags[i] = 0;
      for (Bucket* way = old_.begin; way < b; ++way) --way->passed;
      moving_.push_back(slot);
    }
  }
  for (const uint32_t slot : moving_) {
    PutFrom(now_.begin, HashOf(slabs_.PositionAt(slot)), slot);
  }
}

// Rows of smaller homes have been moved, so those that lie in the bucket have their home there.
size_t RowIndex::DrainBucket() {
  constexpr uint64_t kAhead = 8;
  if (drained_ + kAhead < old_.count()) {
    const Bucket& ahead = old_.begin[drained_ + kAhead];
    for (size_t i = 0; i < kBucketEntries; ++i) {
      if (ahead.tags[i] != 0) __builtin_prefetch(slabs_.At(ahead.SlotOf(i)));
    }
  }
  Bucket* const home = old_.begin + drained_;
  moving_.clear();
  for (size_t i = 0; i < kBucketEntries; ++i) {
    if (home->tags[i] != 0) moving_.push_back(home->SlotOf(i));
    home->tags[i] = 0;
  }
  if (home->passed > 0) CollectPassed(home, drained_);
  ++drained_;
  size_t longest = 0;
  for (const uint32_t slot : moving_) {
    longest = std::max(longest, Put(slabs_.PositionAt(slot), slot));
  }
  if (drained_ % kReleaseBuckets == 0) {
    constexpr size_t kBytes = kReleaseBuckets * sizeof(Bucket);
    old_.memory.Release(drained_ * sizeof(Bucket) - kBytes, kBytes);
    const auto filled = [&](uint64_t drained) {
      return static_cast<size_t>(now_.HomeOf(~0ull / old_.count() * drained) * sizeof(Bucket));
    };
    const size_t huge = HugeMemory::kHugePage;
    const size_t from = filled(drained_ - kReleaseBuckets) / huge * huge;
    const size_t to = filled(drained_) / huge * huge;
    if (to > from) now_.memory.Collapse(from, to - from);
  }
  if (drained_ == old_.count()) old_ = Array();
  return longest;
}

// Takes the rows of `home` that lie behind it off their buckets.
void RowIndex::CollectPassed(Bucket* home, uint64_t home_number) {
  uint32_t left = std::exchange(home->passed, 0);
  for (Bucket* b = After(home); left > 0; b = After(b)) {
    for (size_t i = 0; i < kBucketEntries && left > 0; ++i) {
      if (b->tags[i] == 0) continue;
      const uint32_t slot = b->SlotOf(i);
      if (old_.HomeOf(PlaceOf(slabs_.PositionAt(slot))) != home_number) continue;
      b->tags[i] = 0;
      moving_.push_back(slot);
      --left;
    }
    b->passed -= left;
  }
}

void RowIndex::RebuildClustered() {
  // In place: a limit leaves no room for a second index.
  const std::vector<bool> free = slabs_.FreeSlots();
  old_ = Array();
  now_.memory.Release(0, (now_.count() * sizeof(Bucket) + 4095) / 4096 * 4096);
  spread_ = Spread::kClustered;
  SetScale(now_);
  for (uint32_t slot = 0; slot < slabs_.bound(); ++slot) {
    if (!free[slot]) Put(slabs_.PositionAt(slot), slot);
  }
}

}  // namespace strata::storage
