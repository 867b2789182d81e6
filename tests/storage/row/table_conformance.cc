#include "tests/storage/row/table_conformance.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/runtime/base/failpoints.h"
#include "tests/skip.h"

namespace strata::storage {
namespace {

// The bytes of the version-th value of a row: a pure function, so that the oracle keeps a number.
void FillRow(Position position, uint64_t version, std::span<uint8_t> row) {
  uint64_t x = position.value * 0x9e3779b97f4a7c15ull + version * 0xd1342543de82ef95ull + 1;
  for (size_t i = 0; i < row.size(); ++i) {
    if (i % 8 == 0) x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ull + i;
    row[i] = static_cast<uint8_t>(x >> (8 * (i % 8)));
  }
}

class Player {
 public:
  explicit Player(const ConformanceCase& c)
      : c_(c), rng_(c.seed), table_(c.make()), expected_row_(c.row_bytes) {
    MakePool();
  }

  void Play() {
    while (done_ < Operations(c_.operations)) {
      if (c_.below != nullptr && rng_() % 64 == 0) {
        PlayTrouble();
      } else {
        PlayOne();
      }
    }
    ScanRange(Position(0), Position(~0ull));
    ScanRange(c_.first, c_.last);
    for (Memory& m : memories_) Forget(m);
    REQUIRE(table_->counters().pinned == 0);
  }

  size_t PlayShort() {
    size_t refused = 0;
    while (done_ < c_.operations) {
      const std::vector<Position> batch = Batch();
      if (rng_() % 2 == 0 && RefusedWithoutMemory(batch)) {
        ++refused;
        CheckCounters();
        ScanRange(c_.first, c_.last);
        if (rng_() % 2 == 0) continue;
      }
      UpdateAt(batch, {});
      if (rng_() % 8 == 0) Erase();
      CheckCounters();
    }
    ScanRange(c_.first, c_.last);
    return refused;
  }

 private:
  // What Resolve said of a batch, some operations ago.
  struct Memory {
    std::vector<Position> positions;
    std::vector<RowSlot> slots;
    size_t pinned = 0;         // of them, from the first on
    std::set<uint64_t> whole;  // pinned and not erased since

    RowSlot SlotOf(Position position) const {
      const auto it = std::lower_bound(positions.begin(), positions.end(), position);
      return it != positions.end() && *it == position ? slots[it - positions.begin()] : kNoRow;
    }
  };

  void PlayOne() {
    const uint64_t dice = rng_() % 100;
    if (dice < 30) {
      Update();
    } else if (dice < 35) {
      Replace();
    } else if (dice < 70) {
      Read();
    } else if (dice < 78) {
      Remember();
    } else if (dice < 85) {
      UseMemory();
    } else if (dice < 97) {
      Erase();
    } else if (dice < 99) {
      Scan();
    } else {
      Done(rng_() % 4 == 0 ? table_->Flush() : table_->Tidy(1 + rng_() % 200).status());
    }
    CheckCounters();
  }

  // Some operations while reads below fail, writes, or both.
  void PlayTrouble() {
    const uint64_t which = rng_() % 3;
    c_.below->reads_fail = which != 0;
    c_.below->writes_fail = which != 1;
    for (uint64_t n = 1 + rng_() % 8; n > 0; --n) PlayOne();
    c_.below->reads_fail = c_.below->writes_fail = false;
  }

  // False: it failed as the tier below did. Anything else is wrong.
  bool Done(const absl::Status& s) {
    if (s.ok()) return true;
    const bool told =
        c_.below != nullptr && ((c_.below->reads_fail && absl::IsUnavailable(s)) ||
                                (c_.below->writes_fail && absl::IsResourceExhausted(s)));
    if (!told) FAIL(s.ToString());
    return false;
  }

  // Ends of the range, runs of neighbours, and positions spread over it.
  void MakePool() {
    const uint64_t span = c_.last.value - c_.first.value;
    std::set<uint64_t> pool = {c_.first.value, c_.last.value};
    const auto at = [&](uint64_t x) {
      return c_.first.value + (span == ~0ull ? x : x % (span + 1));
    };
    const size_t want =
        static_cast<size_t>(std::min<uint64_t>(c_.positions, span == ~0ull ? ~0ull : span + 1));
    while (pool.size() < want) {
      const uint64_t start = rng_();
      const uint64_t run = rng_() % 4 == 0 ? 1 + rng_() % 20 : 1;
      for (uint64_t i = 0; i < run && pool.size() < want; ++i) pool.insert(at(start + i));
    }
    for (uint64_t p : pool) pool_.push_back(Position(p));
  }

  // Strictly ascending; dense runs at times, so that batches hit and miss.
  std::vector<Position> Batch() {
    const size_t most = std::min<size_t>({table_->max_batch(), pool_.size(), 300});
    const size_t n = rng_() % (most + 1);
    std::vector<Position> out;
    if (rng_() % 3 == 0) {
      const size_t begin = rng_() % (pool_.size() - n + 1);
      out.assign(pool_.begin() + begin, pool_.begin() + begin + n);
    } else {
      std::sample(pool_.begin(), pool_.end(), std::back_inserter(out), n, rng_);
    }
    done_ += std::max<size_t>(1, n);
    return out;
  }

  bool RowIs(Position position, uint64_t version, const uint8_t* row) {
    FillRow(position, version, expected_row_);
    return std::memcmp(row, expected_row_.data(), c_.row_bytes) == 0;
  }

  void Update() {
    const std::vector<Position> batch = Batch();
    UpdateAt(batch, {});
  }

  // True: the batch needed memory. Else it was updated.
  bool RefusedWithoutMemory(const std::vector<Position>& batch) {
    std::vector<RowRef> refs(batch.size());
    absl::Status s;
    {
      const ScopedFailpoint none("huge_memory.allocate",
                                 {.act = FailWith(absl::ResourceExhaustedError("none"))});
      if (rng_() % 8 == 0) table_->Expect(batch.size());
      s = table_->Resolve(batch, Access::kUpdate, refs, {});
    }
    if (s.ok()) {
      Write(batch, refs);
      return false;
    }
    INFO(s);
    REQUIRE(absl::IsResourceExhausted(s));
    const std::string text(s.message());
    REQUIRE(text.find("bytes of memory for rows") != std::string::npos);
    REQUIRE(text.find("are free") != std::string::npos);
    return true;
  }

  void UpdateAt(const std::vector<Position>& batch, std::span<RowSlot> slots) {
    std::vector<RowRef> refs(batch.size());
    if (!Done(table_->Resolve(batch, Access::kUpdate, refs, slots))) return;
    Write(batch, refs);
  }

  // New bytes into the rows that Resolve gave, which are let go.
  void Write(const std::vector<Position>& batch, const std::vector<RowRef>& refs) {
    bool right = true;
    std::set<const uint8_t*> rows;
    for (size_t i = 0; i < batch.size(); ++i) {
      auto it = model_.find(batch[i].value);
      right &= refs[i].row != nullptr && reinterpret_cast<uintptr_t>(refs[i].row) % 4 == 0;
      right &= refs[i].created == (it == model_.end());
      right &= it == model_.end() || RowIs(batch[i], it->second, refs[i].row);
      rows.insert(refs[i].row);
    }
    REQUIRE(right);
    REQUIRE(rows.size() == batch.size());
    for (size_t i = 0; i < batch.size(); ++i) {
      model_[batch[i].value] = ++version_;
      FillRow(batch[i], version_, {refs[i].row, c_.row_bytes});
    }
    // All are pinned at once: writing one changed no other.
    for (size_t i = 0; i < batch.size(); ++i) {
      right &= RowIs(batch[i], model_[batch[i].value], refs[i].row);
    }
    REQUIRE(right);
    CheckCounters();
    table_->Release();
  }

  // Of rows that exist, without looking at what they were.
  void Replace() {
    std::vector<Position> batch = Batch();
    std::erase_if(batch, [this](Position p) { return model_.count(p.value) == 0; });
    std::vector<RowRef> refs(batch.size());
    if (!Done(table_->Resolve(batch, Access::kReplace, refs, {}))) return;
    for (size_t i = 0; i < batch.size(); ++i) {
      REQUIRE((refs[i].row != nullptr && !refs[i].created));
      model_[batch[i].value] = ++version_;
      FillRow(batch[i], version_, {refs[i].row, c_.row_bytes});
    }
    table_->Release();
  }

  void Read() {
    if (ReadAt(Batch(), {})) table_->Release();
  }

  // Leaves the rows held; false: it failed.
  bool ReadAt(const std::vector<Position>& batch, std::span<RowSlot> slots) {
    std::vector<RowRef> refs(batch.size());
    if (!Done(table_->Resolve(batch, Access::kRead, refs, slots))) return false;
    bool right = true;
    for (size_t i = 0; i < batch.size(); ++i) {
      auto it = model_.find(batch[i].value);
      right &= !refs[i].created && (refs[i].row == nullptr) == (it == model_.end());
      right &= it == model_.end() || (refs[i].row && RowIs(batch[i], it->second, refs[i].row));
    }
    for (size_t i = 0; i < slots.size(); ++i) {
      right &= (slots[i] == kNoRow) == (model_.find(batch[i].value) == model_.end());
    }
    REQUIRE(right);
    return true;
  }

  // Keeps where rows are, some of them pinned, for later calls; the oldest memory goes.
  void Remember() {
    Memory m;
    m.positions = Batch();
    m.slots.assign(m.positions.size(), kNoRow);
    if (!ReadAt(m.positions, m.slots)) return;
    if (rng_() % 4 != 0) {
      m.pinned = table_->Pin(m.slots);
      REQUIRE(m.pinned <= m.slots.size());
      for (size_t i = 0; i < m.pinned; ++i) {
        if (m.slots[i] != kNoRow) m.whole.insert(m.positions[i].value);
      }
    }
    table_->Release();
    memories_.push_back(std::move(m));
    if (memories_.size() < 6) return;
    Forget(memories_.front());
    memories_.erase(memories_.begin());
  }

  void Forget(Memory& m) {
    for (size_t i = 0; i < m.pinned; ++i) {
      if (m.whole.contains(m.positions[i].value)) continue;
      // It was erased since. If it was made again in the same place, another's pin ends.
      for (Memory& other : memories_) {
        if (&other != &m && other.SlotOf(m.positions[i]) == m.slots[i]) {
          other.whole.erase(m.positions[i].value);
        }
      }
    }
    table_->Unpin(std::span(m.positions).first(m.pinned), std::span(m.slots).first(m.pinned));
    m.pinned = 0;
    m.whole.clear();
  }

  // Old hints, at times damaged ones, read or update as none would. What is pinned still is where
  // it was, and answers whatever becomes of the tiers below.
  void UseMemory() {
    if (memories_.empty()) return;
    Memory& m = memories_[rng_() % memories_.size()];
    const uint64_t below = table_->counters().ssd_reads;
    std::vector<Position> held;
    for (const uint64_t p : m.whole) held.push_back(Position(p));
    std::vector<RowRef> refs(held.size());
    if (held.size() <= table_->max_batch()) {
      const absl::Status s = table_->Resolve(held, Access::kRead, refs);
      if (!s.ok()) FAIL(s.ToString());
      table_->Release();
      REQUIRE(table_->counters().ssd_reads == below);
    }
    std::vector<RowSlot> slots = m.slots;
    for (RowSlot& s : slots) {
      if (rng_() % 8 != 0) continue;
      s = rng_() % 2 == 0 ? static_cast<RowSlot>(rng_()) : static_cast<RowSlot>(rng_() % 4000);
    }
    done_ += std::max<size_t>(1, slots.size());
    if (rng_() % 2 == 0) {
      UpdateAt(m.positions, slots);
    } else if (ReadAt(m.positions, slots)) {
      table_->Release();
    }
  }

  void Erase() {
    const std::vector<Position> batch = Batch();
    if (!Done(table_->Erase(batch))) return;
    for (Position p : batch) {
      model_.erase(p.value);
      for (Memory& m : memories_) m.whole.erase(p.value);
    }
  }

  void Scan() {
    Position a = pool_[rng_() % pool_.size()];
    Position b = pool_[rng_() % pool_.size()];
    if (b < a) std::swap(a, b);
    ScanRange(a, b);
  }

  void ScanRange(Position first, Position last) {
    auto it = model_.lower_bound(first.value);
    bool right = true;
    const absl::Status s =
        table_->Scan(first, last, [&](Position position, std::span<const uint8_t> row) {
          right &= it != model_.end() && it->first == position.value &&
                   row.size() == c_.row_bytes && RowIs(position, it->second, row.data());
          if (it != model_.end()) ++it;
          return absl::OkStatus();
        });
    if (!s.ok()) FAIL(s.ToString());
    REQUIRE(right);
    REQUIRE(it == model_.upper_bound(last.value));
    // The visitor's error stops the scan and comes back.
    size_t visits = 0;
    const absl::Status stopped = table_->Scan(first, last, [&](Position, std::span<const uint8_t>) {
      ++visits;
      return absl::CancelledError("enough");
    });
    const bool any = model_.lower_bound(first.value) != model_.upper_bound(last.value);
    REQUIRE(visits == (any ? 1 : 0));
    REQUIRE(stopped.ok() == !any);
  }

  void CheckCounters() {
    const TableCounters counters = table_->counters();
    if (counters.rows != model_.size()) CHECK(counters.rows == model_.size());
    REQUIRE(counters.dram_rows <= counters.rows);
    if (c_.limit_bytes != 0) REQUIRE(counters.dram_bytes <= c_.limit_bytes);
    if (c_.hbm_limit_bytes != 0) REQUIRE(counters.hbm_bytes <= c_.hbm_limit_bytes);
    const uint64_t tier = std::max<uint64_t>(counters.dram_rows, 2 * table_->max_batch());
    REQUIRE(counters.pinned <= (c_.most_pinned != 0 ? c_.most_pinned : tier / 2));
  }

  const ConformanceCase& c_;
  std::vector<Memory> memories_;
  std::mt19937_64 rng_;
  std::unique_ptr<RowTable> table_;
  std::vector<uint8_t> expected_row_;
  std::vector<Position> pool_;
  std::map<uint64_t, uint64_t> model_;  // position to version
  uint64_t version_ = 0;
  uint64_t done_ = 0;
};

}  // namespace

void CheckRandomOperations(const ConformanceCase& c) {
  INFO("table seed " << c.seed << ", rows of " << c.row_bytes << " bytes, " << c.positions
                     << " positions in [" << c.first.value << ", " << c.last.value << "]");
  Player(c).Play();
}

size_t CheckMemoryShortage(const ConformanceCase& c) {
  INFO("seed " << c.seed << ", rows of " << c.row_bytes << " bytes");
  return Player(c).PlayShort();
}

}  // namespace strata::storage
