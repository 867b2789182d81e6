#include "storage/row/hash.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace strata::storage {
namespace {

std::vector<uint8_t> Row(size_t bytes) {
  std::vector<uint8_t> row(bytes);
  for (size_t i = 0; i < bytes; ++i) row[i] = static_cast<uint8_t>(i * 7 + 1);
  return row;
}

TEST_CASE("every bit of table, key and row changes the hash", "[storage][hash]") {
  for (size_t bytes : {size_t{8}, size_t{72}, size_t{1012}, size_t{1016}, size_t{3080}}) {
    std::vector<uint8_t> row = Row(bytes);
    std::set<std::string> seen = {HashRow(TableId(1), Key(5), row).Hex()};
    for (int bit = 0; bit < 32; ++bit) {
      seen.insert(HashRow(TableId(1u ^ (1u << bit)), Key(5), row).Hex());
    }
    for (int bit = 0; bit < 64; ++bit) {
      seen.insert(HashRow(TableId(1), Key(5ull ^ (1ull << bit)), row).Hex());
    }
    for (size_t bit = 0; bit < 8 * bytes; ++bit) {
      row[bit / 8] ^= static_cast<uint8_t>(1 << (bit % 8));
      seen.insert(HashRow(TableId(1), Key(5), row).Hex());
      row[bit / 8] ^= static_cast<uint8_t>(1 << (bit % 8));
    }
    CHECK(seen.size() == 1 + 32 + 64 + 8 * bytes);
  }
}

TEST_CASE("the hash's values are fixed", "[storage][hash]") {
  // Computed by another program from FORMAT.md's encoding and the xxHash library's one-shot
  // function. A change would make old checkpoints' hashes wrong.
  CHECK(HashRow(TableId(1), Key(5), Row(72)).Hex() == "2ab19cc173cfdfb4cacdb82031175631");
  CHECK(HashRow(TableId(1), Key(5), Row(3080)).Hex() == "5b08c40a1be8dba47e0941b4e17aa804");
}

TEST_CASE("a sum does not depend on order and can be taken back", "[storage][hash]") {
  std::mt19937_64 rng(1);
  std::vector<HashSum> rows;
  for (uint64_t i = 0; i < 1000; ++i) rows.push_back(HashRow(TableId(0), Key(i), Row(16)));
  HashSum forward, shuffled;
  for (const HashSum& h : rows) forward += h;
  std::shuffle(rows.begin(), rows.end(), rng);
  for (const HashSum& h : rows) shuffled += h;
  CHECK(forward == shuffled);
  shuffled += HashRow(TableId(1), Key(3), Row(16));
  CHECK(!(forward == shuffled));
  shuffled -= HashRow(TableId(1), Key(3), Row(16));
  CHECK(forward == shuffled);
}

TEST_CASE("sums carry and borrow over the halves", "[storage][hash]") {
  HashSum sum{.low = ~0ull, .high = 4};
  sum += {.low = 1, .high = 0};
  CHECK(sum == HashSum{.low = 0, .high = 5});
  sum -= {.low = 1, .high = 0};
  CHECK(sum == HashSum{.low = ~0ull, .high = 4});
  sum = {.low = ~0ull, .high = ~0ull};
  sum += {.low = 2, .high = 0};
  CHECK(sum == HashSum{.low = 1, .high = 0});
}

TEST_CASE("hexadecimal text goes there and back, and bad text is refused", "[storage][hash]") {
  const HashSum sum{.low = 0x0123456789abcdefull, .high = 0xfull};
  CHECK(sum.Hex() == "000000000000000f0123456789abcdef");
  CHECK(HashSum::FromHex(sum.Hex()) == sum);
  CHECK(!HashSum::FromHex(""));
  CHECK(!HashSum::FromHex("000000000000000f0123456789abcde"));
  CHECK(!HashSum::FromHex("000000000000000f0123456789abcdeg"));
  CHECK(!HashSum::FromHex("000000000000000F0123456789ABCDEF"));
}

}  // namespace
}  // namespace strata::storage
