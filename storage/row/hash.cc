#include "storage/row/hash.h"

#define XXH_STATIC_LINKING_ONLY  // XXH3_state_t on the stack
#include <xxhash.h>

#include <array>
#include <cstring>

#include "absl/strings/str_format.h"

namespace strata::storage {
namespace {

constexpr uint64_t kSeed = 0x53545241'54410001ull;  // "STRATA", version 1
constexpr size_t kHead = 12;

void PutHead(uint32_t table, uint64_t key, uint8_t* out) {
  std::memcpy(out, &table, sizeof(table));
  std::memcpy(out + sizeof(table), &key, sizeof(key));
}

HashSum From(XXH128_hash_t hash) { return {.low = hash.low64, .high = hash.high64}; }

}  // namespace

HashSum& HashSum::operator-=(const HashSum& other) {
  high -= other.high + (low < other.low ? 1 : 0);
  low -= other.low;
  return *this;
}

std::string HashSum::Hex() const { return absl::StrFormat("%016x%016x", high, low); }

std::optional<HashSum> HashSum::FromHex(absl::string_view text) {
  if (text.size() != 32) return std::nullopt;
  std::array<uint64_t, 2> halves = {0, 0};
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    uint64_t digit;
    if (c >= '0' && c <= '9') {
      digit = static_cast<uint64_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<uint64_t>(c - 'a' + 10);
    } else {
      return std::nullopt;
    }
    halves[i / 16] = halves[i / 16] << 4 | digit;
  }
  return HashSum{.low = halves[1], .high = halves[0]};
}

HashSum HashRow(TableId table, Key key, std::span<const uint8_t> row) {
  // Most rows are small: one call over a copy is faster than the streaming state.
  std::array<uint8_t, 1024> small;
  if (kHead + row.size() <= small.size()) {
    PutHead(table.value, key.value, small.data());
    std::memcpy(small.data() + kHead, row.data(), row.size());
    return From(XXH3_128bits_withSeed(small.data(), kHead + row.size(), kSeed));
  }
  std::array<uint8_t, kHead> head;
  PutHead(table.value, key.value, head.data());
  alignas(64) XXH3_state_t state;
  XXH3_INITSTATE(&state);
  XXH3_128bits_reset_withSeed(&state, kSeed);
  XXH3_128bits_update(&state, head.data(), head.size());
  XXH3_128bits_update(&state, row.data(), row.size());
  return From(XXH3_128bits_digest(&state));
}

}  // namespace strata::storage
