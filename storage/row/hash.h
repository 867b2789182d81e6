// The model hash: a sum over rows that depends on what the rows are, and on nothing else (not on
// tiers, servers, files or order). FORMAT.md gives the encoding.
#ifndef STRATA_STORAGE_ROW_HASH_H_
#define STRATA_STORAGE_ROW_HASH_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/core/ids.h"

namespace strata::storage {

// An integer mod 2^128. Any thread.
struct HashSum {
  uint64_t low = 0;
  uint64_t high = 0;

  // Mod 2^128: commutes and associates.
  HashSum& operator+=(const HashSum& other) {
    low += other.low;
    high += other.high + (low < other.low ? 1 : 0);
    return *this;
  }
  HashSum& operator-=(const HashSum& other);
  friend bool operator==(const HashSum&, const HashSum&) = default;

  // 32 lower-case hexadecimal digits, most significant first.
  std::string Hex() const;
  static std::optional<HashSum> FromHex(absl::string_view text);
};

// XXH3 (128 bits) with a fixed seed over: table (4 bytes), key (8), row bytes (weights, state,
// last_step, updates), all little-endian as layout.h lays them.
HashSum HashRow(TableId table, Key key, std::span<const uint8_t> row);

}  // namespace strata::storage

#endif  // STRATA_STORAGE_ROW_HASH_H_
