#include "server/shard/update_record.h"

#include <catch2/catch.hpp>
#include <cstring>
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

}  // namespace
}  // namespace strata::server
