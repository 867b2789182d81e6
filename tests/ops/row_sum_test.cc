#include "ops/row_sum.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <vector>

#include "ops/cpu_features.h"
#include "ops/sparse_rows.h"
#include "tests/ops/golden_hash.h"

namespace strata::ops {
namespace {

struct List {
  std::vector<uint64_t> positions;
  std::vector<float> values;
  SparseRows Rows() const { return {positions.data(), values.data(), positions.size()}; }
  friend bool operator==(const List& a, const List& b) {
    return a.positions == b.positions && a.values.size() == b.values.size() &&
           std::memcmp(a.values.data(), b.values.data(), a.values.size() * 4) == 0;
  }
};

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2 + 1) {}
  uint32_t Next() {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<uint32_t>(state_ >> 32);
  }

 private:
  uint64_t state_;
};

// Positions 0 .. range-1 (the last one becomes 2^64-1), each with the given chance out of 100.
List MakeList(uint32_t range, uint32_t percent, uint32_t dim, Random& random) {
  List list;
  for (uint32_t p = 0; p < range; ++p) {
    if (random.Next() % 100 >= percent) continue;
    list.positions.push_back(p + 1 == range ? ~0ull : uint64_t{p} << 40);
    for (uint32_t d = 0; d < dim; ++d) {
      const float x = static_cast<float>(static_cast<int32_t>(random.Next())) * 0x1p-31f;
      list.values.push_back(random.Next() % 8 == 0 ? -0.0f : x);
    }
  }
  return list;
}

// The definition, by a map.
List Reference(const List& left, const List& right, uint32_t dim) {
  std::map<uint64_t, std::vector<float>> rows;
  for (size_t i = 0; i < left.positions.size(); ++i) {
    rows[left.positions[i]].assign(left.values.begin() + i * dim,
                                   left.values.begin() + (i + 1) * dim);
  }
  for (size_t i = 0; i < right.positions.size(); ++i) {
    std::vector<float>& row = rows[right.positions[i]];
    const bool absent = row.empty();
    for (uint32_t d = 0; d < dim; ++d) {
      const float x = right.values[i * dim + d];
      if (absent) {
        row.push_back(x);
      } else {
        row[d] += x;
      }
    }
  }
  List out;
  for (const auto& [position, row] : rows) {
    out.positions.push_back(position);
    out.values.insert(out.values.end(), row.begin(), row.end());
  }
  return out;
}

List Merge(const List& left, const List& right, uint32_t dim) {
  const size_t room = left.positions.size() + right.positions.size();
  List out;
  out.positions.assign(room + 1, 77);
  out.values.assign(room * dim + 1, 77.0f);
  const size_t n =
      MergeRowSums(left.Rows(), right.Rows(), dim, out.positions.data(), out.values.data());
  REQUIRE(n <= room);
  CHECK(out.positions.back() == 77);
  CHECK(out.values.back() == 77.0f);
  out.positions.resize(n);
  out.values.resize(n * dim);
  return out;
}

template <typename Body>
void ForEveryIsa(const Body& body) {
  const IsaLevel before = ActiveIsaLevel();
  for (IsaLevel level : {IsaLevel::kV3, IsaLevel::kV4}) {
    if (level > SupportedIsaLevel()) {
      WARN("no AVX-512 here: its build was not tried");
      continue;
    }
    SetActiveIsaLevel(level);
    body();
  }
  SetActiveIsaLevel(before);
}

TEST_CASE("merging equals the definition", "[ops][row_sum]") {
  ForEveryIsa([] {
    Random random(1);
    for (uint32_t dim : {1u, 2u, 5u, 8u, 16u, 17u, 33u, 256u}) {
      for (uint32_t range : {1u, 2u, 10u, 255u, 256u, 257u, 700u}) {
        for (uint32_t a : {0u, 10u, 50u, 100u}) {
          for (uint32_t b : {0u, 10u, 50u, 100u}) {
            const List left = MakeList(range, a, dim, random);
            const List right = MakeList(range, b, dim, random);
            INFO("dim " << dim << " range " << range << " " << a << " % and " << b << " %");
            CHECK(Merge(left, right, dim) == Reference(left, right, dim));
          }
        }
      }
    }
  });
}

TEST_CASE("a row of one child passes through with its bits", "[ops][row_sum]") {
  ForEveryIsa([] {
    for (uint32_t dim : {1u, 3u, 16u, 17u}) {
      // -0 would become +0 if a zero were added, a signalling NaN quiet.
      List left{{1, 3, 5}, std::vector<float>(3 * dim, -0.0f)};
      List right{{2, 3, 6}, std::vector<float>(3 * dim, std::bit_cast<float>(0x7f800001u))};
      const List out = Merge(left, right, dim);
      REQUIRE(out.positions == std::vector<uint64_t>{1, 2, 3, 5, 6});
      const uint32_t want[] = {0x80000000u, 0x7f800001u, 0, 0x80000000u, 0x7f800001u};
      for (size_t i : {0u, 1u, 3u, 4u}) {
        for (uint32_t d = 0; d < dim; ++d) {
          uint32_t bits;
          std::memcpy(&bits, &out.values[i * dim + d], 4);
          CHECK(bits == want[i]);
        }
      }
      CHECK(out.values[2 * dim] != out.values[2 * dim]);
    }
  });
}

TEST_CASE("disjoint ranges and empty lists", "[ops][row_sum]") {
  Random random(2);
  List low = MakeList(300, 60, 16, random);
  List high = MakeList(300, 60, 16, random);
  for (uint64_t& p : high.positions) p = p / 2 + (1ull << 62);
  for (uint64_t& p : low.positions) p = p / 4;
  CHECK(Merge(low, high, 16) == Reference(low, high, 16));
  CHECK(Merge(high, low, 16) == Reference(low, high, 16));
  const List empty;
  CHECK(Merge(low, empty, 16) == low);
  CHECK(Merge(empty, low, 16) == low);
  CHECK(MergeRowSums({}, {}, 16, nullptr, nullptr) == 0);
}

TEST_CASE("dense sums", "[ops][row_sum]") {
  Random random(3);
  for (size_t n : {0u, 1u, 15u, 16u, 17u, 1000u}) {
    std::vector<float> a(n), b(n), want(n), out(n);
    for (size_t i = 0; i < n; ++i) {
      a[i] = static_cast<float>(random.Next());
      b[i] = static_cast<float>(random.Next()) * 1e-3f;
      want[i] = a[i] + b[i];
    }
    ForEveryIsa([&] {
      AddFloats(a.data(), b.data(), n, out.data());
      CHECK(out == want);
    });
    std::vector<float> in_place = a;
    AddFloats(in_place.data(), b.data(), n, in_place.data());
    CHECK(in_place == want);
    in_place = b;
    AddFloats(a.data(), in_place.data(), n, in_place.data());
    CHECK(in_place == want);
  }
}

TEST_CASE("golden bits of merged sums", "[ops][row_sum][exact]") {
  ForEveryIsa([] {
    GoldenHash hash;
    Random random(4);
    for (uint32_t dim : {1u, 16u, 17u, 20u}) {
      const List a = MakeList(2000, 40, dim, random);
      const List b = MakeList(2000, 40, dim, random);
      hash.Add(Merge(a, b, dim).values);
    }
    CHECK(hash.value() == 0x3d4404ab93012cea);
  });
}

}  // namespace
}  // namespace strata::ops
