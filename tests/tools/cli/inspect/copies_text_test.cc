#include "tools/cli/inspect/copies_text.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "proto/strata/control.pb.h"
#include "tools/cli/inspect/text.h"

namespace strata {
namespace {

using Json = nlohmann::json;

CopyStatus& AddCopy(ShardServer& server, const std::string& name, CopyStatus::Role role,
                    uint64_t end) {
  CopyStatus& copy = *server.add_copies();
  copy.set_server(name);
  copy.set_zone("zone-" + name);
  copy.set_role(role);
  copy.set_alive(true);
  copy.mutable_report()->set_chain_epoch(7);
  for (const uint32_t shard : {0u, 1u}) {
    CopyEnd* at = copy.mutable_report()->add_ends();
    at->set_shard(shard);
    at->set_step(end);
  }
  return copy;
}

// Two shards with a head, a backup that is a step behind and one that is being copied to.
JobShards Shards() {
  JobShards shards;
  shards.set_name("clicks");
  ShardServer& server = *shards.add_servers();
  server.set_name("s0");
  server.set_chain_epoch(8);
  AddCopy(server, "s0", CopyStatus::HEAD, 12).mutable_report()->set_lag_bytes(2048);
  CopyReport& backup = *AddCopy(server, "s1", CopyStatus::BACKUP, 11).mutable_report();
  backup.set_image_bytes_sent(1024);
  backup.set_image_bytes(4096);
  AddCopy(server, "s2", CopyStatus::JOINING, 0).clear_report();
  server.mutable_copies(2)->set_alive(false);
  for (uint32_t i = 0; i < 2; ++i) {
    ShardStatus* s = shards.add_shards();
    s->mutable_place()->set_shard(i);
    s->mutable_place()->set_last_partition(i);
  }
  return shards;
}

TEST_CASE("copies are shown with their roles, zones, epochs and lags", "[inspect]") {
  CHECK(CopiesTable(Shards()) ==
        "\n"
        "COPIES OF  SERVER  ZONE     ROLE     STATE  EPOCH   LAG\n"
        "0-1        s0      zone-s0  head     up     7 of 8  -\n"
        "0-1        s1      zone-s1  backup   up     7 of 8  1 step, 2.00 KiB\n"
        "0-1        s2      zone-s2  joining  lost   - of 8  image 1.00 KiB of 4.00 KiB\n");
  CHECK(ShardsTable(Shards()).find("zone-s1") != std::string::npos);
  const Json server = Json::parse(ShardsJson(Shards()))["servers"][0];
  CHECK(server["chainEpoch"] == 8);
  REQUIRE(server["copies"].size() == 3);
  CHECK(server["copies"][1]["role"] == "backup");
  CHECK(server["copies"][1]["lagSteps"] == 1);
  CHECK(server["copies"][1]["lagBytes"] == 2048);
  CHECK(server["copies"][2]["lagSteps"].is_null());
  CHECK(server["copies"][2]["imageBytesSent"] == 1024);
  CHECK(server["copies"][2]["alive"] == false);
}

TEST_CASE("a job without copies shows none", "[inspect]") {
  JobShards shards = Shards();
  shards.mutable_servers(0)->clear_copies();
  CHECK(CopiesTable(shards).empty());
  CHECK_FALSE(Json::parse(ShardsJson(shards))["servers"][0].contains("copies"));
}

TEST_CASE("a shard that is not there yet has no lag in steps", "[inspect]") {
  JobShards shards = Shards();
  CopyStatus& backup = *shards.mutable_servers(0)->mutable_copies(1);
  CHECK(*LagOf(backup, shards.servers(0).copies(0)) == 1);
  backup.mutable_report()->mutable_ends()->RemoveLast();
  CHECK_FALSE(LagOf(backup, shards.servers(0).copies(0)).has_value());
}

}  // namespace
}  // namespace strata
