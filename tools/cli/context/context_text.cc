#include "tools/cli/context/context_text.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "tools/cli/base/days_left.h"
#include "tools/cli/base/text_table.h"

namespace strata {
namespace {

using Json = nlohmann::ordered_json;

std::string OneLine(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json AsJson(const ShownContext& shown, absl::Time now) {
  const Context& context = shown.context;
  Json json{{"name", context.name},
            {"current", shown.current},
            {"scheduler", context.scheduler},
            {"insecure", context.certs.empty()}};
  if (!context.certs.empty()) json["certs"] = context.certs;
  if (!context.folder.empty()) json["folder"] = context.folder;
  if (shown.facts.has_value()) {
    json["subject"] = shown.facts->subject;
    json["serial"] = shown.facts->serial;
    json["expires"] = TimeText(shown.facts->valid.until);
    json["daysLeft"] = DaysLeft(shown.facts->valid.until, now);
  }
  if (!shown.problem.ok()) json["problem"] = std::string(shown.problem.message());
  return json;
}

}  // namespace

std::string ContextsTable(const std::vector<ShownContext>& contexts, absl::Time now) {
  std::vector<TextRow> rows = {{"CURRENT", "NAME", "SCHEDULER", "DAYS LEFT", "SUBJECT", "CERTS"}};
  for (const ShownContext& shown : contexts) {
    const Context& c = shown.context;
    std::string days = "-", subject = "insecure";
    if (!c.certs.empty()) subject = "unusable";
    if (shown.facts.has_value()) {
      days = absl::StrCat(DaysLeft(shown.facts->valid.until, now));
      subject = shown.facts->subject;
    }
    rows.push_back({shown.current ? "*" : "", c.name, c.scheduler, days, subject,
                    c.certs.empty() ? "-" : c.certs});
  }
  return TextTable(rows);
}

std::string ContextsJson(const std::vector<ShownContext>& contexts, absl::Time now) {
  Json json{{"current", nullptr}, {"contexts", Json::array()}};
  for (const ShownContext& shown : contexts) {
    if (shown.current) json["current"] = shown.context.name;
    json["contexts"].push_back(AsJson(shown, now));
  }
  return OneLine(json);
}

std::string ContextJson(const ShownContext& context, absl::Time now) {
  return OneLine(AsJson(context, now));
}

}  // namespace strata
