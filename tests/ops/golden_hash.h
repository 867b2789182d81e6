// A hash over the bits of floats, for constants that tests keep.
#ifndef STRATA_TESTS_OPS_GOLDEN_HASH_H_
#define STRATA_TESTS_OPS_GOLDEN_HASH_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace strata {

// FNV-1a over 32-bit words. A NaN counts as one fixed NaN: the bits of 0/0 depend on the processor
// (EXACT.md rule 12).
class GoldenHash {
 public:
  void Add(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    Add(x == x ? bits : 0x7fc00000u);
  }
  void Add(std::span<const float> values) {
    for (float x : values) Add(x);
  }
  void Add(uint32_t word) { hash_ = (hash_ ^ word) * 0x100000001b3ull; }
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325ull;
};

}  // namespace strata

#endif  // STRATA_TESTS_OPS_GOLDEN_HASH_H_
