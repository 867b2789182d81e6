#include "tools/cli/inspect/copies_text.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "tools/cli/base/text_table.h"

namespace strata {
namespace {

using Json = nlohmann::ordered_json;

// "head", "backup", "learner", "joining".
std::string RoleText(const CopyStatus& copy) {
  return absl::AsciiStrToLower(CopyStatus::Role_Name(copy.role()));
}

// "0-3", "2": of the shards that the job's server of that index has.
std::string ShardsOf(const JobShards& shards, int index) {
  std::vector<uint32_t> numbers;
  for (const ShardStatus& s : shards.shards()) {
    if (static_cast<int>(s.place().server()) == index) numbers.push_back(s.place().shard());
  }
  if (numbers.empty()) return "-";
  const auto [first, last] = std::minmax_element(numbers.begin(), numbers.end());
  return *first == *last ? absl::StrCat(*first) : absl::StrCat(*first, "-", *last);
}

// What is being sent to the copy at this place, as the one before it says.
std::string LagText(const ShardServer& server, int place) {
  const CopyStatus& copy = server.copies(place);
  if (place == 0) return "-";
  const CopyReport& before = server.copies(place - 1).report();
  if (before.image_bytes() > 0) {
    return absl::StrCat("image ", BytesText(static_cast<double>(before.image_bytes_sent())), " of ",
                        BytesText(static_cast<double>(before.image_bytes())));
  }
  const auto lag = LagOf(copy, server.copies(0));
  if (!lag) return "-";
  const std::string bytes = BytesText(static_cast<double>(before.lag_bytes()));
  return absl::StrCat(*lag, *lag == 1 ? " step, " : " steps, ", bytes);
}

}  // namespace

std::optional<uint64_t> LagOf(const CopyStatus& copy, const CopyStatus& head) {
  if (head.report().ends().empty()) return std::nullopt;
  uint64_t most = 0;
  for (const CopyEnd& end : head.report().ends()) {
    const auto& own = copy.report().ends();
    const auto it = std::find_if(own.begin(), own.end(), [&end](const CopyEnd& other) {
      return other.shard() == end.shard();
    });
    if (it == own.end()) return std::nullopt;
    most = std::max<uint64_t>(most, end.step() - std::min(end.step(), it->step()));
  }
  return most;
}

std::string CopiesTable(const JobShards& shards) {
  std::vector<TextRow> rows = {{"COPIES OF", "SERVER", "ZONE", "ROLE", "STATE", "EPOCH", "LAG"}};
  for (int i = 0; i < shards.servers_size(); ++i) {
    const ShardServer& server = shards.servers(i);
    for (int place = 0; place < server.copies_size(); ++place) {
      const CopyStatus& copy = server.copies(place);
      const bool told = copy.report().chain_epoch() > 0;
      rows.push_back({ShardsOf(shards, i), copy.server(), copy.zone().empty() ? "-" : copy.zone(),
                      RoleText(copy), copy.alive() ? "up" : "lost",
                      told ? absl::StrCat(copy.report().chain_epoch(), " of ", server.chain_epoch())
                           : absl::StrCat("- of ", server.chain_epoch()),
                      LagText(server, place)});
    }
  }
  return rows.size() == 1 ? "" : absl::StrCat("\n", TextTable(rows));
}

Json CopiesJson(const ShardServer& server) {
  Json copies = Json::array();
  for (int place = 0; place < server.copies_size(); ++place) {
    const CopyStatus& copy = server.copies(place);
    const CopyReport& report = copy.report();
    const auto lag = LagOf(copy, server.copies(0));
    const bool told = copy.has_report();
    const auto number = [told](uint64_t n) { return told ? Json(n) : Json(nullptr); };
    const CopyReport& before = server.copies(std::max(0, place - 1)).report();
    copies.push_back(
        Json{{"server", copy.server()},
             {"zone", copy.zone().empty() ? Json(nullptr) : Json(copy.zone())},
             {"role", RoleText(copy)},
             {"alive", copy.alive()},
             {"chainEpoch", number(report.chain_epoch())},
             {"lagSteps", lag ? Json(*lag) : Json(nullptr)},
             {"lagBytes", place == 0 ? Json(0) : Json(before.lag_bytes())},
             {"imageBytesSent", place == 0 ? Json(0) : Json(before.image_bytes_sent())},
             {"imageBytes", place == 0 ? Json(0) : Json(before.image_bytes())},
             {"waitsSinceUnixMs", number(report.waits_since_unix_ms())}});
  }
  return copies;
}

}  // namespace strata
