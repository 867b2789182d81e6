// Rows that backends initialise, beside InitialRow and InitialWeights.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "proto/core/table_spec.h"
#include "storage/gpu/shape.h"
#include "storage/row/births.h"
#include "storage/row/layout.h"
#include "tests/storage/gpu/backend_conformance.h"

namespace strata::storage::gpu {
namespace {

constexpr uint32_t kRows = 1100;
constexpr uint64_t kSeed = 99;

std::vector<TableSpec> Tables() {
  using I = InitializerType;
  using T = OptimizerType;
  std::vector<TableSpec> tables;
  const auto add = [&](std::vector<SegmentSpec> segments) {
    tables.push_back({.id = TableId(3), .name = "t"});
    tables.back().segments = std::move(segments);
  };
  const auto with = [](T type) {
    OptimizerSpec spec = {type, 0.1f};
    spec.initial_accumulator = 0.25f;
    return spec;
  };
  for (const T type :
       {T::kSgd, T::kAdagrad, T::kAdam, T::kMomentum, T::kRowwiseAdagrad, T::kFtrl, T::kAdd}) {
    for (const I kind : {I::kZero, I::kUniform, I::kNormal}) {
      for (const uint32_t dim : {1u, 9u, 64u}) add({{"a", dim, {kind, 0.5f}, with(type)}});
    }
  }
  add({{"w", 1, {}, with(T::kFtrl)}, {"e", 16, {I::kUniform, 0.1f}, with(T::kRowwiseAdagrad)}});
  add({{"a", 4, {I::kNormal, 2.0f}, with(T::kAdagrad)},
       {"b", 4, {I::kUniform, 1.0f}, with(T::kAdagrad)},
       {"c", 3, {I::kNormal, 0.5f}, with(T::kAdam)}});
  tables.push_back(tables.back());
  tables.back().life_cycle.removal.scored = true;
  return tables;
}

class Births {
 public:
  Births(const TableSpec& spec, const GpuBackendFactory& make)
      : spec_(spec), layout_(RowLayout::For(spec)), rng_(layout_.row_bytes()) {
    auto made = make({.row_bytes = layout_.row_bytes(),
                      .bucket_slots = 32,
                      .eviction = EvictionKind::kLru,
                      .buckets = 128,
                      .places = kRows});
    if (!made.ok()) FAIL(made.status().ToString());
    backend_ = *std::move(made);
    for (uint32_t i = 0; i < kRows; ++i) keys_.emplace_back(rng_());
  }

  // Of rows full of ones, most are born.
  void InSlots() {
    std::vector<GpuArrival> arrivals;
    for (uint32_t i = 0; i < kRows; ++i) arrivals.push_back({uint64_t{i} * 7919, i, kGpuDirty});
    std::vector<GpuPlaced> placed(kRows);
    REQUIRE(backend_->Insert(arrivals, 1, placed).ok());
    const std::vector<uint8_t> ones(layout_.row_bytes(), 0xff);
    std::vector<uint32_t> slots;
    for (const GpuPlaced& p : placed) slots.push_back(p.slot);
    std::vector<const uint8_t*> rows(kRows, ones.data());
    REQUIRE(backend_->Put(slots, rows).ok());
    std::shuffle(slots.begin(), slots.end(), rng_);
    const std::span<const uint32_t> born(slots.data(), kRows - 50);
    REQUIRE(backend_->InitializeRows(born, Of(born.size())).ok());
    REQUIRE(backend_->Read(slots, rows).ok());
    std::vector<uint8_t> want(layout_.row_bytes());
    bool same = true;
    for (size_t k = 0; k < kRows; ++k) {
      want = ones;
      if (k < born.size()) InitialRow(spec_, layout_, kSeed, keys_[k], want.data());
      same &= std::memcmp(rows[k], want.data(), want.size()) == 0;
    }
    REQUIRE(same);
  }

  // Weights alone, in places of which every third is another's; `offset` floats behind an aligned
  // place.
  void There(size_t offset) {
    const uint32_t dim = layout_.dim;
    const auto memory = backend_->AllocateThere(kRows * dim + offset);
    REQUIRE(memory.ok());
    float* const there = *memory + offset;
    std::vector<float> want(kRows * dim, 5.0f), got(want.size());
    std::vector<uint32_t> all, numbers;
    for (uint32_t i = 0; i < kRows; ++i) {
      all.push_back(i);
      if (i % 3 != 0) numbers.push_back(i);
    }
    REQUIRE(backend_->Upload(want.data(), all, dim, there).ok());
    std::shuffle(numbers.begin(), numbers.end(), rng_);
    REQUIRE(backend_->InitializeThere(Of(numbers.size()), numbers, there).ok());
    for (size_t k = 0; k < numbers.size(); ++k) {
      InitialWeights(spec_, layout_, kSeed, keys_[k], &want[numbers[k] * dim]);
    }
    REQUIRE(backend_->Download(there, all, dim, got.data()).ok());
    REQUIRE(std::memcmp(got.data(), want.data(), want.size() * 4) == 0);
  }

 private:
  RowBirths Of(size_t n) const {
    return {.spec = &spec_,
            .layout = &layout_,
            .seed = kSeed,
            .keys = std::span<const Key>(keys_).first(n)};
  }

  const TableSpec spec_;
  const RowLayout layout_;
  std::mt19937_64 rng_;
  std::unique_ptr<GpuBackend> backend_;
  std::vector<Key> keys_;
};

}  // namespace

void CheckBirths(const GpuBackendFactory& make) {
  for (const TableSpec& spec : Tables()) {
    const SegmentSpec& first = spec.segments[0];
    INFO("optimizer " << static_cast<int>(first.optimizer.type) << ", initializer "
                      << static_cast<int>(first.initializer.type) << ", " << spec.segments.size()
                      << " segments, first of " << first.dim);
    Births births(spec, make);
    births.InSlots();
    births.There(0);
    births.There(1);
  }
}

void CheckAllocations(const GpuBackendFactory& make, const GpuShape& shape, uint64_t free_bytes) {
  const auto made = make(shape);
  REQUIRE(made.ok());
  GpuBackend& backend = **made;
  const auto refused = backend.AllocateThere(free_bytes / 8 + 256);
  REQUIRE(refused.status().code() == absl::StatusCode::kResourceExhausted);
  CHECK_THAT(std::string(refused.status().message()),
             Catch::Contains(std::to_string(free_bytes) + " bytes free") &&
                 Catch::Contains("at most half"));
  // What is free halves, each time.
  for (uint64_t bytes = free_bytes; bytes >= 4096; bytes /= 2) {
    const auto memory = backend.AllocateThere(bytes / 8);
    INFO(memory.status());
    REQUIRE(memory.ok());
    CHECK(reinterpret_cast<uintptr_t>(*memory) % 16 == 0);
    CHECK(backend.AllocateThere(bytes / 8).status().code() == absl::StatusCode::kResourceExhausted);
  }
  // That ends nothing.
  CHECK(backend.Age({.lower = 1}).ok());
}

}  // namespace strata::storage::gpu
