#include "tests/storage/gpu/backend_conformance.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/gpu/shape.h"
#include "tests/skip.h"

namespace strata::storage::gpu {
namespace {

constexpr size_t kRowBytes = 24;

GpuShape ShapeOf(uint32_t bucket_slots, EvictionKind eviction, size_t rows) {
  auto shape = GpuShapeFor(rows * 64, kRowBytes, bucket_slots, eviction);
  REQUIRE(shape.ok());
  shape->places = 4096;
  return *shape;
}

class Player {
 public:
  Player(const GpuShape& shape, uint64_t seed, const GpuBackendFactory& one,
         const GpuBackendFactory& other)
      : shape_(shape), rng_(seed), one_(Made(one(shape))), team_(Made(other(shape))) {
    pool_ = {0, ~0ull};
    while (pool_.size() < 3 * shape.slots()) {
      const uint64_t start = rng_();
      const uint64_t run = rng_() % 8 == 0 ? 16 : 1;
      for (uint64_t i = 0; i < run; ++i) pool_.push_back(start + i);
    }
    std::sort(pool_.begin(), pool_.end());
    pool_.erase(std::unique(pool_.begin(), pool_.end()), pool_.end());
    for (uint32_t i = 0; i < shape.places; ++i) places_.push_back(i);
    model_.resize(pool_.size());
  }

  uint64_t left() const { return left_; }        // rows that had to leave
  uint64_t crowded() const { return crowded_; }  // that found no room

  void Play(uint64_t operations) {
    while (done_ < operations) {
      Batch();
      const uint64_t dice = rng_() % 16;
      if (dice < 12) {
        Refer(dice < 6 ? GpuUse::kRead : GpuUse::kUpdate);
      } else if (dice == 12) {
        Erase();
      } else if (dice == 13) {
        Clean();
      } else if (dice == 14) {
        Pin();
      } else {
        Sweep();
      }
    }
    const auto rows = std::count_if(model_.begin(), model_.end(),
                                    [](const Row& row) { return row.slot != kNoGpuSlot; });
    CHECK(static_cast<size_t>(rows) >
          shape_.slots() * 3 / 4);  // full, but for what was just erased
  }

 private:
  static std::unique_ptr<GpuBackend> Made(absl::StatusOr<std::unique_ptr<GpuBackend>> backend) {
    if (!backend.ok()) FAIL(backend.status().ToString());
    return *std::move(backend);
  }

  // What a position of the pool has. No slot: no row.
  struct Row {
    uint64_t version = 0;
    uint32_t slot = kNoGpuSlot;
    uint8_t flags = 0;
    bool pinned = false;
  };

  void Batch() {
    const size_t most = std::min<size_t>(3000, pool_.size() / 2);
    const size_t n = rng_() % 8 == 0 ? 1 + rng_() % most : most - rng_() % (most / 4);
    positions_.clear();
    rows_.clear();
    if (rng_() % 4 == 0) {
      const size_t begin = rng_() % (pool_.size() - n);
      for (size_t i = 0; i < n; ++i) Name(begin + i);
    } else {
      // A third of the pool is hot.
      const size_t among = rng_() % 3 == 0 ? pool_.size() : pool_.size() / 3;
      size_t at = 0;
      for (size_t i = 0; i < n; ++i) {
        at += 1 + rng_() % std::max<size_t>(1, 2 * among / n);
        if (at >= pool_.size()) break;
        Name(at);
      }
    }
    done_ += positions_.size();
  }
  void Name(size_t at) {
    positions_.push_back(Position(pool_[at]));
    rows_.push_back(&model_[at]);
  }

  Row& RowAt(uint64_t position) {
    const auto it = std::lower_bound(pool_.begin(), pool_.end(), position);
    if (it == pool_.end() || *it != position) FAIL("no such row was ever there");
    return model_[static_cast<size_t>(it - pool_.begin())];
  }

  // Both backends find the same, with or without guesses.
  std::vector<uint32_t> Find(GpuUse use) {
    std::vector<uint32_t> guesses(positions_.size(), kNoGpuSlot);
    if (rng_() % 2 == 0) {
      for (size_t i = 0; i < guesses.size(); ++i) {
        const uint64_t dice = rng_();
        guesses[i] = dice % 2 == 0 ? rows_[i]->slot
                                   : static_cast<uint32_t>((dice >> 1) % (2 * shape_.slots()));
      }
    }
    std::vector<uint32_t> slots = guesses, other = guesses;
    const auto scored = one_->Find(positions_, use, now_, slots);
    const auto scored_other = team_->Find(positions_, use, now_, other);
    REQUIRE((scored.ok() && scored_other.ok()));
    REQUIRE(*scored == *scored_other);
    REQUIRE(slots == other);
    bool right = true;
    for (size_t i = 0; i < slots.size(); ++i) right &= slots[i] == rows_[i]->slot;
    REQUIRE(right);
    return slots;
  }

  bool RowIs(uint64_t position, const Row& row, const uint8_t* bytes) const {
    uint64_t words[3];
    std::memcpy(words, bytes, sizeof(words));
    return words[0] == position && words[1] == row.version && words[2] == ~row.version;
  }

  // The rows at slots_ are those of positions_[index_].
  void CheckRows(GpuBackend& backend) {
    std::vector<const uint8_t*> rows(slots_.size());
    REQUIRE(backend.Read(slots_, rows).ok());
    bool right = true;
    for (size_t k = 0; k < slots_.size(); ++k) {
      right &= RowIs(positions_[index_[k]].value, *rows_[index_[k]], rows[k]);
    }
    REQUIRE(right);
  }

  void Keep(const std::vector<uint32_t>& slots) {
    slots_.clear();
    index_.clear();
    for (size_t i = 0; i < slots.size(); ++i) {
      if (slots[i] == kNoGpuSlot) continue;
      slots_.push_back(slots[i]);
      index_.push_back(i);
    }
  }

  void Refer(GpuUse use) {
    std::vector<uint32_t> slots = Find(use);
    Keep(slots);
    CheckRows(*one_);
    CheckRows(*team_);
    for (const size_t i : index_) {
      if (use == GpuUse::kUpdate) rows_[i]->flags |= kGpuDirty;
      rows_[i]->flags |= kGpuHeld;
    }
    InsertMissing(use, slots);
    Keep(slots);
    if (use == GpuUse::kUpdate) {
      for (const size_t i : index_) rows_[i]->version = ++version_;
    }
    for (GpuBackend* backend : {one_.get(), team_.get()}) {
      std::vector<uint8_t*> rows(slots_.size());
      REQUIRE(backend->Open(slots_, use, rows).ok());
      for (size_t k = 0; k < slots_.size(); ++k) {
        const uint64_t position = positions_[index_[k]].value;
        const uint64_t version = rows_[index_[k]]->version;
        const uint64_t words[3] = {position, version, ~version};
        if (use == GpuUse::kUpdate) std::memcpy(rows[k], words, sizeof(words));
      }
      REQUIRE(backend->Close(slots_).ok());
    }
    for (const size_t i : index_) rows_[i]->flags &= static_cast<uint8_t>(~kGpuHeld);
    now_ = static_cast<uint16_t>(now_ + 1);
    if (now_ < 2000) return;
    now_ -= 1000;
    for (GpuBackend* backend : {one_.get(), team_.get()}) {
      REQUIRE(backend->Age({.lower = 1000}).ok());
    }
  }

  // What is missing comes, rows that it pushes out leave the model. Sets slots.
  void InsertMissing(GpuUse use, std::vector<uint32_t>& slots) {
    std::vector<GpuArrival> arrivals;
    std::vector<size_t> index;
    for (size_t i = 0; i < slots.size(); ++i) {
      if (slots[i] != kNoGpuSlot) continue;
      const uint8_t flags = kGpuHeld | (use == GpuUse::kUpdate ? kGpuDirty : kGpuBelow);
      arrivals.push_back({positions_[i].value, places_[arrivals.size()], flags});
      index.push_back(i);
    }
    std::vector<GpuPlaced> placed(arrivals.size()), other(arrivals.size());
    REQUIRE(one_->Insert(arrivals, now_, placed).ok());
    REQUIRE(team_->Insert(arrivals, now_, other).ok());
    std::vector<uint32_t> put;
    std::vector<uint64_t> words;
    for (size_t k = 0; k < placed.size(); ++k) {
      const GpuPlaced &a = placed[k], &b = other[k];
      const bool same = a.slot == b.slot && a.left == b.left && a.left_flags == b.left_flags &&
                        a.left_position == b.left_position;
      if (!same) REQUIRE(same);
      if (a.left != 0) Leave(a, arrivals[k].place);
      crowded_ += a.slot == kNoGpuSlot;
      if (a.slot == kNoGpuSlot) continue;
      slots[index[k]] = a.slot;
      *rows_[index[k]] = {.version = ++version_, .slot = a.slot, .flags = arrivals[k].flags};
      put.push_back(a.slot);
      words.insert(words.end(), {arrivals[k].position, version_, ~version_});
    }
    std::vector<const uint8_t*> rows;
    for (size_t k = 0; k < put.size(); ++k) {
      rows.push_back(reinterpret_cast<const uint8_t*>(&words[3 * k]));
    }
    REQUIRE((one_->Put(put, rows).ok() && team_->Put(put, rows).ok()));
  }

  void Leave(const GpuPlaced& placed, uint32_t place) {
    ++left_;
    const Row row = RowAt(placed.left_position);
    RowAt(placed.left_position) = {};
    constexpr uint8_t kTold = kGpuDirty | kGpuBelow | kGpuHeld;
    bool right = row.slot == placed.slot && (row.flags & kGpuHeld) == 0 &&
                 (row.flags & kTold) == (placed.left_flags & kTold) && !row.pinned;
    if (row.flags & kGpuDirty) {
      for (GpuBackend* backend : {one_.get(), team_.get()}) {
        const uint8_t* bytes = nullptr;
        right &= backend->ReadStaged({&place, 1}, {&bytes, 1}).ok() &&
                 RowIs(placed.left_position, row, bytes);
      }
    }
    if (!right) REQUIRE(right);
  }

  void Erase() {
    if (positions_.size() > 50) positions_.resize(50);
    rows_.resize(positions_.size());
    Keep(Find(GpuUse::kLook));
    std::vector<uint8_t> flags(slots_.size());
    size_t pinned = 0;
    for (const size_t i : index_) pinned += rows_[i]->pinned;
    for (GpuBackend* backend : {one_.get(), team_.get()}) {
      const auto found = backend->Flags(slots_, flags);
      REQUIRE((found.ok() && *found == pinned));
      REQUIRE(backend->Erase(slots_).ok());
    }
    for (const size_t i : index_) *rows_[i] = {};
  }

  void Clean() {
    Keep(Find(GpuUse::kLook));
    REQUIRE((one_->MarkClean(slots_).ok() && team_->MarkClean(slots_).ok()));
    for (const size_t i : index_) {
      uint8_t& flags = rows_[i]->flags;
      flags = static_cast<uint8_t>((flags | kGpuBelow) & ~kGpuDirty);
    }
  }

  // Some rows get pins, all others lose theirs.
  void Pin() {
    std::vector<Position> pinned;
    std::vector<uint32_t> at;
    for (size_t i = 0; i < model_.size(); ++i) {
      if (!model_[i].pinned) continue;
      pinned.push_back(Position(pool_[i]));
      at.push_back(model_[i].slot);
      model_[i].pinned = false;
    }
    for (GpuBackend* backend : {one_.get(), team_.get()}) {
      const auto ended = backend->Unpin(pinned, at);
      REQUIRE((ended.ok() && *ended == pinned.size()));
    }
    Keep(Find(GpuUse::kLook));
    const size_t most = shape_.slots() / 2;
    for (GpuBackend* backend : {one_.get(), team_.get()}) {
      const auto got = backend->Pin(slots_, most);
      REQUIRE((got.ok() && got->through == std::min(most, slots_.size())));
      REQUIRE(got->rows == got->through);
    }
    for (size_t k = 0; k < std::min(most, slots_.size()); ++k) rows_[index_[k]]->pinned = true;
  }

  // Dirty rows in order.
  void Sweep() {
    size_t at = rng_() % pool_.size();
    const Position first(pool_[at]);
    const size_t most = 1 + rng_() % 500;
    const auto rows = team_->Dirty(first, Position(~0ull), most);
    REQUIRE(rows.ok());
    std::vector<uint64_t> got, want;
    for (const GpuRow& row : *rows) got.push_back(row.position);
    for (; at < pool_.size() && want.size() < most; ++at) {
      if (model_[at].flags & kGpuDirty) want.push_back(pool_[at]);
    }
    REQUIRE(got == want);
    uint32_t bucket = static_cast<uint32_t>(rng_() % shape_.buckets), other = bucket;
    const auto leaving = one_->NextToLeave(bucket, most);
    const auto leaving_other = team_->NextToLeave(other, most);
    REQUIRE((leaving.ok() && leaving_other.ok()));
    REQUIRE((bucket == other && leaving->size() == leaving_other->size()));
    bool right = leaving->size() <= most;
    for (size_t k = 0; k < leaving->size(); ++k) {
      const GpuRow& row = (*leaving)[k];
      const Row& at_it = RowAt(row.position);
      right &= row.slot == (*leaving_other)[k].slot && row.slot == at_it.slot;
      right &= !at_it.pinned && (at_it.flags & kGpuDirty) != 0;
    }
    REQUIRE(right);
  }

  const GpuShape shape_;
  std::mt19937_64 rng_;
  const std::unique_ptr<GpuBackend> one_, team_;
  std::vector<uint64_t> pool_;  // ascending
  std::vector<uint32_t> places_;
  std::vector<Row> model_;           // of pool_
  std::vector<Position> positions_;  // of the batch
  std::vector<Row*> rows_;           // of the model, of positions_
  std::vector<uint32_t> slots_;      // of those of the batch that are there,
  std::vector<size_t> index_;        // which these are
  uint16_t now_ = 1;
  uint64_t version_ = 0;
  uint64_t done_ = 0;
  uint64_t left_ = 0;
  uint64_t crowded_ = 0;
};

}  // namespace

void CheckBackendsAgree(const GpuBackendFactory& one, const GpuBackendFactory& other,
                        uint64_t operations) {
  uint64_t seed = 1;
  uint64_t left = 0, crowded = 0;
  for (const uint32_t bucket_slots : {32, 64, 128}) {
    for (const EvictionKind kind : {EvictionKind::kLru, EvictionKind::kLfu, EvictionKind::kLrfu}) {
      for (const size_t rows : {size_t{600}, size_t{8000}}) {
        INFO("seed " << seed << ", buckets of " << bucket_slots << ", about " << rows << " rows");
        // Small tables have small batches, which take longer.
        const uint64_t share = operations / 9 / (rows < 1000 ? 8 : 1);
        Player player(ShapeOf(bucket_slots, kind, rows), seed++, one, other);
        player.Play(LongRun() ? share : Operations(share));
        left += player.left();
        crowded += player.crowded();
      }
    }
  }
  CHECK(left > Operations(operations) / 50);
  CHECK(crowded > 0);
}

}  // namespace strata::storage::gpu
