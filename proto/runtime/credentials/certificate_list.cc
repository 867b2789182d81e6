#include "proto/runtime/credentials/certificate_list.h"

#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "proto/core/mutation.h"
#include "proto/runtime/credentials/certificate.h"
#include "proto/runtime/credentials/certs_command.h"
#include "proto/runtime/credentials/checked_lines.h"
#include "proto/runtime/credentials/folder_lock.h"
#include "proto/runtime/credentials/issued_certificates.h"
#include "proto/runtime/credentials/places.h"
#include "proto/runtime/credentials/revocations.h"
#include "proto/runtime/credentials/role_folders.h"

namespace strata {
namespace {

// The certificate that a name in a folder of a role stands for, which must be what it says, and
// this authority's.
absl::StatusOr<IdentityCertificate> ReadNamed(const std::string& folder,
                                              const AuthorityCertificate& authority, Role role,
                                              const std::string& name, FileSystem& files) {
  const Identity expected{authority.cluster, role, name};
  const std::string whose = WhoseIn(folder, role, name);
  auto read = ReadIdentityCertificate(CurrentFolder(folder, role, name), files, whose);
  if (!read.ok()) return read;
  const auto unfit = [&](absl::string_view why, absl::string_view remedy) {
    return absl::FailedPreconditionError(absl::StrCat(
        read->file, ": certificate of ", Describe(read->facts), ": ", why, "; ", remedy));
  };
  if (read->identity != expected) {
    return unfit(
        absl::StrCat("it is for ", Describe(read->identity), " of cluster ",
                     read->identity.cluster.text(), ", and lies where ", Describe(expected),
                     " of cluster ", expected.cluster.text(), " should"),
        absl::StrCat("move ", IdentityFolder(folder, role, name),
                     " away and issue one: strata certs issue ", whose));
  }
  if (absl::Status s = CheckSignedBy(read->pem, authority.pem); !s.ok()) {
    return unfit(absl::StrCat(s.message(), " than ", authority.file),
                 absl::StrCat("renew it: strata certs renew ", whose));
  }
  return read;
}

// The serial number as CertificateFacts has it, of one that people and programs write: upper case,
// with colons, without the zeros that it begins with. Nothing: it is none.
std::optional<std::string> NormalSerial(absl::string_view text) {
  const std::string digits = absl::AsciiStrToLower(absl::StrReplaceAll(text, {{":", ""}}));
  absl::string_view rest = digits;
  while (absl::ConsumePrefix(&rest, "0")) {
  }
  constexpr size_t kDigits = 32;
  const size_t zeros = rest.size() < kDigits ? kDigits - rest.size() : 0;
  const std::string serial = absl::StrCat(std::string(zeros, '0'), rest);
  if (rest.empty() || !IsSerial(serial)) return std::nullopt;
  return serial;
}

using Issued = std::map<std::string, IssuedCertificates::Entry>;

// All that is known to be issued to the identity: those on the list, and those whose files are
// there, in case that the list is an older copy.
absl::StatusOr<Issued> IssuedTo(const std::string& folder, const std::string& home,
                                const std::string& who, absl::Time last, FileSystem& files) {
  const auto issued = ReadIssued(folder, files);
  if (!issued.ok()) return issued.status();
  Issued found;
  for (const auto& [serial, entry] : issued->all()) {
    if (entry.who == who && !STRATA_MUTATION("certs.renewed_twice_is_forgotten")) {
      found.emplace(serial, entry);
    }
  }
  const auto names = NamesIn(home, files);
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    if (!IsSerial(name)) continue;
    const auto read = ReadIdentityCertificate(absl::StrCat(home, "/", name), files);
    // The folder of one that cannot be read has its number as well.
    found.emplace(read.ok() ? read->facts.serial : name,
                  IssuedCertificates::Entry{who, read.ok() ? read->facts.valid.until : last});
  }
  return found;
}

// The one of that number, on the list or not; INVALID_ARGUMENT: it is no number, or another's.
absl::StatusOr<Issued> IssuedAs(const std::string& folder, const std::string& serial,
                                const std::string& who, absl::Time last, FileSystem& files) {
  const auto issued = ReadIssued(folder, files);
  if (!issued.ok()) return issued.status();
  const std::optional<std::string> number = NormalSerial(serial);
  const auto on_list = number.has_value() ? issued->all().find(*number) : issued->all().end();
  if (on_list != issued->all().end()) {
    if (on_list->second.who == who) return Issued{*on_list};
    return absl::InvalidArgumentError(absl::StrCat("serial number ", *number, " is that of ",
                                                   on_list->second.who, ", not of ", who,
                                                   "; name that one"));
  }
  // Whole, or it is likely to be a slip.
  constexpr size_t kDigits = 32;
  if (number.has_value() && absl::StrReplaceAll(serial, {{":", ""}}).size() >= kDigits) {
    return Issued{{*number, {who, last}}};
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", absl::CHexEscape(serial),
                   "' is no serial number of ours; name 32 hexadecimal digits, as they are "
                   "printed by: strata certs show",
                   InFolder(folder)));
}

}  // namespace

absl::StatusOr<CertificateList> ListCertificates(const std::string& folder, FileSystem& files) {
  auto authority = ReadAuthority(folder, files);
  if (!authority.ok()) return authority.status();
  const auto revocations = ReadRevocations(folder, files);
  if (!revocations.ok()) return revocations.status();
  CertificateList list;
  if (const auto issued = ReadIssued(folder, files); !issued.ok()) {
    list.problems.push_back(issued.status());
  }
  for (const Role role : kRoles) {
    const auto names = NamesIn(RoleFolder(folder, role), files);
    if (!names.ok()) {
      list.problems.push_back(names.status());
      continue;
    }
    for (const std::string& name : *names) {
      auto read = ReadNamed(folder, *authority, role, name, files);
      if (!read.ok()) {
        list.problems.push_back(read.status());
        continue;
      }
      const bool revoked = revocations->Contains(read->facts.serial);
      list.certificates.push_back({*std::move(read), revoked});
    }
  }
  list.authority = *std::move(authority);
  return list;
}

std::vector<absl::Status> Expired(const CertificateList& list, const std::string& folder,
                                  absl::Time now) {
  std::vector<absl::Status> expired;
  const AuthorityCertificate& ca = list.authority;
  if (ca.facts.valid.until <= now) {
    expired.push_back(absl::FailedPreconditionError(
        absl::StrCat(ca.file, ": CA ", Describe(ca.facts), ": it has expired and signs no more; ",
                     NewAuthorityBeside(folder, ca.cluster))));
  }
  for (const ListedCertificate& each : list.certificates) {
    const IdentityCertificate& c = each.certificate;
    if (each.revoked || c.facts.valid.until > now) continue;
    expired.push_back(absl::FailedPreconditionError(absl::StrCat(
        c.file, ": certificate of ", Describe(c.facts), ": it has expired; renew it: strata certs ",
        "renew ", WhoseIn(folder, c.identity.role, c.identity.name))));
  }
  return expired;
}

absl::StatusOr<RevokedNow> RevokeCertificates(const std::string& folder, Role role,
                                              const std::string& name, const std::string& serial,
                                              absl::Time now, FileSystem& files) {
  if (absl::Status s = CheckIdentityName(name); !s.ok()) return s;
  const FolderLock lock(folder, files);
  if (!lock.status().ok()) return lock.status();
  const auto authority = ReadAuthority(folder, files);
  if (!authority.ok()) return authority.status();
  auto revocations = ReadRevocations(folder, files);
  if (!revocations.ok()) return revocations.status();
  const std::string who = absl::StrCat(RoleName(role), "/", name);
  const std::string home = IdentityFolder(folder, role, name);
  const absl::Time last = authority->facts.valid.until;  // nothing that it signed lasts longer
  auto found = serial.empty() ? IssuedTo(folder, home, who, last, files)
                              : IssuedAs(folder, serial, who, last, files);
  if (!found.ok()) return found.status();
  std::erase_if(*found, [&](const auto& e) { return e.second.until + kKeptAfterExpiry <= now; });
  if (found->empty()) {
    return absl::NotFoundError(
        absl::StrCat(home, ": no certificate of ", who,
                     " is known that has not expired; look what there is: strata certs show",
                     InFolder(folder), ", or name its number (--serial)"));
  }
  revocations->DropExpired(now);
  RevokedNow result;
  for (const auto& [number, entry] : *found) {
    const bool added = revocations->Add(number, {who, now, entry.until});
    (added ? result.serials : result.revoked_earlier).push_back(number);
  }
  if (result.serials.empty()) return result;
  if (absl::Status s = WriteRevocations(folder, *revocations, files); !s.ok()) return s;
  return result;
}

}  // namespace strata
