#include "tools/cli/certs/commands.h"

#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/runtime/base/clock.h"
#include "proto/runtime/base/id_source.h"
#include "proto/runtime/credentials/authority_files.h"
#include "proto/runtime/credentials/authority_rollover.h"
#include "proto/runtime/credentials/certificate.h"
#include "proto/runtime/credentials/certificate_list.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/identity_files.h"
#include "proto/runtime/files/file_system.h"
#include "tools/cli/certs/certs_text.h"

namespace strata {
namespace {

void PrintLine(const std::string& line) { std::printf("%s\n", line.c_str()); }

// Arguments are checked against the roles as they are read.
absl::StatusOr<Role> RoleOf(const std::string& text) {
  if (const std::optional<Role> role = ParseRole(text)) return *role;
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is no role; name one of ", RoleNames()));
}

using MakeOne = absl::StatusOr<IdentityCertificate> (*)(const std::string& folder,
                                                        const IssueOrder& order, absl::Time now,
                                                        FileSystem& files);

ExitCode RunOrder(const CertsOrder& typed, const char* done, MakeOne make) {
  const auto role = RoleOf(typed.role);
  if (!role.ok()) return ReportError(role.status());
  const absl::Time now = Clock::Real()->Now();
  const auto made = make(typed.dir, {.role = *role, .name = typed.name, .days = typed.days}, now,
                         FileSystem::Kernel());
  if (!made.ok()) return ReportError(made.status());
  if (typed.json) {
    PrintLine(CertificateJson(*made, now));
  } else {
    PrintLine(absl::StrCat(done, " ", Describe(made->identity), ": ", made->file, "\n  ",
                           Describe(made->facts), ", serial number ", made->facts.serial));
  }
  return kExitOk;
}

}  // namespace

ExitCode RunCertsInit(const CertsInitOptions& options) {
  ClusterId cluster = DrawId<ClusterId>(*IdSource::System());
  if (!options.cluster.empty()) {
    const auto given = ClusterId::Parse(options.cluster);
    if (!given.has_value()) {
      return ReportError(absl::InvalidArgumentError(
          absl::StrCat("--cluster: '", options.cluster,
                       "' is no cluster id; give 32 hexadecimal digits, lower case")));
    }
    cluster = *given;
  }
  const absl::Time now = Clock::Real()->Now();
  const auto made = InitAuthority(options.dir, cluster, options.days, now);
  if (!made.ok()) return ReportError(made.status());
  if (options.json) {
    PrintLine(AuthorityJson(*made, now));
  } else {
    PrintLine(absl::StrCat("made the CA of cluster ", made->cluster.text(), ": ", made->file,
                           "\n  ", Describe(made->facts)));
  }
  return kExitOk;
}

ExitCode RunCertsIssue(const CertsIssueOptions& options) {
  return RunOrder(options.order, "issued", &IssueIdentity);
}

ExitCode RunCertsRenew(const CertsRenewOptions& options) {
  const CertsOrder& order = options.order;
  if (options.all != order.role.empty() || options.all != order.name.empty()) {
    return ReportError(absl::InvalidArgumentError(
        "renew wants a role and a name, as in: strata certs renew server alpha; or --all alone"));
  }
  if (!options.all) return RunOrder(order, "renewed", &RenewIdentity);
  const absl::Time now = Clock::Real()->Now();
  const auto all = RenewAll(order.dir, order.days, now);
  if (!all.ok()) return ReportError(all.status());
  if (order.json) {
    PrintLine(RenewedJson(*all, now));
    return kExitOk;
  }
  for (const IdentityCertificate& each : all->renewed) {
    PrintLine(absl::StrCat("renewed ", Describe(each.identity), ": ", each.file));
  }
  for (const std::string& who : all->left) PrintLine(absl::StrCat("stays revoked: ", who));
  return kExitOk;
}

ExitCode RunCertsRollover(const CertsRolloverOptions& options) {
  const absl::Time now = Clock::Real()->Now();
  const auto authority = options.step == "begin"    ? BeginRollover(options.dir, options.days, now)
                         : options.step == "switch" ? SwitchAuthority(options.dir, now)
                                                    : EndRollover(options.dir, now);
  if (!authority.ok()) return ReportError(authority.status());
  if (options.json) {
    PrintLine(AuthorityJson(*authority, now));
  } else {
    std::fputs(RolloverText(*authority, options.dir, options.step).c_str(), stdout);
  }
  return kExitOk;
}

ExitCode RunCertsRevoke(const CertsRevokeOptions& options) {
  const auto role = RoleOf(options.role);
  if (!role.ok()) return ReportError(role.status());
  const auto revoked =
      RevokeCertificates(options.dir, *role, options.name, options.serial, Clock::Real()->Now());
  if (!revoked.ok()) return ReportError(revoked.status());
  if (options.json) {
    PrintLine(RevokedJson(*role, options.name, *revoked));
    return kExitOk;
  }
  for (const std::string& serial : revoked->serials) {
    PrintLine(
        absl::StrCat("revoked ", options.role, "/", options.name, ": serial number ", serial));
  }
  for (const std::string& serial : revoked->revoked_earlier) {
    PrintLine(absl::StrCat("was revoked already: serial number ", serial));
  }
  return kExitOk;
}

ExitCode RunCertsShow(const CertsShowOptions& options) {
  const absl::Time now = Clock::Real()->Now();
  auto list = ListCertificates(options.dir);
  if (!list.ok()) return ReportError(list.status());
  for (absl::Status& each : Expired(*list, options.dir, now)) {
    list->problems.push_back(std::move(each));
  }
  if (options.json) {
    PrintLine(CertificatesJson(*list, now));
  } else {
    std::fputs(CertificatesTable(*list, now).c_str(), stdout);
  }
  for (const absl::Status& problem : list->problems) ReportError(problem);
  return list->problems.empty() ? kExitOk : kExitFailed;
}

}  // namespace strata
