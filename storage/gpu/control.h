// Eight or sixteen slots of a GPU table at a time, as words of what is kept in a byte for each.
// Tested by tests/storage/gpu/bucket_test.cc
#ifndef STRATA_STORAGE_GPU_CONTROL_H_
#define STRATA_STORAGE_GPU_CONTROL_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ops/inline.h"

namespace strata::storage::gpu {

// The number of the lowest byte that has its top bit set. REQUIRES: hits != 0.
STRATA_HD int LowestByte(uint64_t hits) {
#ifdef __CUDA_ARCH__
  return (__ffsll(static_cast<long long>(hits)) - 1) / 8;
#else
  return __builtin_ctzll(hits) / 8;
#endif
}

// Bytes of `word` that equal `byte`, marked in their top bits; no others.
STRATA_HD uint64_t EqualBytes(uint64_t word, uint8_t byte) {
  constexpr uint64_t kLow = 0x7f7f7f7f7f7f7f7full;
  const uint64_t x = word ^ (0x0101010101010101ull * byte);
  return ~(((x & kLow) + kLow) | x | kLow);
}

// Eight bytes of an array that has one for each slot, from slot `first` on, a multiple of 8.
STRATA_HD uint64_t EightBytes(const uint8_t* of_slots, size_t first) {
  uint64_t word;
  std::memcpy(&word, __builtin_assume_aligned(of_slots + first, 8), sizeof(word));
  return word;
}
// Sixteen bytes in one access: eight control bytes and eight more, or the scores of eight slots.
struct alignas(16) GpuSixteen {
  uint64_t words[2];
};
STRATA_HD GpuSixteen SixteenBytes(const void* at) {
  GpuSixteen bytes;
  std::memcpy(&bytes, __builtin_assume_aligned(at, 16), sizeof(bytes));
  return bytes;
}

// Of sixteen slots, those whose control byte is `control`: a bit each, 8 i of slot i and 8 i + 4 of
// slot 8 + i.
STRATA_HD uint64_t HitsOfSixteen(const GpuSixteen& bytes, uint8_t control) {
  return EqualBytes(bytes.words[0], control) >> 7 | EqualBytes(bytes.words[1], control) >> 3;
}
// Takes one of them away and returns its slot. REQUIRES: hits != 0.
STRATA_HD uint32_t TakeHit(uint64_t& hits) {
#ifdef __CUDA_ARCH__
  const auto bit = static_cast<uint32_t>(__ffsll(static_cast<long long>(hits)) - 1);
#else
  const auto bit = static_cast<uint32_t>(__builtin_ctzll(hits));
#endif
  hits &= hits - 1;
  return bit / 8 + bit % 8 * 2;
}

}  // namespace strata::storage::gpu

#endif  // STRATA_STORAGE_GPU_CONTROL_H_
