// Coalesced sums against CoalesceRows of ops/coalesce.h, bit for bit.
#include "ops/cuda/rows/coalesce.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <vector>

#include "ops/coalesce.h"
#include "ops/coalesce_sum.h"
#include "ops/cuda/api/memory.h"
#include "tests/ops/cuda/api/test_apis.h"

namespace strata::ops::gpu {
namespace {

using testing::Apis;
using testing::DeviceVector;
using testing::Differences;
using testing::Random;
using testing::TestApi;

// What the host makes of a batch.
struct Reference {
  std::vector<uint64_t> keys;
  std::vector<uint32_t> first{0}, occurrences;

  explicit Reference(const std::vector<uint64_t>& batch) {
    std::map<uint64_t, std::vector<uint32_t>> where;
    for (uint32_t f = 0; f < batch.size(); ++f) where[batch[f]].push_back(f);
    for (const auto& [key, features] : where) {
      keys.push_back(key);
      occurrences.insert(occurrences.end(), features.begin(), features.end());
      first.push_back(static_cast<uint32_t>(occurrences.size()));
    }
  }
  std::vector<float> Sums(uint32_t dim, const std::vector<float>& gradients, size_t stride,
                          size_t sum_stride) const {
    std::vector<float> sums(occurrences.size() * sum_stride, 5.0f);
    CoalesceRows({first.data(), occurrences.data(), 0, static_cast<uint32_t>(keys.size())}, dim,
                 gradients.data(), stride, sums.data(), sum_stride);
    return sums;
  }
};

// Runs of the given lengths, shuffled.
std::vector<uint64_t> Batch(const std::vector<uint32_t>& counts, bool wide) {
  std::vector<uint64_t> batch;
  Random random(counts.size());
  for (uint32_t count : counts) {
    const uint64_t key = (uint64_t{wide ? random.Next() : 0u} << 32) | random.Next();
    batch.insert(batch.end(), count, key);
  }
  for (uint32_t i = static_cast<uint32_t>(batch.size()); i > 1; --i) {
    std::swap(batch[i - 1], batch[random.Below(i)]);
  }
  return batch;
}

std::vector<std::vector<uint32_t>> Shapes() {
  std::vector<uint32_t> every;  // each shape of tree: none, complete and not, of three levels
  for (uint32_t n = 1; n <= 70; ++n) every.push_back(n);
  for (uint32_t n : {95u, 96u, 97u, 127u, 128u, 129u, 511u, 512u, 513u, 544u, 545u, 1056u, 8191u,
                     8193u, 8225u, 20000u}) {
    every.push_back(n);
  }
  std::vector<uint32_t> half(3000, 1);  // one key has half of the batch
  half[1234] = 3000;
  return {every, half, {1}, {33}, std::vector<uint32_t>(2500, 1)};
}

template <typename Key>
void CheckBatch(TestApi& test, const std::vector<uint64_t>& batch, uint32_t dim) {
  const auto features = static_cast<uint32_t>(batch.size());
  const std::vector<Key> narrow(batch.begin(), batch.end());
  const Reference reference(std::vector<uint64_t>(narrow.begin(), narrow.end()));
  const size_t stride = dim % 4 == 0 ? dim : dim + 1, sum_stride = dim % 4 == 0 ? dim + 4 : dim;
  const std::vector<float> gradients = Random(dim).Floats(features * stride);

  auto arena = Arena::Create(test.api.get(), MemoryKind::kDevice, 64 << 20, "test");
  REQUIRE(arena.ok());
  auto coalescer = Coalescer::Create(test.api.get(), arena->get(),
                                     {features + 10, dim, sizeof(Key)}, test.stream.get());
  REQUIRE(coalescer.ok());
  DeviceVector<Key> keys(test, narrow);
  DeviceVector<float> gradients_there(test, gradients);
  DeviceVector<float> sums(test, features * sum_stride, 5.0f);
  const CallCounts before = test.api->counts();
  GroupedKeys grouped;
  for (int repeat = 0; repeat < 2; ++repeat) {
    REQUIRE((*coalescer)
                ->Group(keys.get(), features, 8 * sizeof(Key), &grouped, test.stream.get())
                .ok());
    REQUIRE((*coalescer)
                ->Sum(grouped, dim, gradients_there.get(), stride, sums.get(), sum_stride,
                      test.stream.get())
                .ok());
  }
  // Nothing but launches: counts stay on the device.
  CHECK(test.api->counts().allocations == before.allocations);
  CHECK(test.api->counts().synchronisations == before.synchronisations);
  CHECK(test.api->counts().copies == before.copies);

  CHECK(Differences(sums.Get(), reference.Sums(dim, gradients, stride, sum_stride)) == 0);
  const auto unique = static_cast<uint32_t>(reference.keys.size());
  std::vector<Key> keys_here(unique);
  std::vector<uint32_t> count(1), first(unique + 1), occurrences(features);
  CudaApi& api = *test.api;
  const StreamHandle stream = test.stream.get();
  REQUIRE(api.CopyAsync(keys_here.data(), grouped.keys, unique * sizeof(Key), stream).ok());
  REQUIRE(api.CopyAsync(count.data(), grouped.count, 4, stream).ok());
  REQUIRE(api.CopyAsync(first.data(), grouped.first, first.size() * 4, stream).ok());
  REQUIRE(api.CopyAsync(occurrences.data(), grouped.occurrences, features * 4, stream).ok());
  REQUIRE(api.Synchronize(stream).ok());
  CHECK(count[0] == unique);
  CHECK(std::vector<uint64_t>(keys_here.begin(), keys_here.end()) == reference.keys);
  CHECK(first == reference.first);
  CHECK(occurrences == reference.occurrences);
}

TEST_CASE("sums of duplicates are the host's, to the bit", "[ops][cuda][exact]") {
  for (TestApi& test : Apis()) {
    for (const std::vector<uint32_t>& shape : Shapes()) {
      for (uint32_t dim : {1u, 3u, 4u, 8u, 17u, 64u}) {
        INFO(test.name << ", " << shape.size() << " keys, dim " << dim);
        CheckBatch<uint64_t>(test, Batch(shape, true), dim);
        if (dim == 8) CheckBatch<uint32_t>(test, Batch(shape, false), dim);
      }
    }
  }
}

TEST_CASE("a coalescer refuses what it was not made for", "[ops][cuda]") {
  for (TestApi& test : Apis()) {
    auto arena = Arena::Create(test.api.get(), MemoryKind::kDevice, 1 << 20, "small");
    REQUIRE(arena.ok());
    const auto make = [&](const Coalescer::Options& options) {
      return Coalescer::Create(test.api.get(), arena->get(), options, test.stream.get());
    };
    CHECK(make({100, 8, 5}).status().code() == absl::StatusCode::kInvalidArgument);
    const absl::Status full = make({1 << 20, 8, 8}).status();
    CHECK(full.code() == absl::StatusCode::kResourceExhausted);
    CHECK_THAT(std::string(full.message()), Catch::Contains("bytes requested"));
    // What a failed one took is free again.
    CHECK((*arena)->free_bytes() == (*arena)->total_bytes());
    auto coalescer = make({100, 8, 8});
    REQUIRE(coalescer.ok());
    GroupedKeys grouped;
    for (uint32_t features : {0u, 101u}) {
      CHECK((*coalescer)->Group(nullptr, features, 64, &grouped, test.stream.get()).code() ==
            absl::StatusCode::kInvalidArgument);
    }
    CHECK((*coalescer)->Sum(grouped, 9, nullptr, 9, nullptr, 9, test.stream.get()).code() ==
          absl::StatusCode::kInvalidArgument);
    REQUIRE(test.api->Synchronize(test.stream.get()).ok());
  }
}

}  // namespace
}  // namespace strata::ops::gpu
