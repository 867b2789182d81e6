// Where keys lie: a bijective hash from keys to positions.
// Tested by tests/proto/core/values_test.cc
#ifndef STRATA_PROTO_CORE_POSITION_H_
#define STRATA_PROTO_CORE_POSITION_H_

#include <cstdint>

#include "proto/core/ids.h"

namespace strata {

// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014; variant 13 of Stafford's search):
// a bijection of the 64-bit integers.
constexpr uint64_t Mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// The inverse of Mix64.
constexpr uint64_t UnMix64(uint64_t x) {
  x = (x ^ (x >> 31) ^ (x >> 62)) * 0x319642b2d24d8ec3ull;
  x = (x ^ (x >> 27) ^ (x >> 54)) * 0x96de1b173f119089ull;
  return x ^ (x >> 30) ^ (x >> 60);
}

// The salt of a hashed table; part of the wire contract, so that any client can route.
constexpr uint64_t TableSalt(TableId table) { return Mix64(0x5354524154410000ull + table.value); }

// Position of a key in a hashed table. Two keys never collide; equal ranges of positions hold equal
// shares of keys. (Dense tables use position = key instead: table_spec.h.)
constexpr Position PositionOf(Key key, uint64_t salt) { return Position(Mix64(key.value ^ salt)); }

// The key that lies at a position.
constexpr Key KeyOf(Position position, uint64_t salt) {
  return Key(UnMix64(position.value) ^ salt);
}

}  // namespace strata

#endif  // STRATA_PROTO_CORE_POSITION_H_
