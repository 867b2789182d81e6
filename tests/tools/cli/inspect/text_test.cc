#include "tools/cli/inspect/text.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "proto/strata/control.pb.h"

namespace strata {
namespace {

using Json = nlohmann::json;

const absl::Time kNow = absl::FromUnixMillis(1700000000500);

ClusterStatus Cluster() {
  ClusterStatus cluster;
  NodeStatus* n = cluster.add_nodes();
  n->set_name("server-0");
  n->set_role(SERVER);
  n->set_alive(true);
  n->set_data_address("127.0.0.1:1");
  n->set_session(7);
  n->set_incarnation(0xfedcba9876543210);
  n->set_memory_bytes(uint64_t{3} << 30);
  n->mutable_room()->set_dram_bytes(uint64_t{2} << 30);
  n->mutable_reserved()->set_dram_bytes(uint64_t{1} << 29);
  n->set_device("GPU-12ab");
  n->set_certificate_not_after_unix_ms(1700000000000 + 86'400'000 * int64_t{29});
  n->set_last_seen_unix_ms(1700000000000);
  n->add_jobs(2);
  n->add_jobs(5);
  return cluster;
}

JobShards Shards() {
  JobShards shards;
  shards.set_job(3);
  shards.set_name("clicks");
  shards.set_state(RUNNING);
  shards.add_servers()->set_name("server-0");
  for (uint32_t i = 0; i < 2; ++i) {
    ShardStatus* s = shards.add_shards();
    s->mutable_place()->set_shard(i);
    s->mutable_place()->set_first_partition(i * 8);
    s->mutable_place()->set_last_partition(i * 8 + 7);
  }
  shards.mutable_shards(0)->mutable_report()->set_clock(12);
  shards.mutable_shards(0)->mutable_report()->set_rows(1234567);
  for (const auto& [name, rows] : {std::pair("user", 1234560), std::pair("item", 7)}) {
    TableRows* table = shards.mutable_shards(0)->mutable_report()->add_tables();
    table->set_table(name);
    table->set_rows(rows);
  }
  return shards;
}

TEST_CASE("nodes say who they are and what they do", "[inspect]") {
  const std::string table = NodesTable(Cluster(), kNow);
  for (const char* part :
       {"server-0", "fedcba9876543210", "3.00 GiB", "2.0 GiB of memory  512.0 MiB of memory",
        "GPU-12ab", "29 days", "0.5 s ago", "2,5"}) {
    INFO(table);
    CHECK(table.find(part) != std::string::npos);
  }
  CHECK(NodesTable(ClusterStatus(), kNow) == "no servers or workers\n");
  const Json json = Json::parse(NodesJson(Cluster()));
  CHECK(json["nodes"][0]["incarnation"] == "fedcba9876543210");
  CHECK(json["nodes"][0]["jobs"] == Json({2, 5}));
  CHECK(json["nodes"][0]["device"] == "GPU-12ab");
  CHECK(json["nodes"][0]["deviceNumericsId"] == nullptr);
  CHECK(json["nodes"][0]["numericsId"].is_null());
  CHECK(json["nodes"][0]["certificateNotAfterUnixMs"] == 1702505600000);
  ClusterStatus without;
  without.add_nodes()->set_name("n");
  CHECK(Json::parse(NodesJson(without))["nodes"][0]["certificateNotAfterUnixMs"].is_null());
}

TEST_CASE("shards say where they are, and what is known of them", "[inspect]") {
  const std::string table = ShardsTable(Shards());
  INFO(table);
  CHECK(table.find("1,234,567") != std::string::npos);
  CHECK(table.find("8-15") != std::string::npos);
  CHECK(absl::EndsWith(table,
                       "\nTABLE  ROWS\nuser   1,234,560\nitem   7\n"
                       "\n1 of 2 shards are not counted in rows by table: its server has "
                       "not told them\n"));
  JobShards both = Shards();
  *both.mutable_shards(1)->mutable_report() = both.shards(0).report();
  CHECK(absl::EndsWith(ShardsTable(both), "\nTABLE  ROWS\nuser   2,469,120\nitem   14\n"));
  CHECK(Json::parse(ShardsJson(both))["shardsNotCounted"] == 0);
  const Json json = Json::parse(ShardsJson(Shards()));
  CHECK(json["shardsNotCounted"] == 1);
  CHECK(json["shards"][0]["clock"] == 12);
  CHECK(json["shards"][1]["clock"].is_null());
  CHECK(json["shards"][0]["tables"][1] == Json{{"table", "item"}, {"rows", 7}});
  CHECK(json["shards"][1]["tables"].is_null());
  CHECK(json["shards"][1]["server"] == "server-0");
  // A server of an earlier version reports its shard, but not the rows of each table.
  JobShards earlier = both;
  earlier.mutable_shards(0)->mutable_report()->clear_tables();
  CHECK(absl::StrContains(ShardsTable(earlier),
                          "\nuser   1,234,560\nitem   7\n\n1 of 2 shards are not counted"));
  CHECK(Json::parse(ShardsJson(earlier))["shards"][0]["tables"].is_null());
  CHECK(Json::parse(ShardsJson(earlier))["shards"][0]["rows"] == 1234567);
  CHECK(Json::parse(ShardsJson(earlier))["shardsNotCounted"] == 1);
  // None has reported.
  JobShards begun = Shards();
  begun.mutable_shards(0)->clear_report();
  CHECK(absl::EndsWith(ShardsTable(begun),
                       "\n2 of 2 shards are not counted in rows by table: their servers have not "
                       "told them\n"));
  CHECK(Json::parse(ShardsJson(begun))["shardsNotCounted"] == 2);
  JobShards over;
  over.set_name("clicks");
  over.set_state(SUCCEEDED);
  CHECK(ShardsTable(over) == "job clicks is succeeded: no server holds shards of it\n");
  // A server that the list does not have is no reason to end.
  JobShards odd = Shards();
  odd.mutable_shards(0)->mutable_place()->set_server(9);
  CHECK(Json::parse(ShardsJson(odd))["shards"][0]["server"].is_null());
  CHECK(!ShardsTable(odd).empty());
}

TEST_CASE("events are lines, for people and for programs", "[inspect]") {
  Event event;
  event.set_sequence(4);
  event.set_time_unix_ms(1700000000123);
  event.set_reason("RolledBack");
  event.set_job(3);
  event.set_message("server \"s\"\nwent");
  CHECK(EventLine(event, absl::UTCTimeZone()).substr(0, 43) ==
        "2023-11-14 22:13:20.123  job 3       Rolled");
  const Json json = Json::parse(EventJson(event));
  CHECK(EventJson(event).find('\n') == std::string::npos);
  CHECK(json["time"] == "2023-11-14T22:13:20.123Z");
  CHECK(json["job"] == 3);
  CHECK(json["node"].is_null());
  event.set_job(0);
  event.set_node("server-1");
  CHECK(EventLine(event, absl::UTCTimeZone()).find("server-1") != std::string::npos);
  CHECK(Json::parse(EventJson(event))["job"].is_null());
}

TEST_CASE("since when: how long ago, or a time", "[inspect]") {
  const absl::TimeZone utc = absl::UTCTimeZone();
  const auto request = [&](const char* text) {
    GetEventsRequest request;
    CHECK(SetSince(text, utc, request).ok());
    return request;
  };
  CHECK(request("0s").has_since_ago_ms());
  CHECK(request("0s").since_ago_ms() == 0);
  CHECK(request("90s").since_ago_ms() == 90000);
  CHECK(request("1h30m").since_ago_ms() == 5400000);
  CHECK(request("90s").since_unix_ms() == 0);
  CHECK(request("2023-11-14T22:13:20Z").since_unix_ms() == 1700000000000);
  CHECK_FALSE(request("2023-11-14T22:13:20Z").has_since_ago_ms());
  CHECK(request("2023-11-14T23:13:20+01:00").since_unix_ms() == 1700000000000);
  CHECK(request("2023-11-14 22:13").since_unix_ms() == 1699999980000);
  for (const char* bad : {"", "yesterday", "-5m", "5", "inf", "2023-13-01", "infinite-past"}) {
    INFO(bad);
    GetEventsRequest request;
    CHECK(absl::IsInvalidArgument(SetSince(bad, utc, request)));
  }
}

}  // namespace
}  // namespace strata
