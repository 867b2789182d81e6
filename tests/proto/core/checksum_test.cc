#include "proto/core/checksum.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace strata {
namespace {

std::span<const uint8_t> Bytes(const std::string& s) {
  return {reinterpret_cast<const uint8_t*>(s.data()), s.size()};
}

std::vector<uint8_t> RandomBytes(size_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint8_t> out(n);
  for (uint8_t& b : out) b = static_cast<uint8_t>(random());
  return out;
}

TEST_CASE("CRC32C has the values of RFC 3720, appendix B.4", "[checksum]") {
  CHECK(Crc32c(Bytes(std::string(32, '\0'))) == 0x8a9136aau);
  CHECK(Crc32c(Bytes(std::string(32, '\xff'))) == 0x62a8ab43u);
  std::string ascending(32, '\0');
  for (int i = 0; i < 32; ++i) ascending[i] = static_cast<char>(i);
  CHECK(Crc32c(Bytes(ascending)) == 0x46dd794eu);
  CHECK(Crc32c(Bytes("123456789")) == 0xe3069283u);
  CHECK(Crc32c({}) == 0u);
}

TEST_CASE("the fast CRC32C equals the portable one at every size and offset", "[checksum]") {
  // Sizes around the stream lengths (3 * 256, 3 * 8192) and every offset modulo 8.
  const std::vector<uint8_t> bytes = RandomBytes(100'000, 1);
  std::vector<size_t> sizes;
  for (size_t n = 0; n < 80; ++n) sizes.push_back(n);
  for (size_t n : {767, 768, 769, 775, 1535, 1536, 24575, 24576, 24577, 25344, 49152, 99'000}) {
    sizes.push_back(n);
  }
  for (size_t n : sizes) {
    for (size_t offset = 0; offset < 8; ++offset) {
      const std::span<const uint8_t> part(bytes.data() + offset, n);
      REQUIRE(Crc32cExtend(7, part) == Crc32cExtendPortable(7, part));
      std::vector<uint8_t> copy(n + 1, 0x5a);  // and nothing behind it
      REQUIRE(Crc32cCopy(7, part, copy.data()) == Crc32cExtendPortable(7, part));
      REQUIRE(std::equal(part.begin(), part.end(), copy.begin()));
      REQUIRE(copy.back() == 0x5a);
    }
  }
}

TEST_CASE("CRC32C extends over any split", "[checksum]") {
  const std::vector<uint8_t> bytes = RandomBytes(60'000, 2);
  const std::span<const uint8_t> all(bytes);
  const uint32_t whole = Crc32c(all);
  for (size_t cut = 0; cut <= all.size(); cut += 997) {
    REQUIRE(Crc32cExtend(Crc32c(all.first(cut)), all.subspan(cut)) == whole);
    const auto rest = all.subspan(cut);
    REQUIRE(Crc32cJoin(Crc32c(all.first(cut)), Crc32c(rest), rest.size()) == whole);
  }
}

TEST_CASE("CRC32C sees every flipped bit", "[checksum]") {
  std::vector<uint8_t> bytes = RandomBytes(1000, 3);
  const uint32_t whole = Crc32c(bytes);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
    REQUIRE(Crc32c(bytes) != whole);
    bytes[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
  }
}

}  // namespace
}  // namespace strata
