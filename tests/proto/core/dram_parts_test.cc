#include "proto/core/dram_parts.h"

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "proto/core/table_spec.h"

namespace strata {
namespace {

using Parts = std::vector<uint64_t>;

// Hashed tables, and a dense one where `whole` says how much it wants.
struct Case {
  std::vector<TableSpec> tables;
  std::vector<DramClaim> claims;

  Case& Hashed(uint32_t share, uint64_t least) {
    tables.emplace_back().dram_share = share;
    claims.push_back({.least = least});
    return *this;
  }
  Case& Dense(uint64_t whole) {
    tables.emplace_back().kind = TableKind::kDense;
    claims.push_back({.whole = whole});
    return *this;
  }
  Parts Divide(uint64_t bytes) const { return DivideDram(tables, claims, bytes); }
};

TEST_CASE("hashed tables share by their weights, and nobody has the remainder", "[dram_parts]") {
  const Case equal = Case().Hashed(1, 10).Hashed(1, 10).Hashed(1, 10);
  CHECK(equal.Divide(100) == Parts{33, 33, 33});
  CHECK(Case().Hashed(7, 10).Hashed(7, 10).Hashed(7, 10).Divide(100) == equal.Divide(100));
  const Case unequal = Case().Hashed(3, 10).Hashed(1, 10).Hashed(1, 10);
  CHECK(unequal.Divide(1000) == Parts{600, 200, 200});
  CHECK(unequal.Divide(1004) == Parts{602, 200, 200});
  CHECK(Case().Hashed(1'000'000, 1).Hashed(1, 1).Divide(uint64_t{1} << 63) ==
        Parts{9'223'362'813'491'962'316, 9'223'362'813'491});
}

TEST_CASE("dense tables have what they want, up to half", "[dram_parts]") {
  CHECK(Case().Hashed(2, 1).Dense(40).Hashed(1, 1).Divide(100) == Parts{40, 40, 20});
  CHECK(Case().Hashed(2, 1).Dense(400).Hashed(3, 1).Divide(100) == Parts{20, 50, 30});
  CHECK(Case().Dense(400).Dense(10).Hashed(1, 1).Divide(100) == Parts{25, 10, 65});
  CHECK(Case().Dense(400).Divide(100) == Parts{50});
  CHECK(Case().Divide(100) == Parts{});
}

TEST_CASE("no table has less than its least while there is enough", "[dram_parts]") {
  CHECK(Case().Hashed(98, 100).Hashed(1, 100).Hashed(1, 100).Divide(1000) == Parts{800, 100, 100});
  // The third's least leaves the second less than its own.
  CHECK(Case().Hashed(6, 0).Hashed(3, 290).Hashed(1, 200).Divide(1000) == Parts{510, 290, 200});
  CHECK(Case().Hashed(1, 200).Hashed(6, 0).Hashed(3, 290).Divide(1000) == Parts{200, 510, 290});
  CHECK(Case().Hashed(6, 0).Hashed(3, 260).Hashed(1, 200).Divide(1000) == Parts{533, 266, 200});
  // All leasts together, and a byte less, which nobody has enough of.
  const Case whole = Case().Hashed(5, 100).Dense(80).Hashed(1, 300);
  CHECK(whole.Divide(480) == Parts{100, 80, 300});
  CHECK(whole.Divide(479) == Parts{99, 80, 299});
  CHECK(whole.Divide(180) == Parts{25, 80, 75});
  CHECK(whole.Divide(0) == Parts{0, 0, 0});
}

// The first limit, of all up to one that is large enough, under which parts are wrong; none: -1.
// The dense table is the last.
int FirstWrong(const Case& c) {
  const size_t hashed = c.tables.size() - 1;
  Parts before(c.tables.size(), 0);
  for (uint64_t bytes = 0; bytes < 200; ++bytes) {
    const Parts parts = c.Divide(bytes);
    const uint64_t given = std::accumulate(parts.begin(), parts.end(), uint64_t{0});
    bool right = given <= bytes && given + hashed > bytes;
    uint64_t least = parts.back();
    for (size_t i = 0; i < hashed; ++i) least += c.claims[i].least;
    for (size_t i = 0; i < parts.size(); ++i) {
      right &= parts[i] >= before[i];
      right &= least > bytes || i == hashed || parts[i] >= c.claims[i].least;
    }
    if (!right) return static_cast<int>(bytes);
    before = parts;
  }
  return -1;
}

TEST_CASE("more bytes make no part smaller, and no byte is given twice", "[dram_parts]") {
  constexpr uint32_t kShares[] = {1, 3, 7};
  constexpr uint64_t kLeasts[] = {0, 13, 40};
  for (const uint32_t first : kShares) {
    for (const uint32_t second : kShares) {
      for (const uint64_t least : kLeasts) {
        for (const uint64_t other : kLeasts) {
          for (const uint64_t dense : {0, 25, 1000}) {
            INFO(first << ", " << second << ", " << least << ", " << other << ", " << dense);
            CHECK(
                FirstWrong(
                    Case().Hashed(first, least).Hashed(second, other).Hashed(2, 20).Dense(dense)) ==
                -1);
          }
        }
      }
    }
  }
}

TEST_CASE("a thousand tables of the greatest weights", "[dram_parts]") {
  Case c;
  for (int i = 0; i < 1023; ++i) c.Hashed(1'000'000, 4096);
  c.Hashed(1, 4096);
  const Parts parts = c.Divide(uint64_t{1} << 50);
  CHECK(parts[1023] == ((uint64_t{1} << 50) / 1'023'000'001));
  CHECK(parts[0] == parts[1022]);
  CHECK(parts[0] > (uint64_t{1} << 40));
}

}  // namespace
}  // namespace strata
