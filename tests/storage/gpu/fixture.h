// GPU tables small enough that a test knows which rows leave.
#ifndef STRATA_TESTS_STORAGE_GPU_FIXTURE_H_
#define STRATA_TESTS_STORAGE_GPU_FIXTURE_H_

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "storage/dram/table.h"
#include "storage/gpu/shape.h"
#include "storage/gpu/slots.h"
#include "storage/gpu/table.h"
#include "storage/row/table.h"
#include "storage/tiered/table.h"
#include "tests/storage/gpu/test_backend.h"

namespace strata::storage::gpu {

inline constexpr size_t kRowBytes = 40;

inline std::unique_ptr<RowTable> Make(const GpuTableOptions& options,
                                      std::unique_ptr<RowTable> below, size_t threads = 8) {
  auto table = MakeGpuTable(options, std::move(below), BackendWith(threads));
  if (!table.ok()) FAIL(table.status().ToString());
  return *std::move(table);
}

inline std::unique_ptr<RowTable> Tiered(const TieredOptions& options) {
  auto table = MakeTieredTable(options);
  if (!table.ok()) FAIL(table.status().ToString());
  return *std::move(table);
}

// So many buckets of 32 slots, and 16 staging places.
inline GpuTableOptions WithBuckets(uint32_t buckets) {
  const GpuShape shape{.row_bytes = kRowBytes,
                       .bucket_slots = 32,
                       .eviction = EvictionKind::kLru,
                       .buckets = buckets,
                       .places = GpuShape::kFewestPlaces};
  return {.row_bytes = kRowBytes,
          .hbm_limit_bytes = shape.bytes(),
          .bucket_slots = 32,
          .eviction = EvictionKind::kLru};
}
inline GpuTableOptions OneBucket() { return WithBuckets(1); }

// The first positions of a bucket of two.
inline std::vector<Position> OfBucket(uint32_t bucket, size_t n) {
  std::vector<Position> out;
  for (uint64_t p = 0; out.size() < n; ++p) {
    if (GpuBucketOf(p, 2) == bucket) out.push_back(Position(p));
  }
  return out;
}
inline std::vector<Position> OfFirstBucket(size_t n) { return OfBucket(0, n); }

inline std::vector<Position> Range(uint64_t first, uint64_t count) {
  std::vector<Position> out;
  for (uint64_t i = 0; i < count; ++i) out.push_back(Position(first + i));
  return out;
}

// Puts `value` into every byte of the rows.
inline absl::Status Put(RowTable& table, std::span<const Position> positions, uint8_t value) {
  std::vector<RowRef> refs(positions.size());
  absl::Status s = table.Resolve(positions, Access::kUpdate, refs);
  if (!s.ok()) return s;
  for (const RowRef& ref : refs) std::memset(ref.row, value, kRowBytes);
  table.Release();
  return absl::OkStatus();
}

// The rows at `positions` have `value` in every byte.
inline bool Holds(RowTable& table, std::span<const Position> positions, uint8_t value) {
  std::vector<RowRef> refs(positions.size());
  const absl::Status s = table.Resolve(positions, Access::kRead, refs);
  if (!s.ok()) FAIL(s.ToString());
  bool right = true;
  for (const RowRef& ref : refs) {
    right &= ref.row != nullptr && ref.row[0] == value && ref.row[kRowBytes - 1] == value;
  }
  table.Release();
  return right;
}

// A DRAM table, of which a test keeps sight.
struct Below {
  std::unique_ptr<RowTable> owned = MakeDramTable({.row_bytes = kRowBytes});
  RowTable* const table = owned.get();
};

}  // namespace strata::storage::gpu

#endif  // STRATA_TESTS_STORAGE_GPU_FIXTURE_H_
