// Tables, keys and bytes that tests of the codec make messages of.
#ifndef STRATA_TESTS_PROTO_WIRE_CODEC_SAMPLES_H_
#define STRATA_TESTS_PROTO_WIRE_CODEC_SAMPLES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "proto/core/ids.h"
#include "proto/core/table_spec.h"

namespace strata::wire {

inline std::span<const uint8_t> BytesOf(const std::string& s) {
  return {reinterpret_cast<const uint8_t*>(s.data()), s.size()};
}

inline TableSpec Table(uint32_t id, uint32_t dim, TableKind kind = TableKind::kHashed) {
  TableSpec t;
  t.id = TableId(id);
  t.kind = kind;
  t.segments.push_back({.name = "w", .dim = dim});
  return t;
}

inline std::vector<Key> SortedKeys(const TableSpec& table, size_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Key> keys(n);
  for (Key& k : keys) k = Key(random());
  std::sort(keys.begin(), keys.end(),
            [&table](Key a, Key b) { return table.PositionOfKey(a) < table.PositionOfKey(b); });
  return keys;
}

}  // namespace strata::wire

#endif  // STRATA_TESTS_PROTO_WIRE_CODEC_SAMPLES_H_
