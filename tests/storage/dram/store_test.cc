#include "storage/dram/store.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "proto/core/position.h"
#include "tests/skip.h"

namespace strata::storage {
namespace {

// A RowStore beside a std::map from positions to slots.
class Twin {
 public:
  Twin(const RowStoreOptions& options, uint64_t seed)
      : options_(options), store_(options), rng_(seed) {}

  RowStore& store() { return store_; }
  size_t size() const { return model_.size(); }
  uint64_t Random() { return rng_(); }

  void Insert(Position p) {
    if (model_.count(p.value) != 0) return;
    if (reserved_ == 0) {
      reserved_ = 1 + rng_() % 500;
      REQUIRE(store_.Reserve(reserved_).ok());
    }
    --reserved_;
    model_[p.value] = store_.Insert(p);
    keys_.push_back(p.value);
    // Never more than the formula, in the middle of growth neither.
    if (store_.bytes() > RowStore::MostBytesFor(options_, store_.size() + removed_)) {
      CHECK(store_.bytes() <= RowStore::MostBytesFor(options_, store_.size() + removed_));
    }
  }

  void RemoveOne() {
    if (keys_.empty()) return;
    std::swap(keys_[rng_() % keys_.size()], keys_.back());
    const auto it = model_.find(keys_.back());
    store_.Remove(it->second);
    model_.erase(it);
    keys_.pop_back();
    ++removed_;
  }

  // All rows are found, as many others are not, and they come in order from any place to any other.
  void Check() {
    REQUIRE(store_.size() == model_.size());
    std::vector<Position> ask;
    for (const auto& [position, slot] : model_) {
      ask.push_back(Position(position));
      if (position != options_.last.value && model_.count(position + 1) == 0) {
        ask.push_back(Position(position + 1));
      }
    }
    std::vector<uint32_t> slots(ask.size());
    store_.Find(ask, slots);
    bool right = true;
    for (size_t i = 0; i < ask.size(); ++i) {
      const auto it = model_.find(ask[i].value);
      right &= slots[i] == (it == model_.end() ? RowStore::kNoSlot : it->second);
    }
    REQUIRE(right);
    const uint64_t span = options_.last.value - options_.first.value;
    const auto any = [&] {
      return options_.first.value + (span == ~0ull ? rng_() : rng_() % (span + 1));
    };
    uint64_t from = any(), to = any();
    if (from > to) std::swap(from, to);
    if (rng_() % 4 == 0) from = options_.first.value, to = options_.last.value;
    auto it = model_.lower_bound(from);
    for (RowStore::Cursor at(store_, Position(from), Position(to)); at.Valid(); at.Next(), ++it) {
      if (it == model_.end()) FAIL("a row too many");
      right &= at.position().value == it->first && at.slot() == it->second;
    }
    REQUIRE(right);
    REQUIRE(it == model_.upper_bound(to));
  }

 private:
  const RowStoreOptions options_;
  RowStore store_;
  std::mt19937_64 rng_;
  std::map<uint64_t, uint32_t> model_;
  std::vector<uint64_t> keys_;
  size_t reserved_ = 0;
  uint64_t removed_ = 0;
};

TEST_CASE("a row store is whole at every moment of its growth", "[storage][row_store]") {
  const uint64_t seed = 11;
  INFO("seed " << seed);
  const uint64_t rows = Operations(LongRun() ? 1'000'000 : 70'000);
  for (const Spread spread : {Spread::kUniform, Spread::kClustered}) {
    for (const uint64_t last : {~0ull, 0x50ffffffffffffffull}) {
      RowStoreOptions options{.row_bytes = 12, .last = Position(last), .spread = spread};
      if (last != ~0ull) options.first = Position(0x5000000000000000ull);
      const uint64_t span = last - options.first.value;
      Twin twin(options, seed);
      size_t next_check = 1;
      for (uint64_t i = 0; twin.size() < rows; ++i) {
        twin.Insert(
            Position(options.first.value + (span == ~0ull ? twin.Random() : twin.Random() % span)));
        if (i % 5 == 0) twin.RemoveOne();
        if (twin.size() < next_check) continue;
        next_check += 1 + next_check / 30;
        twin.Check();
      }
      while (twin.size() > 0) {
        if (twin.size() % (rows / 4) == 0) twin.Check();
        twin.RemoveOne();
      }
      twin.Check();
    }
  }
}

TEST_CASE("rows that run over the index's end survive its growth", "[storage][row_store]") {
  // Beside spread ones, clumps of rows with homes in the first and the last buckets: they run over
  // the end to the beginning, in the old array and from there into the new one.
  const uint64_t seed = 12;
  INFO("seed " << seed);
  RowStoreOptions options{.row_bytes = 8};
  Twin twin(options, seed);
  for (uint64_t i = 0; twin.size() < 50'000; ++i) {
    twin.Insert(Position(twin.Random()));
    if (i < 250) twin.Insert(Position(~0ull - i));
    if (i < 100) twin.Insert(Position(i));
    if (i % 7 == 0) twin.RemoveOne();
    if (i % 1000 == 0) twin.Check();
  }
  twin.Check();
}

TEST_CASE("neighbours in the midst of growth end in one order", "[storage][row_store]") {
  // A uniform index turns clustered while it grows.
  const uint64_t seed = 13;
  INFO("seed " << seed);
  RowStoreOptions options{.row_bytes = 8};
  for (const uint64_t spread_rows : {9'500, 10'500, 40'500, 43'000}) {
    Twin twin(options, seed);
    while (twin.size() < spread_rows) twin.Insert(Position(twin.Random()));
    for (uint64_t i = 0; i < 5'000; ++i) twin.Insert(Position((uint64_t{1} << 63) + i));
    twin.Check();
  }
}

TEST_CASE("a limited row store is as large as its formula", "[storage][row_store]") {
  for (const size_t row_bytes : {8, 72, 16392}) {
    for (const size_t extra : {0, 3}) {
      RowStoreOptions options{.row_bytes = row_bytes, .extra_bytes = extra};
      options.limit_bytes = uint64_t{3} << 20;
      const uint64_t rows = RowStore::CapacityFor(options);
      const uint64_t budget = options.limit_bytes - RowStore::kPageSlack;
      CHECK(RowStore::BytesFor(options, rows) <= budget);
      CHECK(RowStore::BytesFor(options, rows + 1) > budget);
      RowStore store(options);
      CHECK(store.capacity() == rows);
      REQUIRE(store.Reserve(rows).ok());
      for (uint64_t i = 0; i < rows; ++i) store.Insert(Position(Mix64(i + 1)));
      CHECK(store.bytes() == RowStore::BytesFor(options, rows));
      CHECK(store.Reserve(1).code() == absl::StatusCode::kResourceExhausted);
    }
  }
}

// `rows` new positions, ascending over the whole range, as a step's keys come.
void InsertAscending(RowStore& store, uint64_t rows, uint64_t shift) {
  REQUIRE(store.Reserve(rows).ok());
  const uint64_t gap = ~uint64_t{0} / rows;
  for (uint64_t i = 0; i < rows; ++i) store.Insert(Position(i * gap + shift));
}

TEST_CASE("rows that come in order leave a table uniform that expects them", "[row_store]") {
  const RowStoreOptions options = {.row_bytes = 16};
  for (const uint64_t before : {0, 100, 3000, 40000}) {
    INFO("rows before: " << before);
    RowStore store(options);
    if (before > 0) {
      store.Expect(before);
      InsertAscending(store, before, 7);
    }
    for (uint64_t shift = 1; shift < 4; ++shift) {
      store.Expect(60000);
      InsertAscending(store, 60000, shift);
      CHECK(store.spread() == Spread::kUniform);
    }
    uint32_t slot = 0;
    const Position there(2);
    store.Find({&there, 1}, {&slot, 1});
    CHECK(slot != RowStore::kNoSlot);
  }
  RowStore surprised(options);
  InsertAscending(surprised, 100, 7);
  for (uint64_t i = 1; i < 60000; ++i) {
    REQUIRE(surprised.Reserve(1).ok());
    surprised.Insert(Position(i * (~uint64_t{0} / 120000)));
  }
  CHECK(surprised.spread() == Spread::kClustered);
}

TEST_CASE("uniform rows are not taken for clustered, however many come", "[row_store]") {
  RowStore store({.row_bytes = 16});
  uint64_t next = 3ull << 32;
  std::vector<Position> batch(2048);
  while (store.size() < Operations(1'800'000)) {
    for (Position& p : batch) p = Position(Mix64(++next));
    std::sort(batch.begin(), batch.end(), [](Position a, Position b) { return a.value < b.value; });
    REQUIRE(store.Reserve(batch.size()).ok());
    for (const Position& p : batch) store.Insert(p);
    REQUIRE(store.spread() == Spread::kUniform);
  }
}

}  // namespace
}  // namespace strata::storage
