#include "worker/step/router.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <utility>

#include "proto/core/position.h"

namespace strata {

void Router::Deduplicate(std::span<const uint64_t> keys, std::span<uint32_t> unique_of) {
  const size_t wanted = std::bit_ceil(std::max<size_t>(keys.size() * 2, 64));
  if (slots_.size() < wanted) {
    slots_.assign(wanted, Slot{0, 0, 0});
    stamp_ = 0;
  }
  if (++stamp_ == 0) {  // wrapped: stamps of 2^32 calls ago would look fresh
    slots_.assign(slots_.size(), Slot{0, 0, 0});
    stamp_ = 1;
  }
  const size_t mask = slots_.size() - 1;
  distinct_.clear();
  constexpr size_t kAhead = 16;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (i + kAhead < keys.size()) {
      __builtin_prefetch(&slots_[Mix64(keys[i + kAhead]) & mask], 1);
    }
    size_t at = Mix64(keys[i]) & mask;
    while (slots_[at].stamp == stamp_ && slots_[at].key != keys[i]) at = (at + 1) & mask;
    Slot& slot = slots_[at];
    if (slot.stamp != stamp_) {
      slot = {keys[i], static_cast<uint32_t>(distinct_.size()), stamp_};
      distinct_.push_back(keys[i]);
    }
    unique_of[i] = slot.unique;
  }
}

// Least significant digit radix sort on the upper half of the position, then insertion within the
// rare equal halves: positions are uniform, so 32 bits almost decide the order.
void Router::SortByPosition(const TableSpec& table) {
  constexpr size_t kFew = 512;  // fewer than it takes to clear and sum the counts
  const size_t n = distinct_.size();
  if (n < kFew) return SortFewByPosition(table);
  placed_.resize(n);
  spare_.resize(n);
  constexpr int kBits = 11;
  constexpr std::array<int, 3> kShift = {64 - 3 * kBits, 64 - 2 * kBits, 64 - kBits};
  std::array<std::array<uint32_t, 1 << kBits>, 3> count{};
  for (size_t i = 0; i < n; ++i) {
    const uint64_t p = table.PositionOfKey(Key(distinct_[i])).value;
    placed_[i] = {p, static_cast<uint32_t>(i)};
    for (int d = 0; d < 3; ++d) ++count[d][(p >> kShift[d]) & ((1 << kBits) - 1)];
  }
  for (int d = 0; d < 3; ++d) {
    uint32_t sum = 0;
    for (uint32_t& c : count[d]) {
      const uint32_t here = c;
      c = sum;
      sum += here;
    }
    for (const Placed& p : placed_) {
      spare_[count[d][(p.position >> kShift[d]) & ((1 << kBits) - 1)]++] = p;
    }
    placed_.swap(spare_);
  }
  for (size_t i = 1; i < n; ++i) {
    const Placed p = placed_[i];
    size_t j = i;
    for (; j > 0 && placed_[j - 1].position > p.position; --j) placed_[j] = placed_[j - 1];
    placed_[j] = p;
  }
}

void Router::SortFewByPosition(const TableSpec& table) {
  placed_.clear();
  for (size_t i = 0; i < distinct_.size(); ++i) {
    placed_.push_back({table.PositionOfKey(Key(distinct_[i])).value, static_cast<uint32_t>(i)});
  }
  std::sort(placed_.begin(), placed_.end(),
            [](const Placed& a, const Placed& b) { return a.position < b.position; });
}

void Router::RouteRun(const TableSpec& table, std::span<const uint64_t> keys,
                      std::span<uint32_t> unique_of) {
  Deduplicate(keys, unique_of);
  SortByPosition(table);
  const size_t n = distinct_.size(), first = keys_.size();
  if (n == 0) return;
  rank_.resize(n);
  keys_.resize(first + n);
  positions_.resize(first + n);
  for (size_t i = 0; i < n; ++i) {
    keys_[first + i] = distinct_[placed_[i].unique];
    positions_[first + i] = placed_[i].position;
    rank_[placed_[i].unique] = static_cast<uint32_t>(first + i);
  }
  for (uint32_t& u : unique_of) u = rank_[u];
  runs_.push_back({table.id.value, first, n});
}

void Router::Finish(RoutedKeys* out) {
  const size_t n = keys_.size();
  out->first.assign(n + 1, 0);
  for (const uint32_t u : out->unique_of) ++out->first[u + 1];
  for (size_t i = 0; i < n; ++i) out->first[i + 1] += out->first[i];
  out->occurrences.resize(out->unique_of.size());
  // Filling moves first[u] to its end; shift back afterwards.
  for (size_t f = 0; f < out->unique_of.size(); ++f) {
    out->occurrences[out->first[out->unique_of[f]]++] = static_cast<uint32_t>(f);
  }
  for (size_t i = n; i > 0; --i) out->first[i] = out->first[i - 1];
  out->first[0] = 0;
  out->keys = std::exchange(keys_, {});
  out->positions = std::exchange(positions_, {});
  out->runs = std::exchange(runs_, {});
}

void Router::Route(const TableSpec& table, std::span<const uint64_t> keys, RoutedKeys* out) {
  out->unique_of.resize(keys.size());
  RouteRun(table, keys, out->unique_of);
  Finish(out);
}

// Counts and then places features by their tables, each table's in batch order.
void Router::SortFeatures(const ModelTables& tables, const Batch& batch) {
  const size_t n = batch.keys.size();
  const std::vector<uint32_t>& of_field = tables.field_tables;
  first_of_table_.assign(tables.tables.size() + 1, 0);
  const auto for_features = [&](auto body) {
    for (uint32_t i = 0; i < batch.size; ++i) {
      const uint32_t begin = batch.offsets[i];
      for (uint32_t f = begin; f < batch.offsets[i + 1]; ++f) {
        body(f, of_field[batch.fields.empty() ? f - begin : batch.fields[f]]);
      }
    }
  };
  for_features([&](uint32_t, uint32_t table) { ++first_of_table_[table + 1]; });
  for (size_t t = 0; t < tables.tables.size(); ++t) first_of_table_[t + 1] += first_of_table_[t];
  feature_of_.resize(n);
  sorted_keys_.resize(n);
  sorted_unique_.resize(n);
  std::vector<size_t> next(first_of_table_.begin(), first_of_table_.end() - 1);
  for_features([&](uint32_t f, uint32_t table) {
    const size_t at = next[table]++;
    feature_of_[at] = f;
    sorted_keys_[at] = batch.keys[f];
  });
}

void Router::Route(const ModelTables& tables, const Batch& batch, RoutedKeys* out) {
  if (!tables.several()) return Route(tables.tables[0], batch.keys, out);
  SortFeatures(tables, batch);
  for (size_t t = 0; t < tables.tables.size(); ++t) {
    const size_t first = first_of_table_[t], count = first_of_table_[t + 1] - first;
    if (count == 0) continue;
    RouteRun(tables.tables[t], std::span(sorted_keys_).subspan(first, count),
             std::span(sorted_unique_).subspan(first, count));
  }
  out->unique_of.resize(batch.keys.size());
  for (size_t i = 0; i < feature_of_.size(); ++i)
    out->unique_of[feature_of_[i]] = sorted_unique_[i];
  Finish(out);
}

namespace {

// Indices of a lane's list that are still to be merged.
struct Rest {
  size_t at = 0;
  size_t end = 0;
};

// Merges what is left of the lists, which is of one table.
void MergeRun(std::span<const RoutedKeys* const> lanes, std::span<Rest> rest,
              std::vector<uint64_t>* keys, std::vector<uint64_t>* positions, UnionKeys* out) {
  while (true) {
    bool any = false;
    uint64_t least = 0;
    for (size_t l = 0; l < lanes.size(); ++l) {
      if (rest[l].at == rest[l].end) continue;
      const uint64_t p = lanes[l]->positions[rest[l].at];
      if (!any || p < least) least = p;
      any = true;
    }
    if (!any) return;
    const auto here = static_cast<uint32_t>(keys->size());
    for (size_t l = 0; l < lanes.size(); ++l) {
      if (rest[l].at == rest[l].end || lanes[l]->positions[rest[l].at] != least) continue;
      if (keys->size() == here) {
        keys->push_back(lanes[l]->keys[rest[l].at]);
        positions->push_back(least);
      }
      out->place[l][rest[l].at++] = here;
    }
  }
}

}  // namespace

void MergeLanes(std::span<const RoutedKeys* const> lanes, UnionKeys* out) {
  out->place.resize(lanes.size());
  for (size_t l = 0; l < lanes.size(); ++l) out->place[l].resize(lanes[l]->keys.size());
  if (lanes.size() == 1) {
    out->keys = lanes[0]->keys;
    out->positions = lanes[0]->positions;
    out->runs = lanes[0]->runs;
    std::iota(out->place[0].begin(), out->place[0].end(), 0u);
    return;
  }
  std::vector<uint64_t> keys, positions;
  out->runs.clear();
  std::vector<size_t> run(lanes.size(), 0);  // of each lane, the next one
  std::vector<Rest> rest(lanes.size());
  while (true) {
    uint32_t table = ~0u;  // the least that is left
    for (size_t l = 0; l < lanes.size(); ++l) {
      if (run[l] < lanes[l]->runs.size()) table = std::min(table, lanes[l]->runs[run[l]].table);
    }
    if (table == ~0u) break;
    for (size_t l = 0; l < lanes.size(); ++l) {
      rest[l] = {0, 0};
      if (run[l] == lanes[l]->runs.size() || lanes[l]->runs[run[l]].table != table) continue;
      const KeyRun& here = lanes[l]->runs[run[l]++];
      rest[l] = {here.first, here.end()};
    }
    const size_t first = keys.size();
    MergeRun(lanes, rest, &keys, &positions, out);
    out->runs.push_back({table, first, keys.size() - first});
  }
  out->keys = std::move(keys);
  out->positions = std::move(positions);
}

std::vector<ShardRun> SplitByShard(const ShardMap& map, std::span<const uint64_t> positions) {
  std::vector<ShardRun> runs;
  size_t begin = 0;
  while (begin < positions.size()) {
    const ShardPlace& shard = map.ShardOf(Position(positions[begin]));
    const uint64_t last = map.LastPosition(shard.id).value;
    const size_t end =
        std::upper_bound(positions.begin() + begin, positions.end(), last) - positions.begin();
    runs.push_back({shard.id, shard.server, begin, end});
    begin = end;
  }
  return runs;
}

}  // namespace strata
