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
#include <cstring>

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

// Csv: the same with XXH3_64bits(name) in place of field + 1. The name is the column's, as
// spec.data.columns or spec.fields has it; where that is a position, its digits. In a job of both
// spec.fields and spec.tables it is the name of the field's table, so that fields share its rows.
// Each value of a multi-valued column is hashed so. In Python:
//
//   seed = mix64((hash_seed * 0x9e3779b97f4a7c15 + xxhash.xxh3_64_intdigest(name)) % 2**64)
inline uint64_t NamedFieldSeed(uint64_t hash_seed, absl::string_view name) {
  return Mix64(hash_seed * 0x9e3779b97f4a7c15ull + XXH3_64bits(name.data(), name.size()));
}

inline uint64_t FeatureKey(uint64_t field_seed, absl::string_view value) {
  return XXH3_64bits_withSeed(value.data(), value.size(), field_seed);
}

// Buckets of a number (transform bucketise), apart from values, which have no zero byte: what is
// hashed is a zero byte and the bounds between which the number lies, as doubles, little endian
// (-inf below the first bound, inf above the last; -0 is 0). Of a missing number it is the zero
// byte alone.
//
//   key(b"\0" + struct.pack("<dd", lower, upper))
inline uint64_t BucketKey(uint64_t field_seed, double lower, double upper) {
  char text[1 + 2 * sizeof(double)] = {};
  const double bounds[2] = {lower + 0.0, upper + 0.0};
  std::memcpy(text + 1, bounds, sizeof(bounds));
  return FeatureKey(field_seed, absl::string_view(text, sizeof(text)));
}

inline uint64_t MissingBucketKey(uint64_t field_seed) {
  return FeatureKey(field_seed, absl::string_view("", 1));
}

// Keys of a field with a vocabulary: the number of the value's line, from 1, in a space that the
// field's seed gives (the upper half). A missing value is line 0. Values that are not in the file
// share buckets b = 0, 1, ..., which are kLastVocabularyKey - b, so that the file may grow;
// b = the upper 64 bits of FeatureKey(seed, value) times the number of buckets.
inline constexpr uint64_t kLastVocabularyKey = 0xffffffffull;

constexpr uint64_t VocabularyKey(uint64_t field_seed, uint64_t line) {
  return (field_seed & ~kLastVocabularyKey) | line;
}

}  // namespace strata

#endif  // STRATA_WORKER_DATA_FORMATS_FEATURE_HASH_H_
