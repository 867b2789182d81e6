#include "storage/gpu/host_backend.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ops/codec.h"
#include "ops/parallel.h"
#include "storage/eviction/lrfu_score.h"
#include "storage/gpu/allocation.h"
#include "storage/gpu/bucket.h"
#include "storage/gpu/calls.h"
#include "storage/gpu/group.h"
#include "storage/gpu/score.h"
#include "storage/io/huge_memory.h"
#include "storage/row/births.h"
#include "storage/row/layout.h"
#include "storage/row/touch.h"
#include "storage/row/update.h"

namespace strata::storage::gpu {
namespace {

// Items that one thread takes at a time.
constexpr size_t kBlock = 512;

template <int kSlots>
class HostGpuBackend final : public GpuBackend {
 public:
  // free_bytes: of the device's memory, beside the table's.
  HostGpuBackend(const GpuShape& shape, HugeMemory memory, uint64_t free_bytes, size_t threads)
      : shape_(shape),
        memory_(std::move(memory)),
        t_(shape.At(memory_.data())),
        free_bytes_(free_bytes),
        team_(ops::MakeParallel(threads)) {
    if (t_.gains != nullptr) {
      std::copy(LrfuGainTable().begin(), LrfuGainTable().end(), t_.gains);
    }
  }

  const std::string& device() const override { return device_name_; }
  size_t max_batch() const override { return std::numeric_limits<uint32_t>::max(); }

  absl::StatusOr<size_t> Find(std::span<const Position> positions, GpuUse use, uint16_t now,
                              std::span<uint32_t> slots) override {
    scored_.resize(positions.size());
    words_.resize(positions.size());
    for (size_t i = 0; i < positions.size(); ++i) words_[i] = positions[i].value;
    const GpuFind call{.t = t_,
                       .scoring = ScoringAt(now),
                       .use = use,
                       .positions = words_.data(),
                       .slots = slots.data(),
                       .scored = scored_.data()};
    ForEach(positions.size(), [&](size_t i) { FindOne<kSlots>(OneThread(), call, i); });
    return std::accumulate(scored_.begin(), scored_.end(), size_t{0});
  }

  absl::Status Insert(std::span<const GpuArrival> arrivals, uint16_t now,
                      std::span<GpuPlaced> placed) override {
    words_.resize(arrivals.size());
    for (size_t i = 0; i < arrivals.size(); ++i) {
      words_[i] = uint64_t{GpuBucketOf(arrivals[i].position, shape_.buckets)} << 32 | i;
    }
    std::sort(words_.begin(), words_.end());
    order_.resize(arrivals.size());
    begins_.clear();
    for (size_t k = 0; k < words_.size(); ++k) {
      order_[k] = static_cast<uint32_t>(words_[k]);
      if (k == 0 || words_[k] >> 32 != words_[k - 1] >> 32) {
        begins_.push_back(static_cast<uint32_t>(k));
      }
    }
    const size_t runs = begins_.size();
    begins_.push_back(static_cast<uint32_t>(arrivals.size()));
    const GpuInsert call{.t = t_,
                         .scoring = ScoringAt(now),
                         .arrivals = arrivals.data(),
                         .order = order_.data(),
                         .begins = begins_.data(),
                         .placed = placed.data()};
    ForEach(runs, [&](size_t run) { InsertRun<kSlots>(OneThread(), call, run); });
    return absl::OkStatus();
  }

  absl::Status Put(std::span<const uint32_t> slots, std::span<const uint8_t* const> rows) override {
    ForEach(slots.size(),
            [&](size_t i) { std::memcpy(RowAt(slots[i]), rows[i], shape_.row_bytes); });
    return absl::OkStatus();
  }
  absl::Status PutStaged(std::span<const uint32_t> slots,
                         std::span<const uint32_t> places) override {
    ForEach(slots.size(),
            [&](size_t i) { std::memcpy(RowAt(slots[i]), StagedAt(places[i]), shape_.row_bytes); });
    return absl::OkStatus();
  }
  absl::Status Read(std::span<const uint32_t> slots, std::span<const uint8_t*> rows) override {
    for (size_t i = 0; i < slots.size(); ++i) rows[i] = RowAt(slots[i]);
    return absl::OkStatus();
  }
  absl::Status ReadStaged(std::span<const uint32_t> places,
                          std::span<const uint8_t*> rows) override {
    for (size_t i = 0; i < places.size(); ++i) rows[i] = StagedAt(places[i]);
    return absl::OkStatus();
  }
  absl::Status Open(std::span<const uint32_t> slots, GpuUse, std::span<uint8_t*> rows) override {
    for (size_t i = 0; i < slots.size(); ++i) rows[i] = RowAt(slots[i]);
    return absl::OkStatus();
  }
  absl::Status Close(std::span<const uint32_t> slots) override {
    for (const uint32_t slot : slots) t_.flags[slot] &= static_cast<uint8_t>(~kGpuHeld);
    return absl::OkStatus();
  }

  absl::Status Gather(std::span<const uint32_t> slots, ops::RowCodec codec, uint32_t dim,
                      uint8_t* out) override {
    const size_t bytes = ops::EncodedRowBytes(codec, dim);
    ForEach(slots.size(), [&](size_t i) {
      if (slots[i] == kNoGpuSlot) return;
      ops::EncodeRow(codec, reinterpret_cast<const float*>(RowAt(slots[i])), dim, out + i * bytes);
    });
    return absl::OkStatus();
  }
  absl::Status GatherThere(std::span<const uint32_t> slots, uint32_t dim, float* out) override {
    return Gather(slots, ops::RowCodec::kFloat32, dim, reinterpret_cast<uint8_t*>(out));
  }
  absl::Status Upload(const float* rows, std::span<const uint32_t> numbers, uint32_t dim,
                      float* there) override {
    ForEach(numbers.size(), [&](size_t k) {
      std::memcpy(there + size_t{numbers[k]} * dim, rows + k * dim, dim * sizeof(float));
    });
    return absl::OkStatus();
  }
  absl::Status Download(const float* there, std::span<const uint32_t> numbers, uint32_t dim,
                        float* rows) override {
    ForEach(numbers.size(), [&](size_t k) {
      std::memcpy(rows + k * dim, there + size_t{numbers[k]} * dim, dim * sizeof(float));
    });
    return absl::OkStatus();
  }
  absl::StatusOr<float*> AllocateThere(size_t floats) override {
    const uint64_t bytes = floats * sizeof(float);
    if (absl::Status s = CheckAllocation(bytes, free_bytes_); !s.ok()) return s;
    auto memory = HugeMemory::Allocate(bytes, PageUse::kHuge);
    if (!memory.ok()) return memory.status();
    free_bytes_ -= bytes;
    there_.push_back(*std::move(memory));
    return reinterpret_cast<float*>(there_.back().data());
  }
  absl::Status InitializeRows(std::span<const uint32_t> slots, const RowBirths& births) override {
    ForEach(slots.size(), [&](size_t k) {
      InitialRow(*births.spec, *births.layout, births.seed, births.keys[k], RowAt(slots[k]));
    });
    return absl::OkStatus();
  }
  absl::Status InitializeThere(const RowBirths& births, std::span<const uint32_t> numbers,
                               float* there) override {
    ForEach(numbers.size(), [&](size_t k) {
      InitialWeights(*births.spec, *births.layout, births.seed, births.keys[k],
                     there + size_t{numbers[k]} * births.layout->dim);
    });
    return absl::OkStatus();
  }
  absl::Status Apply(std::span<const uint32_t> slots, const RowUpdate& update,
                     uint8_t* outcomes) override {
    ForBlocks(slots.size(), [&](size_t begin, size_t end) {
      uint8_t* rows[kBlock];
      for (size_t i = begin; i < end; ++i) {
        rows[i - begin] = slots[i] == kNoGpuSlot ? nullptr : RowAt(slots[i]);
      }
      RowUpdate part = update;
      if (update.sums_there != nullptr) part.sums = std::exchange(part.sums_there, nullptr);
      part.sums += begin * update.stride;
      UpdateRows(part, {rows, end - begin}, outcomes + begin);
      for (size_t i = begin; i < end; ++i) {
        if ((outcomes[i] & kOutcomeApplied) == 0) continue;
        TouchMeta(rows[i - begin] + update.layout->meta_offset(), update.step);
      }
    });
    return absl::OkStatus();
  }

  absl::StatusOr<GpuPinned> Pin(std::span<const uint32_t> slots, size_t most_rows) override {
    GpuPinned pinned;
    for (; pinned.through < slots.size(); ++pinned.through) {
      const uint32_t slot = slots[pinned.through];
      if (slot == kNoGpuSlot) continue;
      if (slot >= shape_.slots() || t_.control[slot] == 0 || t_.pins[slot] == 0xff) break;
      if (t_.pins[slot] == 0 && pinned.rows++ == most_rows) {
        --pinned.rows;
        break;
      }
      ++t_.pins[slot];
    }
    return pinned;
  }
  absl::StatusOr<size_t> Unpin(std::span<const Position> positions,
                               std::span<const uint32_t> slots) override {
    size_t ended = 0;
    for (size_t i = 0; i < positions.size(); ++i) {
      const bool there = HoldsRow(t_, shape_.slots(), slots[i], positions[i].value);
      if (!there || t_.pins[slots[i]] == 0) continue;
      ended += --t_.pins[slots[i]] == 0;
    }
    return ended;
  }

  absl::StatusOr<size_t> Flags(std::span<const uint32_t> slots, std::span<uint8_t> flags) override {
    size_t pinned = 0;
    for (size_t i = 0; i < slots.size(); ++i) {
      flags[i] = slots[i] == kNoGpuSlot ? 0 : t_.flags[slots[i]];
      pinned += slots[i] != kNoGpuSlot && t_.pins[slots[i]] != 0;
    }
    return pinned;
  }
  absl::Status Erase(std::span<const uint32_t> slots) override {
    for (const uint32_t slot : slots) ClearSlot(t_, slot);
    return absl::OkStatus();
  }
  absl::Status MarkClean(std::span<const uint32_t> slots) override {
    for (const uint32_t slot : slots) {
      t_.flags[slot] = static_cast<uint8_t>((t_.flags[slot] | kGpuBelow) & ~kGpuDirty);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<GpuRow>> Dirty(Position first, Position last, size_t most) override {
    std::vector<GpuRow> rows;
    const auto before = [](const GpuRow& a, const GpuRow& b) { return a.position < b.position; };
    uint64_t bound = last.value;
    for (uint32_t slot = 0; slot < shape_.slots(); ++slot) {
      if (t_.control[slot] == 0 || (t_.flags[slot] & kGpuDirty) == 0) continue;
      const uint64_t position = t_.positions[slot];
      if (position < first.value || position > bound) continue;
      rows.push_back(RowOf(slot));
      if (rows.size() < 2 * most) continue;
      // The lowest `most` bound what may still come.
      std::nth_element(rows.begin(), rows.begin() + static_cast<ptrdiff_t>(most), rows.end(),
                       before);
      rows.resize(most);
      bound = std::max_element(rows.begin(), rows.end(), before)->position;
    }
    std::sort(rows.begin(), rows.end(), before);
    if (rows.size() > most) rows.resize(most);
    return rows;
  }

  absl::StatusOr<std::vector<GpuRow>> NextToLeave(uint32_t& bucket, size_t most) override {
    std::vector<GpuRow> rows;
    const uint32_t looks = std::min(kLeaveBuckets, shape_.buckets);
    for (uint32_t n = 0; n < looks && rows.size() < most; ++n) {
      bucket %= shape_.buckets;
      AddLeaving(bucket, rows);
      ++bucket;
    }
    if (rows.size() > most) rows.resize(most);
    return rows;
  }

  absl::Status Age(GpuAging aging) override {
    ForEach(shape_.buckets, [&](size_t bucket) {
      for (size_t slot = bucket * kSlots; slot < (bucket + 1) * kSlots; ++slot) {
        t_.scores[slot] = AgedScore(aging, t_.scores[slot], 1);
        if (t_.ghosts != nullptr)
          t_.ghosts[slot].score = AgedScore(aging, t_.ghosts[slot].score, 0);
      }
    });
    return absl::OkStatus();
  }

 private:
  // body(begin, end) over [0, n) in blocks.
  void ForBlocks(size_t n, const std::function<void(size_t, size_t)>& body) {
    team_->For((n + kBlock - 1) / kBlock,
               [&](size_t block) { body(block * kBlock, std::min(n, (block + 1) * kBlock)); });
  }
  template <typename Body>
  void ForEach(size_t n, const Body& body) {
    ForBlocks(n, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) body(i);
    });
  }

  GpuScoring ScoringAt(uint16_t now) const {
    return {.kind = shape_.eviction, .now = now, .gains = t_.gains};
  }
  uint8_t* RowAt(uint32_t slot) const { return t_.rows + size_t{slot} * t_.stride; }
  uint8_t* StagedAt(uint32_t place) const { return t_.staged + size_t{place} * t_.stride; }
  GpuRow RowOf(uint32_t slot) const { return {t_.positions[slot], slot, t_.flags[slot]}; }
  // Appends the dirty ones of the rows of a bucket that leave first.
  void AddLeaving(uint32_t bucket, std::vector<GpuRow>& rows) const {
    GpuRow leaving[kLeavingLine<kSlots>];
    LeavingRows<kSlots>(OneThread(), t_, bucket, leaving);
    for (const GpuRow& row : leaving) {
      if (row.slot == kNoGpuSlot) break;
      rows.push_back(row);
    }
  }

  const std::string device_name_ = "host";
  const GpuShape shape_;
  const HugeMemory memory_;
  const GpuSlots t_;
  uint64_t free_bytes_;
  std::vector<HugeMemory> there_;  // of AllocateThere
  const std::unique_ptr<ops::Parallel> team_;
  // Of the call at hand.
  std::vector<uint64_t> words_;  // Find: positions; Insert: bucket, then arrival
  std::vector<uint8_t> scored_;
  std::vector<uint32_t> order_, begins_;
};

template <int kSlots>
std::unique_ptr<GpuBackend> Make(const GpuShape& shape, HugeMemory memory, uint64_t free_bytes,
                                 size_t threads) {
  return std::make_unique<HostGpuBackend<kSlots>>(shape, std::move(memory), free_bytes, threads);
}

}  // namespace

absl::StatusOr<std::unique_ptr<GpuBackend>> MakeHostGpuBackend(const GpuShape& shape,
                                                               const HostGpuOptions& options) {
  if (options.memory_bytes != 0 && shape.bytes() > options.memory_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a GPU table needs ", shape.bytes(), " bytes, but ", options.memory_bytes,
                     " bytes are free of the device's memory; lower "
                     "spec.storage.gpuBytesPerServer"));
  }
  auto memory = HugeMemory::Allocate(shape.bytes(), PageUse::kHuge);
  if (!memory.ok()) return memory.status();
  const uint64_t free_bytes =
      (options.memory_bytes != 0 ? options.memory_bytes : ~uint64_t{0}) - shape.bytes();
  const size_t threads = options.threads;
  if (shape.bucket_slots == 32) return Make<32>(shape, *std::move(memory), free_bytes, threads);
  if (shape.bucket_slots == 64) return Make<64>(shape, *std::move(memory), free_bytes, threads);
  return Make<128>(shape, *std::move(memory), free_bytes, threads);
}

}  // namespace strata::storage::gpu
