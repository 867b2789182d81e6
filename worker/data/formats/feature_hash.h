// Keys of hashed features: a documented function of (hash seed, field, value), so that any program
// can make the same keys.
// Tested by tests/worker/data/formats/parsers_test.cc
#ifndef STRATA_WORKER_DATA_FORMATS_FEATURE_HASH_H_
#define STRATA_WORKER_DATA_FORMATS_FEATURE_HASH_H_

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#include <cstdint>

#include "absl/strings/string_view.h"
#include "proto/core/position.h"

namespace strata {

// seed of a field = Mix64(hash_seed * 0x9e3779b97f4a7c15 + field + 1), modulo 2^64;
// key = XXH3_64bits_withSeed(value bytes, seed of the field), XXH3 as of xxHash 0.8.
// The value is the bytes between the separators, unchanged (csv: after removal of quotes); a
// missing value is the empty string. In Python, with `pip install xxhash`:
//
//   def mix64(x):
//       x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 % 2**64
//       x = (x ^ x >> 27) * 0x94d049bb133111eb % 2**64
//       return x ^ x >> 31
//   def key(value: bytes, field: int, hash_seed: int = 0) -> int:
//       seed = mix64((hash_seed * 0x9e3779b97f4a7c15 + field + 1) % 2**64)
//       return xxhash.xxh3_64_intdigest(value, seed=seed)
//
// Fields: criteo and criteo_csv: C1..C26 are 0..25; with integerFeatures "bucket", I1..I13
// are 26..38 and their value is the text that criteo_parser.h states. csv: columns have names
// (NamedFieldSeed), so that rows stay where they are when columns come, go or change places.
constexpr uint64_t FieldSeed(uint64_t hash_seed, uint32_t field) {
  return Mix64(hash_seed * 0x9e3779b97f4a7c15ull + field + 1);
}

// Csv: the same with XXH3_64bits(column) in place of field + 1. The column is its name in
// spec.data.columns; where that gives a position, its digits. Each value of a multi-valued column
// is hashed so. In Python:
//
//   seed = mix64((hash_seed * 0x9e3779b97f4a7c15 + xxhash.xxh3_64_intdigest(column)) % 2**64)
inline uint64_t NamedFieldSeed(uint64_t hash_seed, absl::string_view column) {
  return Mix64(hash_seed * 0x9e3779b97f4a7c15ull + XXH3_64bits(column.data(), column.size()));
}

inline uint64_t FeatureKey(uint64_t field_seed, absl::string_view value) {
  return XXH3_64bits_withSeed(value.data(), value.size(), field_seed);
}

}  // namespace strata

#endif  // STRATA_WORKER_DATA_FORMATS_FEATURE_HASH_H_
