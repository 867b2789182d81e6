#include "worker/step/router.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <utility>

#include "proto/core/position.h"

namespace strata {

void Router::Deduplicate(std::span<const uint64_t> keys, std::vector<uint32_t>* unique_of) {
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
  unique_of->resize(keys.size());
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
    (*unique_of)[i] = slot.unique;
  }
}

// Least significant digit radix sort on the upper half of the position, then insertion within the
// rare equal halves: positions are uniform, so 32 bits almost decide the order.
void Router::SortByPosition(const TableSpec& table) {
  const size_t n = distinct_.size();
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

void Router::Route(const TableSpec& table, std::span<const uint64_t> keys, RoutedKeys* out) {
  Deduplicate(keys, &out->unique_of);
  SortByPosition(table);
  const size_t n = distinct_.size();
  std::vector<uint64_t> sorted(n), positions(n);
  rank_.resize(n);
  for (size_t i = 0; i < n; ++i) {
    sorted[i] = distinct_[placed_[i].unique];
    positions[i] = placed_[i].position;
    rank_[placed_[i].unique] = static_cast<uint32_t>(i);
  }
  out->keys = std::move(sorted);
  out->positions = std::move(positions);
  out->first.assign(n + 1, 0);
  for (uint32_t& u : out->unique_of) {
    u = rank_[u];
    ++out->first[u + 1];
  }
  for (size_t i = 0; i < n; ++i) out->first[i + 1] += out->first[i];
  out->occurrences.resize(keys.size());
  // Filling moves first[u] to its end; shift back afterwards.
  for (size_t f = 0; f < keys.size(); ++f) {
    out->occurrences[out->first[out->unique_of[f]]++] = static_cast<uint32_t>(f);
  }
  for (size_t i = n; i > 0; --i) out->first[i] = out->first[i - 1];
  out->first[0] = 0;
}

void MergeLanes(std::span<const RoutedKeys* const> lanes, UnionKeys* out) {
  out->place.resize(lanes.size());
  for (size_t l = 0; l < lanes.size(); ++l) out->place[l].resize(lanes[l]->keys.size());
  if (lanes.size() == 1) {
    out->keys = lanes[0]->keys;
    out->positions = lanes[0]->positions;
    std::iota(out->place[0].begin(), out->place[0].end(), 0u);
    return;
  }
  std::vector<uint64_t> keys, positions;
  std::vector<size_t> at(lanes.size(), 0);
  while (true) {
    bool any = false;
    uint64_t least = 0;
    for (size_t l = 0; l < lanes.size(); ++l) {
      if (at[l] == lanes[l]->positions.size()) continue;
      const uint64_t p = lanes[l]->positions[at[l]];
      if (!any || p < least) least = p;
      any = true;
    }
    if (!any) break;
    const auto here = static_cast<uint32_t>(keys.size());
    for (size_t l = 0; l < lanes.size(); ++l) {
      if (at[l] == lanes[l]->positions.size() || lanes[l]->positions[at[l]] != least) continue;
      if (keys.size() == here) {
        keys.push_back(lanes[l]->keys[at[l]]);
        positions.push_back(least);
      }
      out->place[l][at[l]++] = here;
    }
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
