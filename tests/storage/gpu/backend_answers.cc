// Two backends are asked everything that may be asked, and answer the same.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/gpu/shape.h"
#include "tests/skip.h"
#include "tests/storage/gpu/backend_conformance.h"

namespace strata::storage::gpu {
namespace {

class Twins {
 public:
  Twins(const GpuShape& shape, uint64_t seed, const GpuBackendFactory& one,
        const GpuBackendFactory& other)
      : shape_(shape), rng_(seed), one_(Made(one(shape))), other_(Made(other(shape))) {
    pool_ = {0, ~0ull, 1, ~0ull - 1};
    while (pool_.size() < 2 * shape.slots()) pool_.push_back(rng_());
    at_.resize(shape.slots());
    taken_.resize(shape.slots());
    most_ = std::min({one_->max_batch(), other_->max_batch(), shape.slots(), size_t{400}});
  }

  // Returns how many rows were read that somebody had written.
  size_t Play(size_t calls) {
    for (size_t i = 0; i < calls && !failed_; ++i) Call(rng_() % 32);
    std::vector<uint32_t> all, places;
    for (uint32_t slot = 0; slot < shape_.slots(); ++slot) all.push_back(slot);
    for (uint32_t place = 0; place < shape_.places; ++place) places.push_back(place);
    for (size_t at = 0; at < all.size(); at += most_) Read(Part(all, at), false);
    for (size_t at = 0; at < places.size(); at += most_) Read(Part(places, at), true);
    return rows_read_;
  }

 private:
  static std::unique_ptr<GpuBackend> Made(absl::StatusOr<std::unique_ptr<GpuBackend>> backend) {
    if (!backend.ok()) FAIL(backend.status().ToString());
    return *std::move(backend);
  }

  // Counts no assertion for each of very many comparisons.
  void Same(bool same, const char* call) {
    if (same || failed_) return;
    failed_ = true;
    FAIL_CHECK(call << " answers otherwise");
  }

  void Call(uint64_t dice) {
    if (dice < 6) return Find();
    if (dice < 13) return Insert();
    if (dice < 15) return Put();
    if (dice < 16) return PutStaged();
    if (dice < 18) return Read(Rows(Size()), false);
    if (dice < 19) return Read(Places(Size()), true);
    if (dice < 22) return OpenAndClose();
    if (dice < 24) return Pin();
    if (dice < 26) return Unpin();
    if (dice < 27) return Flags();
    if (dice < 28) return Erase();
    if (dice < 29) return Clean();
    if (dice < 30) return Dirty();
    if (dice < 31) return Leave();
    Age();
  }

  std::vector<uint32_t> Part(const std::vector<uint32_t>& all, size_t at) const {
    const size_t end = std::min(all.size(), at + most_);
    return {all.begin() + static_cast<ptrdiff_t>(at), all.begin() + static_cast<ptrdiff_t>(end)};
  }
  size_t Size() { return rng_() % 8 == 0 ? rng_() % 3 : 1 + rng_() % most_; }
  // Some of the pool, distinct, in any order.
  std::vector<Position> Positions(size_t n) {
    std::set<uint64_t> chosen;
    std::vector<Position> out;
    for (size_t i = 0; i < n; ++i) {
      const uint64_t p = pool_[rng_() % pool_.size()];
      if (chosen.insert(p).second) out.push_back(Position(p));
    }
    return out;
  }
  std::vector<uint32_t> Distinct(std::vector<uint32_t> from, size_t n) {
    std::shuffle(from.begin(), from.end(), rng_);
    if (from.size() > n) from.resize(n);
    return from;
  }
  // Slots that hold a row.
  std::vector<uint32_t> Rows(size_t n) {
    std::vector<uint32_t> taken;
    for (uint32_t slot = 0; slot < at_.size(); ++slot) {
      if (taken_[slot] != 0) taken.push_back(slot);
    }
    return Distinct(std::move(taken), n);
  }
  std::vector<uint32_t> Places(size_t n) {
    std::vector<uint32_t> places(shape_.places);
    for (uint32_t i = 0; i < shape_.places; ++i) places[i] = i;
    return Distinct(std::move(places), n);
  }
  // Any numbers, repeated at will.
  std::vector<uint32_t> Numbers(size_t n) {
    std::vector<uint32_t> numbers;
    for (size_t i = 0; i < n; ++i) {
      const uint64_t dice = rng_() % 64;
      const auto slot = static_cast<uint32_t>(rng_() % shape_.slots());
      if (dice == 0) {
        numbers.push_back(static_cast<uint32_t>(rng_()));
      } else if (dice < 8) {
        numbers.push_back(kNoGpuSlot);
      } else if (dice < 24 && i > 0) {
        numbers.push_back(numbers[rng_() % i]);
      } else {
        // Nearly always one that holds a row: Pin would not come far.
        numbers.push_back(taken_[slot] == 0 && rng_() % 64 != 0 ? kNoGpuSlot : slot);
      }
    }
    return numbers;
  }

  void Find() {
    const auto positions = Positions(Size());
    const auto use = static_cast<GpuUse>(rng_() % 3);
    std::vector<uint32_t> slots = Numbers(positions.size());
    for (size_t i = 0; i < slots.size(); ++i) {
      if (rng_() % 2 != 0) continue;
      const auto it = std::find(at_.begin(), at_.end(), positions[i].value);
      if (it != at_.end()) slots[i] = static_cast<uint32_t>(it - at_.begin());
    }
    std::vector<uint32_t> other = slots;
    const auto a = one_->Find(positions, use, now_, slots);
    const auto b = other_->Find(positions, use, now_, other);
    Same(a.ok() && b.ok() && *a == *b && slots == other, "Find");
    // Held rows stay; without this no row could leave in the end.
    if (use != GpuUse::kLook && rng_() % 4 != 0) Release(slots);
    now_ = static_cast<uint16_t>(now_ + rng_() % 3);
  }
  void Release(const std::vector<uint32_t>& slots) {
    std::vector<uint32_t> held;
    for (const uint32_t slot : slots) {
      if (slot != kNoGpuSlot) held.push_back(slot);
    }
    Same(one_->Close(held).ok() && other_->Close(held).ok(), "Close");
  }

  void Insert() {
    const auto positions = Positions(std::min<size_t>(Size(), shape_.places));
    const auto places = Places(positions.size());
    std::vector<GpuArrival> arrivals;
    for (size_t i = 0; i < positions.size(); ++i) {
      auto flags = static_cast<uint8_t>(rng_() % 16);
      if (rng_() % 8 != 0) flags &= static_cast<uint8_t>(~kGpuHeld);
      arrivals.push_back({positions[i].value, places[i], flags});
    }
    std::vector<GpuPlaced> placed(arrivals.size()), other(arrivals.size());
    Same(one_->Insert(arrivals, now_, placed).ok() && other_->Insert(arrivals, now_, other).ok(),
         "Insert");
    for (size_t i = 0; i < placed.size(); ++i) {
      const GpuPlaced &a = placed[i], &b = other[i];
      Same(a.slot == b.slot && a.left == b.left && a.left_flags == b.left_flags &&
               a.left_position == b.left_position,
           "Insert");
      if (a.slot == kNoGpuSlot) continue;
      taken_[a.slot] = 1;
      at_[a.slot] = arrivals[i].position;
    }
    now_ = static_cast<uint16_t>(now_ + 1);
  }

  std::vector<uint8_t> Bytes(size_t rows) {
    std::vector<uint8_t> bytes(rows * shape_.row_bytes);
    for (uint8_t& b : bytes) b = static_cast<uint8_t>(rng_());
    return bytes;
  }
  void Put() {
    const auto slots = Rows(Size());
    const auto bytes = Bytes(slots.size());
    std::vector<const uint8_t*> rows;
    for (size_t i = 0; i < slots.size(); ++i) rows.push_back(&bytes[i * shape_.row_bytes]);
    Same(one_->Put(slots, rows).ok() && other_->Put(slots, rows).ok(), "Put");
  }
  void PutStaged() {
    const auto slots = Rows(std::min<size_t>(Size(), shape_.places));
    const auto places = Places(slots.size());
    Same(one_->PutStaged(slots, places).ok() && other_->PutStaged(slots, places).ok(), "PutStaged");
  }
  void Read(const std::vector<uint32_t>& numbers, bool staged) {
    std::vector<const uint8_t*> a(numbers.size()), b(numbers.size());
    const auto read = [&](GpuBackend& backend, std::vector<const uint8_t*>& rows) {
      return (staged ? backend.ReadStaged(numbers, rows) : backend.Read(numbers, rows)).ok();
    };
    Same(read(*one_, a) && read(*other_, b), "Read");
    for (size_t i = 0; i < numbers.size() && !failed_; ++i) {
      Same(std::memcmp(a[i], b[i], shape_.row_bytes) == 0, staged ? "ReadStaged" : "Read");
      rows_read_ += std::count(a[i], a[i] + shape_.row_bytes, 0) < 3;
    }
  }

  void OpenAndClose() {
    const auto slots = Rows(Size());
    const auto use = rng_() % 2 == 0 ? GpuUse::kRead : GpuUse::kUpdate;
    const auto bytes = Bytes(slots.size());
    std::vector<uint8_t*> a(slots.size()), b(slots.size());
    Same(one_->Open(slots, use, a).ok() && other_->Open(slots, use, b).ok(), "Open");
    for (size_t i = 0; i < slots.size() && !failed_; ++i) {
      Same(std::memcmp(a[i], b[i], shape_.row_bytes) == 0, "Open");
      if (use != GpuUse::kUpdate || rng_() % 4 == 0) continue;  // some are left as they are
      std::memcpy(a[i], &bytes[i * shape_.row_bytes], shape_.row_bytes);
      std::memcpy(b[i], &bytes[i * shape_.row_bytes], shape_.row_bytes);
    }
    // The hold of some may go on.
    const auto closed = Distinct(slots, slots.size() - (slots.empty() ? 0 : rng_() % 2));
    Same(one_->Close(closed).ok() && other_->Close(closed).ok(), "Close");
  }

  void Pin() {
    const auto slots = Numbers(Size());
    const size_t most = rng_() % 3 == 0 ? ~size_t{0} : rng_() % (slots.size() + 1);
    const auto a = one_->Pin(slots, most);
    const auto b = other_->Pin(slots, most);
    Same(a.ok() && b.ok() && a->through == b->through && a->rows == b->rows, "Pin");
  }
  void Unpin() {
    const auto slots = Numbers(Size());
    std::vector<Position> positions;
    for (const uint32_t slot : slots) {
      const bool right = slot < at_.size() && taken_[slot] != 0 && rng_() % 8 != 0;
      positions.push_back(Position(right ? at_[slot] : pool_[rng_() % pool_.size()]));
    }
    const auto a = one_->Unpin(positions, slots);
    const auto b = other_->Unpin(positions, slots);
    Same(a.ok() && b.ok() && *a == *b, "Unpin");
  }
  void Flags() {
    auto slots = Rows(Size());
    for (uint32_t& slot : slots) {
      if (rng_() % 8 == 0) slot = kNoGpuSlot;
    }
    std::vector<uint8_t> flags(slots.size()), other(slots.size());
    const auto a = one_->Flags(slots, flags);
    const auto b = other_->Flags(slots, other);
    Same(a.ok() && b.ok() && *a == *b && flags == other, "Flags");
  }
  void Erase() {
    const auto slots = Rows(Size() / 8);
    Same(one_->Erase(slots).ok() && other_->Erase(slots).ok(), "Erase");
    for (const uint32_t slot : slots) taken_[slot] = 0;
  }
  void Clean() {
    const auto slots = Rows(Size());
    Same(one_->MarkClean(slots).ok() && other_->MarkClean(slots).ok(), "MarkClean");
  }

  void SameRows(const absl::StatusOr<std::vector<GpuRow>>& a,
                const absl::StatusOr<std::vector<GpuRow>>& b, const char* call) {
    Same(a.ok() && b.ok() && a->size() == b->size(), call);
    for (size_t i = 0; !failed_ && i < a->size(); ++i) {
      const GpuRow &x = (*a)[i], &y = (*b)[i];
      Same(x.position == y.position && x.slot == y.slot && x.flags == y.flags, call);
    }
  }
  void Dirty() {
    uint64_t first = rng_() % 3 == 0 ? 0 : pool_[rng_() % pool_.size()];
    uint64_t last = rng_() % 3 == 0 ? ~0ull : pool_[rng_() % pool_.size()];
    if (last < first) std::swap(first, last);
    const size_t most = rng_() % 4 == 0 ? shape_.slots() + 1 : 1 + rng_() % (3 * most_);
    SameRows(one_->Dirty(Position(first), Position(last), most),
             other_->Dirty(Position(first), Position(last), most), "Dirty");
  }
  void Leave() {
    auto bucket = static_cast<uint32_t>(rng_() % 2 == 0 ? rng_() : rng_() % shape_.buckets);
    uint32_t other = bucket;
    const size_t most = rng_() % 4 == 0 ? 100'000 : rng_() % 20;
    SameRows(one_->NextToLeave(bucket, most), other_->NextToLeave(other, most), "NextToLeave");
    Same(bucket == other, "NextToLeave");
  }
  void Age() {
    const auto lower = static_cast<uint16_t>(rng_() % (now_ / 2 + 1));
    const GpuAging aging{.lower = lower, .halve = rng_() % 2 == 0};
    Same(one_->Age(aging).ok() && other_->Age(aging).ok(), "Age");
    now_ = AgedScore(aging, now_, 1);
  }

  const GpuShape shape_;
  std::mt19937_64 rng_;
  const std::unique_ptr<GpuBackend> one_, other_;
  std::vector<uint64_t> pool_;
  // Of slots: whether a row is there, and its position.
  std::vector<uint8_t> taken_;
  std::vector<uint64_t> at_;
  size_t most_ = 0;
  uint16_t now_ = 1;
  size_t rows_read_ = 0;
  bool failed_ = false;
};

}  // namespace

void CheckSameAnswers(const GpuBackendFactory& one, const GpuBackendFactory& other,
                      uint64_t calls) {
  uint64_t seed = 1000;
  size_t rows_read = 0;
  for (const uint32_t bucket_slots : {32, 64, 128}) {
    for (const EvictionKind kind : {EvictionKind::kLru, EvictionKind::kLfu, EvictionKind::kLrfu}) {
      for (const uint32_t buckets : {1u, 7u, 30u}) {
        INFO("seed " << seed << ", " << buckets << " buckets of " << bucket_slots);
        const GpuShape shape{.row_bytes = 8 + buckets * 4,
                             .bucket_slots = bucket_slots,
                             .eviction = kind,
                             .buckets = buckets,
                             .places = 500};
        rows_read += Twins(shape, seed++, one, other).Play(Operations(calls / 27));
      }
    }
  }
  CHECK(rows_read > Operations(calls) / 10);
}

void CheckPins(const GpuBackendFactory& make) {
  auto made = make({.row_bytes = 24,
                    .bucket_slots = 32,
                    .eviction = EvictionKind::kLru,
                    .buckets = 3,
                    .places = 16});
  REQUIRE(made.ok());
  const std::unique_ptr<GpuBackend> backend = *std::move(made);
  const GpuArrival arrival{.position = 5};
  GpuPlaced placed;
  REQUIRE(backend->Insert({&arrival, 1}, 1, {&placed, 1}).ok());
  const std::vector<uint32_t> slots = {kNoGpuSlot, placed.slot, placed.slot};
  for (int i = 0; i < 127; ++i) {
    const auto pinned = backend->Pin(slots, 1);
    REQUIRE((pinned.ok() && pinned->through == 3 && pinned->rows == (i == 0)));
  }
  CHECK(backend->Pin(slots, 1)->through == 2);  // 255
  CHECK(backend->Pin(slots, 1)->through == 1);
  const std::vector<Position> positions(255, Position(5));
  CHECK(*backend->Unpin(positions, std::vector<uint32_t>(255, placed.slot)) == 1);
  CHECK(*backend->Unpin(positions, std::vector<uint32_t>(255, placed.slot)) == 0);
  // All in one call, and more than a row takes.
  const auto many = backend->Pin(std::vector<uint32_t>(300, placed.slot), 1);
  REQUIRE((many.ok() && many->through == 255 && many->rows == 1));
  CHECK(*backend->Unpin(positions, std::vector<uint32_t>(255, placed.slot)) == 1);
  // Slots that hold nothing, and none that there are.
  const uint32_t far[] = {1'000'000};
  CHECK(backend->Pin(far, 1)->through == 0);
  const uint32_t empty[] = {placed.slot, placed.slot + 1};
  CHECK(backend->Pin(empty, 2)->through == 1);
  CHECK(*backend->Unpin({positions.data(), 2}, empty) == 1);
}

}  // namespace strata::storage::gpu
