#include "server/shard/update_record.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <random>

namespace strata::server {
namespace {

const std::vector<uint32_t> kDims = {3, 2, 5};

std::vector<uint8_t> Payload(const std::vector<TableSums>& tables) {
  std::string heads;
  std::vector<uint8_t> out;
  for (const auto part : EncodeTables(tables, kDims, heads)) {
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

TEST_CASE("sums come back as they went; damage is told", "[record]") {
  const std::vector<Position> positions = {Position(0), Position(7), Position(~0ull)};
  const std::vector<float> values = {1, -0.0f, 3, 4, 5, 6};
  std::vector<TableSums> tables(3);
  tables[1] = {positions, values.data(), nullptr};
  const std::vector<uint8_t> payload = Payload(tables);
  auto back = ParseTables(payload, kDims);
  REQUIRE(back.ok());
  REQUIRE((*back)[0].size() == 0);
  REQUIRE((*back)[2].size() == 0);
  REQUIRE((*back)[1].size() == 3);
  REQUIRE(std::equal(positions.begin(), positions.end(), (*back)[1].positions.begin()));
  REQUIRE(std::memcmp((*back)[1].values, values.data(), 24) == 0);
  REQUIRE(ParseTables(Payload(std::vector<TableSums>(3)), kDims).ok());

  for (size_t n = 0; n < payload.size(); ++n) {
    REQUIRE(absl::IsDataLoss(ParseTables({payload.data(), n}, kDims).status()));
  }
  std::vector<uint8_t> longer = payload;
  longer.push_back(0);
  REQUIRE(absl::IsDataLoss(ParseTables(longer, kDims).status()));
  const std::vector<uint32_t> other = {3, 4, 5};
  REQUIRE(absl::IsDataLoss(ParseTables(payload, other).status()));
  std::vector<uint8_t> disordered = payload;
  disordered[24] = 9;  // the first position
  REQUIRE(absl::IsDataLoss(ParseTables(disordered, kDims).status()));
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {  // no crash
    std::vector<uint8_t> bytes = payload;
    bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    (void)ParseTables(bytes, kDims).ok();
  }
}

// A copy applies what it received where it received it, as long as a machine can read it there.
TEST_CASE("sums of a payload that somebody keeps are not copied out of it", "[record]") {
  const std::vector<Position> positions = {Position(1), Position(7), Position(~0ull)};
  const std::vector<float> values(15, 2.5f);
  std::vector<TableSums> tables(3);
  tables[0] = {positions, values.data(), nullptr};  // 3 * 3 floats: what follows lies at 4 modulo 8
  tables[1] = {positions, values.data(), nullptr};
  const std::vector<uint8_t> payload = Payload(tables);
  for (const size_t shift : {0, 3, 4}) {
    auto bytes = std::make_shared<std::vector<uint64_t>>(payload.size() / 8 + 2);
    uint8_t* const at = reinterpret_cast<uint8_t*>(bytes->data()) + shift;
    std::memcpy(at, payload.data(), payload.size());
    const std::weak_ptr<void> watched = bytes;
    auto back = ParseTables({at, payload.size()}, kDims, bytes);
    bytes.reset();
    REQUIRE(back.ok());
    const auto lies_there = [&](const TableSums& sums) {
      const auto* first = reinterpret_cast<const uint8_t*>(sums.positions.data());
      return first >= at && first < at + payload.size();
    };
    CHECK(lies_there((*back)[0]) == (shift == 0));
    CHECK(lies_there((*back)[1]) == (shift == 4));
    CHECK(watched.expired() == (shift == 3));
    for (const size_t t : {0, 1}) {
      const TableSums& sums = (*back)[t];
      CHECK(std::equal(positions.begin(), positions.end(), sums.positions.begin(),
                       sums.positions.end()));
      CHECK(std::memcmp(sums.values, values.data(), 3 * kDims[t] * 4) == 0);
    }
  }
}

}  // namespace
}  // namespace strata::server
