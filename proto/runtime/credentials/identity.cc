#include "proto/runtime/credentials/identity.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace strata {
namespace {

constexpr char kPrefix[] = "spiffe://strata/";
constexpr size_t kShownBytes = 60;

// What others wrote, fit for a line: without control characters, and not endless.
std::string Shown(absl::string_view text) {
  const bool whole = text.size() <= kShownBytes;
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, kShownBytes)), whole ? "'" : "...'");
}

absl::Status BadUri(absl::string_view uri, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("its name ", Shown(uri), " is not ", kPrefix, "CLUSTER/ROLE/NAME: ", why));
}

absl::StatusOr<ClusterId> ParseCluster(absl::string_view text, absl::string_view uri) {
  const std::optional<ClusterId> cluster = ClusterId::Parse(text);
  if (cluster.has_value()) return *cluster;
  return BadUri(uri, absl::StrCat(Shown(text), " is no cluster id (32 hexadecimal digits)"));
}

}  // namespace

const char* RoleName(Role role) {
  switch (role) {
    case Role::kScheduler:
      return "scheduler";
    case Role::kServer:
      return "server";
    case Role::kWorker:
      return "worker";
    case Role::kOperator:
      return "operator";
    case Role::kReader:
      return "reader";
  }
  return "unknown";
}

std::optional<Role> ParseRole(absl::string_view text) {
  for (const Role role : kRoles) {
    if (text == RoleName(role)) return role;
  }
  return std::nullopt;
}

std::string RoleNames() {
  return absl::StrJoin(kRoles, ", ", [](std::string* out, Role r) { out->append(RoleName(r)); });
}

std::string Describe(const Identity& identity) {
  return absl::StrCat(RoleName(identity.role), "/", identity.name);
}

absl::Status CheckIdentityName(absl::string_view name) {
  constexpr char kRule[] =
      "; a name has letters, digits, '.', '_' and '-', and begins with a letter or a digit";
  if (name.empty()) return absl::InvalidArgumentError(absl::StrCat("the name is empty", kRule));
  if (name.size() > kMaxIdentityNameBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the name ", Shown(name), " has ", name.size(),
                                                   " bytes; at most ", kMaxIdentityNameBytes,
                                                   " are allowed"));
  }
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool plain = absl::ascii_isalnum(static_cast<unsigned char>(c));
    if (plain || (i > 0 && (c == '.' || c == '_' || c == '-'))) continue;
    return absl::InvalidArgumentError(absl::StrCat("the name ", Shown(name), " has ",
                                                   Shown(absl::string_view(&c, 1)), " at byte ",
                                                   i + 1, kRule));
  }
  return absl::OkStatus();
}

std::string IdentityUri(const Identity& identity) {
  return absl::StrCat(AuthorityUri(identity.cluster), "/", Describe(identity));
}

absl::StatusOr<Identity> ParseIdentityUri(absl::string_view uri) {
  absl::string_view rest = uri;
  if (!absl::ConsumePrefix(&rest, kPrefix)) return BadUri(uri, "it begins otherwise");
  const std::vector<absl::string_view> parts = absl::StrSplit(rest, '/');
  if (parts.size() != 3) {
    return BadUri(uri, absl::StrCat("it has ", parts.size(), " parts, not 3"));
  }
  const absl::StatusOr<ClusterId> cluster = ParseCluster(parts[0], uri);
  if (!cluster.ok()) return cluster.status();
  const std::optional<Role> role = ParseRole(parts[1]);
  if (!role.has_value()) {
    return BadUri(uri, absl::StrCat(Shown(parts[1]), " is no role (", RoleNames(), ")"));
  }
  if (const absl::Status s = CheckIdentityName(parts[2]); !s.ok()) return BadUri(uri, s.message());
  return Identity{*cluster, *role, std::string(parts[2])};
}

bool Listens(Role role) { return role != Role::kOperator && role != Role::kReader; }

std::string RoleHost(const ClusterId& cluster, Role role) {
  return absl::StrCat(RoleName(role), ".", cluster.text(), ".strata");
}

std::string AuthorityUri(const ClusterId& cluster) { return absl::StrCat(kPrefix, cluster.text()); }

absl::StatusOr<ClusterId> ParseAuthorityUri(absl::string_view uri) {
  absl::string_view rest = uri;
  if (absl::ConsumePrefix(&rest, kPrefix)) {
    if (const auto cluster = ClusterId::Parse(rest)) return *cluster;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("its name ", Shown(uri), " is not ", kPrefix, "CLUSTER"));
}

}  // namespace strata
