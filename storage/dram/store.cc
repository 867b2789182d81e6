#include "storage/dram/store.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace strata::storage {
namespace {

size_t StrideOf(const RowStoreOptions& options) { return options.row_bytes + sizeof(Position); }

}  // namespace

uint64_t RowStore::BytesFor(const RowStoreOptions& options, uint64_t rows) {
  return rows * (StrideOf(options) + options.extra_bytes) + RowIndex::BytesFor(rows);
}

uint64_t RowStore::MostBytesFor(const RowStoreOptions& options, uint64_t rows) {
  return rows * (StrideOf(options) + options.extra_bytes) + RowIndex::MostBytesFor(rows) +
         kGrowthSlack;
}

uint64_t RowStore::CapacityFor(const RowStoreOptions& options) {
  if (options.limit_bytes <= kPageSlack) return 0;
  const uint64_t budget = options.limit_bytes - kPageSlack;
  uint64_t low = 0;
  uint64_t high =
      std::min<uint64_t>(RowSlabs::kMaxSlots, budget / (StrideOf(options) + options.extra_bytes));
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
      capacity_(options.limit_bytes == 0 ? RowSlabs::kMaxSlots : CapacityFor(options)),
      slabs_(StrideOf(options), capacity_,
             options.limit_bytes == 0 ? PageUse::kGradual : PageUse::kHuge),
      index_(slabs_, {.first = options.first,
                      .last = options.last,
                      .spread = options.spread,
                      .fixed_rows = options.limit_bytes == 0 ? 0 : capacity_}) {}

uint64_t RowStore::bytes() const {
  return size_ * (slabs_.stride() + options_.extra_bytes) + index_.bytes();
}

absl::Status RowStore::Reserve(size_t rows) {
  const uint64_t want = size_ + uint64_t{rows};
  if (want > capacity_) {
    const uint64_t row = slabs_.stride() + options_.extra_bytes;
    return absl::ResourceExhaustedError(
        absl::StrCat("the table needs ", rows * row, " bytes for ", rows, " new rows, but ",
                     (capacity_ - size_) * row, " bytes are free of its DRAM limit of ",
                     options_.limit_bytes, "; raise spec.storage.dramBytesPerServer"));
  }
  if (rows == 0) return absl::OkStatus();
  if (absl::Status s = slabs_.Reserve(want); !s.ok()) return s;
  return index_.Reserve(want);
}

uint32_t RowStore::Insert(Position position) {
  const uint32_t slot = slabs_.Take();
  std::memcpy(slabs_.At(slot), &position, sizeof(position));
  ++size_;
  index_.Insert(position, slot);
  return slot;
}

void RowStore::Remove(uint32_t slot) {
  index_.Remove(PositionAt(slot), slot);
  slabs_.Free(slot);
  --size_;
}

}  // namespace strata::storage
