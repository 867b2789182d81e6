#include "tools/bench/base/figure.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace strata::bench {
namespace {

using Json = nlohmann::ordered_json;

TEST_CASE("a figure is one line of JSON with eight fields in their order", "[bench]") {
  const Figure f{"wire_pull", "pull, memory", 15, "Mkeys/s", 30, "transport", 5, "ps-lite"};
  CHECK(ToJson(f) ==
        "{\"bench\":\"wire_pull\",\"name\":\"pull, memory\",\"value\":15.0,\"unit\":\"Mkeys/s\","
        "\"limit\":30.0,\"ratio\":0.5,\"peer\":5.0,\"peer_ratio\":3.0}");
}

TEST_CASE("what there is not is null, and no field is left out", "[bench]") {
  Figure f{.bench = "b", .name = "n", .value = 2, .unit = "s"};
  Json json = Json::parse(ToJson(f));
  CHECK(json.size() == 8);
  for (const char* field : {"limit", "ratio", "peer", "peer_ratio"}) {
    INFO(field);
    REQUIRE(json.contains(field));
    CHECK(json.at(field).is_null());
  }
  f.limit = 4;
  json = Json::parse(ToJson(f));
  CHECK(json.at("ratio") == 0.5);
  CHECK(json.at("peer").is_null());
  CHECK(json.at("peer_ratio").is_null());
  f.peer = 0;  // measured, and no base of a ratio
  json = Json::parse(ToJson(f));
  CHECK(json.at("peer") == 0);
  CHECK(json.at("peer_ratio").is_null());
}

TEST_CASE("a row of the table stands below its heads", "[bench]") {
  const std::string row =
      ToRow({"wire_pull", "pull", 15, "Mkeys/s", 30, "transport", {}, "nobody here"});
  const auto column = [&](const std::string& head, const std::string& text) {
    // Numbers end where their head ends.
    const size_t at = TableHead().find(head) + head.size();
    CHECK(row.substr(at - text.size(), text.size()) == text);
  };
  column("value", "15");
  column(" limit", "30");
  column(" ratio", "0.50x");
  column(" peer", "-");
  CHECK(row.back() == '\n');
}

TEST_CASE("the middle of an even number of values is between two", "[bench]") {
  CHECK(Median({3}) == 3);
  CHECK(Median({9, 1, 5}) == 5);
  CHECK(Median({4, 1, 9, 2}) == 3);
}

}  // namespace
}  // namespace strata::bench
