#include "tools/cli/certs/certs_text.h"

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/runtime/credentials/certificate.h"
#include "proto/runtime/credentials/certs_command.h"
#include "tools/cli/base/days_left.h"
#include "tools/cli/base/text_table.h"

namespace strata {
namespace {

using Json = nlohmann::ordered_json;

std::string OneLine(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void AddFacts(const CertificateFacts& facts, const std::string& file, absl::Time now, Json& json) {
  json["subject"] = facts.subject;
  json["serial"] = facts.serial;
  json["expires"] = TimeText(facts.valid.until);
  json["daysLeft"] = DaysLeft(facts.valid.until, now);
  json["file"] = file;
}

Json AsJson(const AuthorityCertificate& authority, absl::Time now) {
  Json json = Json::object();
  json["clusterId"] = authority.cluster.text();
  AddFacts(authority.facts, authority.file, now, json);
  json["alsoTrusted"] = Json::array();
  for (size_t i = 1; i < authority.trusted.size(); ++i) {
    Json other = Json::object();
    AddFacts(authority.trusted[i].facts, authority.file, now, other);
    json["alsoTrusted"].push_back(std::move(other));
  }
  return json;
}

Json AsJson(const IdentityCertificate& certificate, absl::Time now) {
  Json json{{"role", RoleName(certificate.identity.role)}, {"name", certificate.identity.name}};
  AddFacts(certificate.facts, certificate.file, now, json);
  return json;
}

std::string DaysText(absl::Time until, absl::Time now) {
  const int64_t days = DaysLeft(until, now);
  return days == 0 ? "expired" : absl::StrCat(days);
}

}  // namespace

std::string CertificatesTable(const CertificateList& list, absl::Time now) {
  std::vector<TextRow> rows = {
      {"ROLE", "NAME", "DAYS LEFT", "REVOKED", "SERIAL", "SUBJECT", "FILE"}};
  const AuthorityCertificate& ca = list.authority;
  rows.push_back({"ca", ca.cluster.text(), DaysText(ca.facts.valid.until, now), "no",
                  ca.facts.serial, ca.facts.subject, ca.file});
  for (size_t i = 1; i < ca.trusted.size(); ++i) {
    const CertificateFacts& facts = ca.trusted[i].facts;
    rows.push_back({"ca (trusted)", ca.cluster.text(), DaysText(facts.valid.until, now), "no",
                    facts.serial, facts.subject, ca.file});
  }
  for (const ListedCertificate& each : list.certificates) {
    const IdentityCertificate& c = each.certificate;
    rows.push_back({RoleName(c.identity.role), c.identity.name, DaysText(c.facts.valid.until, now),
                    each.revoked ? "yes" : "no", c.facts.serial, c.facts.subject, c.file});
  }
  return TextTable(rows);
}

std::string CertificatesJson(const CertificateList& list, absl::Time now) {
  Json json{{"authority", AsJson(list.authority, now)},
            {"certificates", Json::array()},
            {"problems", Json::array()}};
  for (const ListedCertificate& each : list.certificates) {
    Json one = AsJson(each.certificate, now);
    one["revoked"] = each.revoked;
    json["certificates"].push_back(std::move(one));
  }
  for (const absl::Status& problem : list.problems) {
    json["problems"].push_back(std::string(problem.message()));
  }
  return OneLine(json);
}

std::string AuthorityJson(const AuthorityCertificate& authority, absl::Time now) {
  return OneLine(AsJson(authority, now));
}

std::string CertificateJson(const IdentityCertificate& certificate, absl::Time now) {
  return OneLine(AsJson(certificate, now));
}

std::string RevokedJson(Role role, const std::string& name, const RevokedNow& revoked) {
  return OneLine(Json{{"role", RoleName(role)},
                      {"name", name},
                      {"revoked", revoked.serials},
                      {"revokedEarlier", revoked.revoked_earlier}});
}

std::string RenewedJson(const RenewedAll& all, absl::Time now) {
  Json json{{"renewed", Json::array()}, {"revoked", all.left}};
  for (const IdentityCertificate& each : all.renewed) json["renewed"].push_back(AsJson(each, now));
  return OneLine(json);
}

std::string RolloverText(const AuthorityCertificate& authority, const std::string& folder,
                         const std::string& step) {
  std::string text;
  for (const TrustedAuthority& each : authority.trusted) {
    const bool signs = &each == &authority.trusted[0];
    absl::StrAppend(&text, signs ? "signs: " : "is trusted, too: ", Describe(each.facts),
                    ", serial number ", each.facts.serial, "\n");
  }
  absl::StrAppend(
      &text, "Now renew all, and bring them to their machines: ", RenewAllCommand(folder), "\n");
  const std::string next = step == "begin" ? "switch" : step == "switch" ? "end" : "";
  if (next.empty()) return text;
  absl::StrAppend(&text, "A minute later, when every process has read its new one: ",
                  "strata certs rollover ", next, InFolder(folder), "\n");
  return text;
}

}  // namespace strata
