#include "tools/cli/inspect/text.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "proto/job/memory_need.h"
#include "tools/cli/base/days_left.h"
#include "tools/cli/base/job_text.h"
#include "tools/cli/base/text_table.h"
#include "tools/cli/inspect/copies_text.h"

namespace strata {
namespace {

using Json = nlohmann::ordered_json;

std::string Line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}
Json TextOrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }
std::string Hex(uint64_t number) { return absl::StrFormat("%016x", number); }
std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }
const char* RoleName(NodeRole role) { return role == SERVER ? "server" : "worker"; }

std::string Ago(int64_t unix_ms, absl::Time now) {
  const absl::Duration ago = now - absl::FromUnixMillis(unix_ms);
  return absl::StrFormat("%.1f s ago", std::max(0.0, absl::ToDoubleSeconds(ago)));
}

const std::string& ServerOf(const JobShards& shards, const ShardAssignment& place) {
  static const std::string* const kNobody = new std::string;
  const auto index = static_cast<int>(place.server());
  return index < shards.servers_size() ? shards.servers(index).name() : *kNobody;
}

// What is known of it; "-": nothing.
std::string RoomText(const MemoryNeed& bytes) {
  const bool any = bytes.dram_bytes() + bytes.disk_bytes() + bytes.gpu_bytes() > 0;
  return any ? NeedText(bytes) : "-";
}

// "-": there is none.
std::string ExpiryText(int64_t unix_ms, absl::Time now) {
  if (unix_ms == 0) return "-";
  const int64_t days = DaysLeft(absl::FromUnixMillis(unix_ms), now);
  return days == 0 ? "expired" : absl::StrCat(days, days == 1 ? " day" : " days");
}
Json ExpiryOrNull(int64_t unix_ms) { return unix_ms == 0 ? Json(nullptr) : Json(unix_ms); }

}  // namespace

std::string NodesTable(const ClusterStatus& cluster, absl::Time now) {
  if (cluster.nodes().empty()) return "no servers or workers\n";
  std::vector<TextRow> rows = {{"NODE", "ROLE", "STATE", "ADDRESS", "PID", "SESSION", "INCARNATION",
                                "CORES", "MEMORY", "ROOM", "RESERVED", "NUMERICS", "DEVICE", "ZONE",
                                "CERTIFICATE", "HEARD", "JOBS"}};
  for (const NodeStatus& n : cluster.nodes()) {
    rows.push_back({n.name(), RoleName(n.role()), n.alive() ? "up" : "lost",
                    OrDash(n.data_address()), absl::StrCat(n.pid()), absl::StrCat(n.session()),
                    Hex(n.incarnation()), absl::StrCat(n.cores()),
                    n.memory_bytes() == 0 ? "-" : BytesText(static_cast<double>(n.memory_bytes())),
                    RoomText(n.room()), RoomText(n.reserved()), OrDash(n.numerics_id()),
                    OrDash(n.device()), OrDash(n.zone()),
                    ExpiryText(n.certificate_not_after_unix_ms(), now),
                    Ago(n.last_seen_unix_ms(), now), OrDash(absl::StrJoin(n.jobs(), ","))});
  }
  return TextTable(rows);
}

std::string NodesJson(const ClusterStatus& cluster) {
  Json nodes = Json::array();
  for (const NodeStatus& n : cluster.nodes()) {
    Json jobs = Json::array();
    for (uint64_t job : n.jobs()) jobs.push_back(job);
    nodes.push_back(
        Json{{"name", n.name()},
             {"role", RoleName(n.role())},
             {"alive", n.alive()},
             {"dataAddress", TextOrNull(n.data_address())},
             {"metricsAddress", TextOrNull(n.metrics_address())},
             {"pid", n.pid()},
             {"session", Hex(n.session())},
             {"incarnation", Hex(n.incarnation())},
             {"cores", n.cores()},
             {"memoryBytes", n.memory_bytes()},
             {"numericsId", TextOrNull(n.numerics_id())},
             {"device", TextOrNull(n.device())},
             {"deviceNumericsId", TextOrNull(n.device_numerics_id())},
             {"zone", TextOrNull(n.zone())},
             {"certificateNotAfterUnixMs", ExpiryOrNull(n.certificate_not_after_unix_ms())},
             {"lastSeenUnixMs", n.last_seen_unix_ms()},
             {"jobs", jobs},
             {"quarantined", n.quarantined_size()}});
  }
  return Line(Json{{"schedulerVersion", cluster.scheduler_version()}, {"nodes", nodes}});
}

namespace {

// Whether the shard's server has said how many rows each table has: not before its first report in
// this generation, nor if it is of an earlier version.
bool TellsTables(const ShardStatus& s) { return s.report().tables_size() > 0; }

// How many shards are in no sum of rows.
int64_t ShardsNotCounted(const JobShards& shards) {
  return std::count_if(shards.shards().begin(), shards.shards().end(),
                       [](const ShardStatus& s) { return !TellsTables(s); });
}

std::string NotCountedText(const JobShards& shards) {
  const int64_t missing = ShardsNotCounted(shards), all = shards.shards_size();
  if (missing == 0) return "";
  return absl::StrCat("\n", missing, " of ", all, all == 1 ? " shard is" : " shards are",
                      " not counted in rows by table: ",
                      missing == 1 ? "its server has" : "their servers have", " not told them\n");
}

// Rows of each table over all shards that tell them, in the order of the tables' numbers.
std::string TablesOf(const JobShards& shards) {
  std::vector<std::pair<std::string, uint64_t>> sums;
  for (const ShardStatus& s : shards.shards()) {
    for (int t = 0; t < s.report().tables_size(); ++t) {
      const TableRows& table = s.report().tables(t);
      if (t == static_cast<int>(sums.size())) sums.emplace_back(table.table(), 0);
      sums[t].second += table.rows();
    }
  }
  if (sums.empty()) return NotCountedText(shards);
  std::vector<TextRow> rows = {{"TABLE", "ROWS"}};
  for (const auto& [table, count] : sums) rows.push_back({table, WithCommas(count)});
  return absl::StrCat("\n", TextTable(rows), NotCountedText(shards));
}

Json TablesJson(const ShardReport& report) {
  Json tables = Json::array();
  for (const TableRows& t : report.tables()) {
    tables.push_back(Json{{"table", t.table()}, {"rows", t.rows()}});
  }
  return tables;
}

}  // namespace

std::string ShardsTable(const JobShards& shards) {
  if (shards.shards().empty()) {
    return absl::StrCat("job ", shards.name(), " is ", StateName(shards.state()),
                        ": no server holds shards of it\n");
  }
  std::vector<TextRow> rows = {
      {"SHARD", "PARTITIONS", "SERVER", "ADDRESS", "CLOCK", "ROWS", "DRAM", "SSD-READS"}};
  for (const ShardStatus& s : shards.shards()) {
    const auto index = static_cast<int>(s.place().server());
    const bool known = index < shards.servers_size();
    TextRow row = {absl::StrCat(s.place().shard()),
                   absl::StrCat(s.place().first_partition(), "-", s.place().last_partition()),
                   OrDash(ServerOf(shards, s.place())),
                   known ? OrDash(shards.servers(index).data_address()) : "-"};
    if (s.has_report()) {
      row.push_back(absl::StrCat(s.report().clock()));
      row.push_back(WithCommas(s.report().rows()));
      row.push_back(BytesText(static_cast<double>(s.report().dram_bytes())));
      row.push_back(WithCommas(s.report().ssd_reads()));
    } else {
      row.insert(row.end(), 4, "-");
    }
    rows.push_back(std::move(row));
  }
  return absl::StrCat(TextTable(rows), CopiesTable(shards), TablesOf(shards));
}

std::string ShardsJson(const JobShards& shards) {
  Json servers = Json::array(), list = Json::array();
  for (const ShardServer& s : shards.servers()) {
    servers.push_back(Json{{"name", s.name()}, {"dataAddress", TextOrNull(s.data_address())}});
    if (s.copies().empty()) continue;
    servers.back()["chainEpoch"] = s.chain_epoch();
    servers.back()["copies"] = CopiesJson(s);
  }
  for (const ShardStatus& s : shards.shards()) {
    const bool known = s.has_report();
    const auto number = [known](uint64_t n) { return known ? Json(n) : Json(nullptr); };
    list.push_back(Json{{"shard", s.place().shard()},
                        {"firstPartition", s.place().first_partition()},
                        {"lastPartition", s.place().last_partition()},
                        {"server", TextOrNull(ServerOf(shards, s.place()))},
                        {"clock", number(s.report().clock())},
                        {"rows", number(s.report().rows())},
                        {"dramBytes", number(s.report().dram_bytes())},
                        {"ssdReads", number(s.report().ssd_reads())},
                        {"hbmBytes", number(s.report().hbm_bytes())},
                        {"hbmHits", number(s.report().hbm_hits())},
                        {"tables", TellsTables(s) ? TablesJson(s.report()) : Json(nullptr)}});
  }
  return Line(Json{{"job", shards.job()},
                   {"name", shards.name()},
                   {"state", StateName(shards.state())},
                   {"generation", shards.generation()},
                   {"mapEpoch", shards.map_epoch()},
                   {"servers", servers},
                   {"shards", list},
                   {"shardsNotCounted", ShardsNotCounted(shards)}});
}

std::string EventLine(const Event& event, absl::TimeZone zone) {
  const std::string time =
      absl::FormatTime("%Y-%m-%d %H:%M:%E3S", absl::FromUnixMillis(event.time_unix_ms()), zone);
  const std::string whom = event.job() != 0       ? absl::StrCat("job ", event.job())
                           : event.node().empty() ? std::string("cluster")
                                                  : event.node();
  return absl::StrFormat("%s  %-10s  %-18s  %s", time, whom, event.reason(), event.message());
}

std::string EventJson(const Event& event) {
  return Line(Json{
      {"sequence", event.sequence()},
      {"time", absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromUnixMillis(event.time_unix_ms()),
                                absl::UTCTimeZone())},
      {"timeUnixMs", event.time_unix_ms()},
      {"reason", event.reason()},
      {"node", TextOrNull(event.node())},
      {"job", event.job() == 0 ? Json(nullptr) : Json(event.job())},
      {"message", event.message()}});
}

absl::Status SetSince(absl::string_view text, absl::TimeZone zone, GetEventsRequest& request) {
  absl::Duration ago;
  if (absl::ParseDuration(text, &ago) && ago >= absl::ZeroDuration() &&
      ago < absl::InfiniteDuration()) {
    request.set_since_ago_ms(absl::ToInt64Milliseconds(ago));
    return absl::OkStatus();
  }
  absl::Time time;
  for (const char* format : {absl::RFC3339_full, "%Y-%m-%dT%H:%M:%E*S", "%Y-%m-%d %H:%M:%E*S",
                             "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%d"}) {
    std::string error;
    if (absl::ParseTime(format, text, zone, &time, &error) && time > absl::InfinitePast() &&
        time < absl::InfiniteFuture()) {
      request.set_since_unix_ms(absl::ToUnixMillis(time));
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--since '", text, "' is neither how long ago (90s, 15m, 2h) nor a time (",
                   "2026-01-31T12:00:00Z)"));
}

}  // namespace strata
