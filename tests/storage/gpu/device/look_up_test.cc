// Rows looked up by positions that are on the device: on host threads and, with --config=cuda, on
// the device where there is one.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "storage/gpu/bucket.h"
#include "storage/gpu/device/calls.h"
#include "storage/gpu/device/table.h"
#include "storage/gpu/group.h"
#include "storage/gpu/shape.h"
#include "storage/gpu/slots.h"
#include "tests/ops/cuda/api/test_apis.h"

namespace strata::storage::gpu {
namespace {

using ops::gpu::testing::Apis;
using ops::gpu::testing::DeviceVector;
using ops::gpu::testing::TestApi;

// A table as one thread makes it.
template <int kSlots>
class Image {
 public:
  explicit Image(const GpuShape& shape) : memory_(shape.bytes() + GpuShape::kAlign), shape_(shape) {
    const auto address = reinterpret_cast<uintptr_t>(memory_.data());
    t = shape.At(memory_.data() + (GpuShape::kAlign - address % GpuShape::kAlign));
  }
  std::vector<uint8_t> Bytes() const { return {t.rows, t.rows + shape_.bytes()}; }
  void Insert(uint64_t position, uint8_t value) {
    const GpuPlaced placed =
        FindOrInsert<kSlots>(OneThread(), t, {.kind = EvictionKind::kLru},
                             GpuBucketOf(position, t.buckets), {.position = position});
    std::memset(t.rows + size_t{placed.slot} * t.stride, value, t.stride);
  }
  uint32_t Find(uint64_t position) const {
    return FindInBucket<kSlots>(OneThread(), t, GpuBucketOf(position, t.buckets), position);
  }
  GpuSlots t;

 private:
  std::vector<uint8_t> memory_;
  const GpuShape shape_;
};

// Whether `row` is that of `slot`, or all 0 where there is none.
template <int kSlots>
bool IsRow(const Image<kSlots>& image, const uint8_t* row, uint32_t slot) {
  const size_t stride = image.t.stride;
  if (slot == kNoGpuSlot) return std::count(row, row + stride, 0) == static_cast<ptrdiff_t>(stride);
  return std::memcmp(row, image.t.rows + slot * stride, stride) == 0;
}

template <int kSlots>
void Check(TestApi& test, size_t row_bytes) {
  const GpuShape shape{.row_bytes = row_bytes,
                       .bucket_slots = kSlots,
                       .eviction = EvictionKind::kLru,
                       .buckets = 11,
                       .places = 16};
  Image<kSlots> image(shape);
  std::mt19937_64 rng(kSlots + row_bytes);
  std::vector<uint64_t> asked = {0, ~uint64_t{0}};
  for (size_t i = 0; i < 2 * shape.slots(); ++i) asked.push_back(rng());
  for (size_t i = 0; i < asked.size(); i += 2) {
    image.Insert(asked[i], static_cast<uint8_t>(1 + rng() % 255));
  }
  const auto n = static_cast<uint32_t>(asked.size());
  DeviceVector<uint8_t> table(test, image.Bytes());
  DeviceVector<uint64_t> positions(test, asked);
  const GpuDeviceTable d{.api = test.api.get(),
                         .stream = test.stream.get(),
                         .t = shape.At(table.get()),
                         .bucket_slots = kSlots};
  for (const bool with_slots : {true, false}) {
    for (const bool with_rows : {true, false}) {
      DeviceVector<uint32_t> slots(test, n, 7);
      DeviceVector<uint8_t> rows(test, n * shape.stride());
      REQUIRE(LookUpRows(d, positions.get(), n, with_slots ? slots.get() : nullptr,
                         with_rows ? rows.get() : nullptr)
                  .ok());
      REQUIRE(test.api->Synchronize(test.stream.get()).ok());
      const std::vector<uint32_t> got = slots.Get();
      const std::vector<uint8_t> got_rows = rows.Get();
      size_t right = 0, found = 0;
      for (uint32_t i = 0; i < n; ++i) {
        const uint32_t slot = image.Find(asked[i]);
        found += slot != kNoGpuSlot;
        right += got[i] == (with_slots ? slot : 7) &&
                 IsRow(image, &got_rows[i * shape.stride()], with_rows ? slot : kNoGpuSlot);
      }
      CHECK(right == n);
      CHECK((found > n / 3 && found < n));
    }
  }
  CHECK(table.Get() == image.Bytes());
}

TEST_CASE("a device looks up rows, and changes nothing", "[storage][gpu][cuda]") {
  for (TestApi& test : Apis()) {
    INFO(test.name);
    for (const size_t row_bytes : {8u, 256u, 300u}) {
      Check<32>(test, row_bytes);
      Check<64>(test, row_bytes);
      Check<128>(test, row_bytes);
    }
  }
}

}  // namespace
}  // namespace strata::storage::gpu
