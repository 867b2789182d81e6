#include "proto/core/checksum.h"

#include <nmmintrin.h>

#include <array>
#include <cstddef>
#include <cstring>

namespace strata {
namespace {

// The Castagnoli polynomial with its bits reversed: bit 31 is the coefficient of x^0.
constexpr uint32_t kPolynomial = 0x82f63b78u;

// Product of two polynomials of degree < 32 modulo the polynomial, bits reversed.
constexpr uint32_t Multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = 1u << 31; bit != 0; bit >>= 1) {
    if (a & bit) product ^= b;
    b = (b & 1) ? (b >> 1) ^ kPolynomial : b >> 1;
  }
  return product;
}

// x^(8 * bytes): multiplying a checksum by it appends that many zero bytes.
constexpr uint32_t PowerOfBytes(uint64_t bytes) {
  uint32_t result = 1u << 31;  // x^0
  uint32_t square = 1u << 23;  // x^8
  for (uint64_t n = bytes; n != 0; n >>= 1) {
    if (n & 1) result = Multiply(result, square);
    square = Multiply(square, square);
  }
  return result;
}

using ShiftTable = std::array<std::array<uint32_t, 256>, 4>;

// The multiplication by x^(8 * bytes), one table per byte of the checksum.
constexpr ShiftTable MakeShiftTable(size_t bytes) {
  ShiftTable table{};
  const uint32_t power = PowerOfBytes(bytes);
  for (uint32_t k = 0; k < 4; ++k) {
    for (uint32_t n = 0; n < 256; ++n) table[k][n] = Multiply(n << (8 * k), power);
  }
  return table;
}

constexpr std::array<uint32_t, 256> MakeByteTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t n = 0; n < 256; ++n) {
    uint32_t c = n;
    for (int i = 0; i < 8; ++i) c = (c & 1) ? (c >> 1) ^ kPolynomial : c >> 1;
    table[n] = c;
  }
  return table;
}

// Bytes of each of the three streams: the instruction takes 3 cycles and starts every cycle, so
// three independent chains keep it busy; joining them costs two table shifts, which the long stream
// hides and the short one makes worthwhile for messages of a kilobyte.
constexpr size_t kLong = 8192;
constexpr size_t kShort = 256;
constexpr ShiftTable kLongShift = MakeShiftTable(kLong);
constexpr ShiftTable kShortShift = MakeShiftTable(kShort);
constexpr std::array<uint32_t, 256> kByteTable = MakeByteTable();

inline uint64_t Shift(const ShiftTable& table, uint64_t crc) {
  return table[0][crc & 0xff] ^ table[1][(crc >> 8) & 0xff] ^ table[2][(crc >> 16) & 0xff] ^
         table[3][(crc >> 24) & 0xff];
}

inline uint64_t Load64(const uint8_t* p) {
  uint64_t v;
  std::memcpy(&v, p, 8);
  return v;
}

// The state after the 8 bytes at p + i, which go to `to` + i as well if there is a copy to be made.
template <bool kCopy>
inline uint64_t Eight(uint64_t crc, const uint8_t* p, uint8_t* to, size_t i) {
  const uint64_t v = Load64(p + i);
  if constexpr (kCopy) std::memcpy(to + i, &v, 8);
  return _mm_crc32_u64(crc, v);
}

// Consumes whole runs of 3 * kStream bytes; returns the new state.
template <size_t kStream, bool kCopy>
uint64_t ThreeStreams(uint64_t crc, const uint8_t*& p, size_t& n, uint8_t*& to,
                      const ShiftTable& shift) {
  while (n >= 3 * kStream) {
    uint64_t crc1 = 0;
    uint64_t crc2 = 0;
    for (size_t i = 0; i < kStream; i += 8) {
      crc = Eight<kCopy>(crc, p, to, i);
      crc1 = Eight<kCopy>(crc1, p, to, kStream + i);
      crc2 = Eight<kCopy>(crc2, p, to, 2 * kStream + i);
    }
    crc = Shift(shift, crc) ^ crc1;
    crc = Shift(shift, crc) ^ crc2;
    p += 3 * kStream;
    if constexpr (kCopy) to += 3 * kStream;
    n -= 3 * kStream;
  }
  return crc;
}

template <bool kCopy>
uint32_t Extend(uint32_t crc, std::span<const uint8_t> bytes, uint8_t* to) {
  const uint8_t* p = bytes.data();
  size_t n = bytes.size();
  uint64_t state = crc ^ 0xffffffffu;
  state = ThreeStreams<kLong, kCopy>(state, p, n, to, kLongShift);
  state = ThreeStreams<kShort, kCopy>(state, p, n, to, kShortShift);
  for (; n >= 8; n -= 8, p += 8) {
    state = Eight<kCopy>(state, p, to, 0);
    if constexpr (kCopy) to += 8;
  }
  for (; n > 0; --n, ++p) {
    if constexpr (kCopy) *to++ = *p;
    state = _mm_crc32_u8(static_cast<uint32_t>(state), *p);
  }
  return static_cast<uint32_t>(state) ^ 0xffffffffu;
}

}  // namespace

uint32_t Crc32cExtend(uint32_t crc, std::span<const uint8_t> bytes) {
  return Extend<false>(crc, bytes, nullptr);
}

uint32_t Crc32cCopy(uint32_t crc, std::span<const uint8_t> bytes, uint8_t* to) {
  return Extend<true>(crc, bytes, to);
}

// The sums begin and end with all bits turned over, which cancels here.
uint32_t Crc32cJoin(uint32_t crc_a, uint32_t crc_b, uint64_t bytes_b) {
  return Multiply(PowerOfBytes(bytes_b), crc_a) ^ crc_b;
}

uint32_t Crc32cExtendPortable(uint32_t crc, std::span<const uint8_t> bytes) {
  uint32_t state = ~crc;
  for (const uint8_t byte : bytes) state = kByteTable[(state ^ byte) & 0xff] ^ (state >> 8);
  return ~state;
}

}  // namespace strata
