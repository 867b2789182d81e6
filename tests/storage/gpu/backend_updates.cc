// Two backends gather and update the same rows: the same bytes, outcomes and metadata, held against
// the functions of a table in DRAM; sums and gathered rows on the host and in the device's memory.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "ops/codec.h"
#include "ops/optimizer.h"
#include "proto/core/table_spec.h"
#include "storage/gpu/shape.h"
#include "storage/row/layout.h"
#include "storage/row/touch.h"
#include "storage/row/update.h"
#include "tests/storage/gpu/backend_conformance.h"

namespace strata::storage::gpu {
namespace {

constexpr uint32_t kRows = 1100;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinite = std::numeric_limits<float>::infinity();

OptimizerSpec Spec(OptimizerType type, float clip_value, float clip_norm) {
  OptimizerSpec spec = {type, 0.1f};
  spec.clip_value = clip_value;
  spec.clip_norm = clip_norm;
  return spec;
}

// A segment of each of some optimizers, of all lengths that kernels treat otherwise.
std::vector<TableSpec> Tables() {
  using T = OptimizerType;
  std::vector<TableSpec> tables;
  const auto add = [&](std::vector<SegmentSpec> segments) {
    tables.push_back({.id = TableId(0), .name = "t"});
    tables.back().segments = std::move(segments);
  };
  for (const T type :
       {T::kSgd, T::kAdagrad, T::kAdam, T::kMomentum, T::kRowwiseAdagrad, T::kFtrl, T::kAdd}) {
    for (const uint32_t dim : {1u, 7u, 16u, 64u, 200u}) {
      add({{"a", dim, {}, Spec(type, dim == 16 ? 0.5f : 0, dim == 7 ? 1.0f : 0)}});
    }
  }
  OptimizerSpec nesterov = Spec(T::kMomentum, 0, 0.5f);
  nesterov.nesterov = true;
  add({{"a", 1, {}, Spec(T::kFtrl, 0, 0)}, {"b", 16, {}, Spec(T::kRowwiseAdagrad, 0.2f, 0)}});
  add({{"a", 4, {}, nesterov}, {"b", 3, {}, Spec(T::kAdam, 0, 0)}, {"c", 1, {}, nesterov}});
  return tables;
}

class Updates {
 public:
  Updates(const TableSpec& spec, const GpuBackendFactory& one, const GpuBackendFactory& other)
      : layout_(RowLayout::For(spec)), rng_(layout_.row_bytes()) {
    const GpuShape shape{.row_bytes = layout_.row_bytes(),
                         .bucket_slots = 32,
                         .eviction = EvictionKind::kLru,
                         .buckets = 128,
                         .places = kRows};
    for (const GpuBackendFactory* make : {&one, &other}) {
      auto made = (*make)(shape);
      if (!made.ok()) FAIL(made.status().ToString());
      backends_.push_back(*std::move(made));
    }
    for (const SegmentLayout& run : layout_.runs) sources_.emplace_back(run.optimizer);
    for (const auto& backend : backends_) {
      auto memory = backend->AllocateThere(kRows * layout_.row_bytes() / 4 + 1);
      REQUIRE(memory.ok());
      there_.push_back(*memory);
    }
    Fill();
  }

  void Step(uint64_t number) {
    // Most of the rows, in any order, some passed over.
    std::vector<uint32_t> chosen(slots_.size());
    for (uint32_t i = 0; i < chosen.size(); ++i) chosen[i] = i;
    std::shuffle(chosen.begin(), chosen.end(), rng_);
    chosen.resize(chosen.size() - 20);
    std::vector<uint32_t> slots;
    std::vector<uint8_t*> rows;
    for (const uint32_t i : chosen) {
      const bool none = rng_() % 8 == 0;
      slots.push_back(none ? kNoGpuSlot : slots_[i]);
      rows.push_back(none ? nullptr : Row(i));
    }
    const size_t stride = layout_.dim + number % 3;
    std::vector<float> sums(slots.size() * stride);
    for (float& x : sums) x = Any();
    for (size_t i = 0; i < slots.size(); i += 9) {
      sums[i * stride + rng_() % layout_.dim] = i % 2 == 0 ? kNan : kInfinite;
    }
    std::vector<ops::StepScalars> scalars;
    for (ops::ScalarSource& source : sources_) scalars.push_back(source.At(number, 4));
    const RowUpdate update{.layout = &layout_,
                           .scalars = scalars,
                           .sums = sums.data(),
                           .stride = stride,
                           .step = static_cast<uint32_t>(number)};
    std::vector<uint8_t> want(slots.size());
    UpdateRows(update, rows, want.data());
    for (size_t i = 0; i < rows.size(); ++i) {
      if (want[i] & kOutcomeApplied) TouchMeta(rows[i] + layout_.meta_offset(), update.step);
      refused_ += (want[i] & kOutcomeRefused) != 0;
      clipped_ += (want[i] & kOutcomeClipped) != 0;
    }
    for (size_t b = 0; b < backends_.size(); ++b) {
      std::vector<uint8_t> got(slots.size(), 0xaa);
      RowUpdate given = update;
      if ((number + b) % 2 == 0) {
        given.sums = nullptr;
        given.sums_there = UploadSums(b, sums, stride, number / 2 % 2);
      }
      REQUIRE(backends_[b]->Apply(slots, given, got.data()).ok());
      REQUIRE(got == want);
    }
    Compare();
    GatherThere(slots, rows);
    for (const auto codec : {ops::RowCodec::kFloat32, ops::RowCodec::kBf16, ops::RowCodec::kInt8}) {
      Gather(codec, slots, rows);
    }
  }

  size_t refused() const { return refused_; }
  size_t clipped() const { return clipped_; }

 private:
  float Any() { return (static_cast<float>(rng_() % 20001) - 10000.0f) / 3000.0f; }
  uint8_t* Row(size_t i) { return reinterpret_cast<uint8_t*>(&rows_[i * layout_.row_bytes() / 4]); }

  // State above 0. More rows than one block of a backend's threads.
  void Fill() {
    rows_.resize(kRows * layout_.row_bytes() / 4);
    std::vector<GpuArrival> arrivals;
    for (uint32_t i = 0; i < kRows; ++i) {
      arrivals.push_back({uint64_t{i} * 7919, i, kGpuDirty});
      float* row = &rows_[i * layout_.row_bytes() / 4];
      for (uint32_t k = 0; k < layout_.dim + layout_.state_floats; ++k) row[k] = Any();
      for (uint32_t k = layout_.dim; k < layout_.dim + layout_.state_floats; ++k) {
        row[k] = row[k] < 0 ? -row[k] : row[k];
      }
    }
    for (const auto& backend : backends_) {
      std::vector<GpuPlaced> placed(kRows);
      REQUIRE(backend->Insert(arrivals, 1, placed).ok());
      slots_.clear();
      std::vector<uint32_t> to;
      std::vector<const uint8_t*> bytes;
      for (uint32_t i = 0; i < kRows; ++i) {
        slots_.push_back(placed[i].slot);
        if (placed[i].slot == kNoGpuSlot || placed[i].left != 0) FAIL("buckets are too small");
        to.push_back(placed[i].slot);
        bytes.push_back(Row(i));
      }
      REQUIRE(backend->Put(to, bytes).ok());
    }
  }

  void Compare() {
    for (const auto& backend : backends_) {
      std::vector<const uint8_t*> read(slots_.size());
      REQUIRE(backend->Read(slots_, read).ok());
      bool same = true;
      for (size_t i = 0; i < slots_.size(); ++i) {
        same &= std::memcmp(read[i], Row(i), layout_.row_bytes()) == 0;
      }
      REQUIRE(same);
    }
  }

  // Sums (rows, stride) on the device, `offset` floats behind an aligned place; in two calls.
  const float* UploadSums(size_t b, const std::vector<float>& sums, size_t stride, size_t offset) {
    const size_t n = sums.size() / stride;
    std::vector<uint32_t> numbers(n);
    for (uint32_t i = 0; i < n; ++i) numbers[i] = i;
    std::shuffle(numbers.begin(), numbers.end(), rng_);
    std::vector<float> shuffled;
    for (const uint32_t i : numbers) {
      const float* row = &sums[i * stride];
      shuffled.insert(shuffled.end(), row, row + stride);
    }
    float* const there = there_[b] + offset;
    const std::span<const uint32_t> all(numbers);
    const auto floats = static_cast<uint32_t>(stride);
    const size_t half = n / 2;
    GpuBackend& backend = *backends_[b];
    REQUIRE(backend.Upload(shuffled.data(), all.first(half), floats, there).ok());
    REQUIRE(backend.Upload(shuffled.data() + half * stride, all.subspan(half), floats, there).ok());
    return there;
  }

  // Gathered to the device, and brought here in any order.
  void GatherThere(const std::vector<uint32_t>& slots, const std::vector<uint8_t*>& rows) {
    for (size_t b = 0; b < backends_.size(); ++b) {
      float* const there = there_[b] + rng_() % 2;
      REQUIRE(backends_[b]->GatherThere(slots, layout_.dim, there).ok());
      std::vector<uint32_t> numbers;
      for (uint32_t i = 0; i < slots.size(); ++i) {
        if (rows[i] != nullptr && rng_() % 4 != 0) numbers.push_back(i);
      }
      std::shuffle(numbers.begin(), numbers.end(), rng_);
      std::vector<float> got(numbers.size() * layout_.dim);
      REQUIRE(backends_[b]->Download(there, numbers, layout_.dim, got.data()).ok());
      bool same = true;
      for (size_t k = 0; k < numbers.size(); ++k) {
        same &= std::memcmp(&got[k * layout_.dim], rows[numbers[k]], layout_.dim * 4) == 0;
      }
      REQUIRE(same);
    }
  }

  void Gather(ops::RowCodec codec, const std::vector<uint32_t>& slots,
              const std::vector<uint8_t*>& rows) {
    const size_t bytes = ops::EncodedRowBytes(codec, layout_.dim);
    std::vector<uint8_t> want(bytes), got(slots.size() * bytes);
    for (const auto& backend : backends_) {
      REQUIRE(backend->Gather(slots, codec, layout_.dim, got.data()).ok());
      bool same = true;
      for (size_t i = 0; i < slots.size(); ++i) {
        if (rows[i] == nullptr) continue;
        ops::EncodeRow(codec, reinterpret_cast<const float*>(rows[i]), layout_.dim, want.data());
        same &= std::memcmp(want.data(), &got[i * bytes], bytes) == 0;
      }
      REQUIRE(same);
    }
  }

  const RowLayout layout_;
  std::mt19937_64 rng_;
  std::vector<std::unique_ptr<GpuBackend>> backends_;
  std::vector<float*> there_;  // by backend: (rows, row_bytes / 4), and one float
  std::vector<ops::ScalarSource> sources_;
  std::vector<uint32_t> slots_;
  std::vector<float> rows_;  // what they must be: (rows, row_bytes / 4)
  size_t refused_ = 0, clipped_ = 0;
};

}  // namespace

void CheckUpdates(const GpuBackendFactory& one, const GpuBackendFactory& other) {
  size_t refused = 0, clipped = 0;
  for (const TableSpec& spec : Tables()) {
    INFO("optimizer " << static_cast<int>(spec.segments[0].optimizer.type) << ", "
                      << spec.segments.size() << " segments, first of " << spec.segments[0].dim);
    Updates updates(spec, one, other);
    for (uint64_t number = 1; number <= 6; ++number) updates.Step(number);
    refused += updates.refused();
    clipped += updates.clipped();
  }
  CHECK(refused > 1000);
  CHECK(clipped > 1000);
}

}  // namespace strata::storage::gpu
