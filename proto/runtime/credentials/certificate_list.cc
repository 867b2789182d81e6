#include "proto/runtime/credentials/certificate_list.h"

#include "absl/strings/str_cat.h"
#include "proto/runtime/credentials/folder_lock.h"
#include "proto/runtime/credentials/places.h"
#include "proto/runtime/credentials/revocations.h"
#include "proto/runtime/files/folders.h"

namespace strata {
namespace {

// The names in a folder; none where it is missing.
absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& folder, FileSystem& files) {
  auto names = ListFolder(folder, files);
  if (absl::IsNotFound(names.status())) return std::vector<std::string>();
  return names;
}

// The certificate that a name in a folder of a role stands for, which must be what it says.
absl::StatusOr<IdentityCertificate> ReadNamed(const std::string& folder, const Identity& expected,
                                              FileSystem& files) {
  const std::string current = CurrentFolder(folder, expected.role, expected.name);
  auto read = ReadIdentityCertificate(current, files);
  if (!read.ok() || read->identity == expected) return read;
  return absl::FailedPreconditionError(
      absl::StrCat(read->file, ": certificate of ", Describe(read->facts), ": it is for ",
                   Describe(read->identity), " of cluster ", read->identity.cluster.text(),
                   ", and lies where ", Describe(expected), " of cluster ", expected.cluster.text(),
                   " should; move it away and issue one"));
}

// Serial numbers of the certificates of an identity whose files are there.
absl::StatusOr<std::vector<std::string>> SerialsOf(const std::string& home, FileSystem& files) {
  const auto names = NamesIn(home, files);
  if (!names.ok()) return names.status();
  std::vector<std::string> serials;
  for (const std::string& name : *names) {
    if (!IsSerial(name)) continue;
    const auto read = ReadIdentityCertificate(absl::StrCat(home, "/", name), files);
    // The folder of one that cannot be read has its number as well.
    serials.push_back(read.ok() ? read->facts.serial : name);
  }
  return serials;
}

}  // namespace

absl::StatusOr<CertificateList> ListCertificates(const std::string& folder, FileSystem& files) {
  auto authority = ReadAuthority(folder, files);
  if (!authority.ok()) return authority.status();
  const auto revocations = ReadRevocations(folder, files);
  if (!revocations.ok()) return revocations.status();
  CertificateList list;
  for (const Role role : kRoles) {
    const auto names = NamesIn(RoleFolder(folder, role), files);
    if (!names.ok()) {
      list.problems.push_back(names.status());
      continue;
    }
    for (const std::string& name : *names) {
      auto read = ReadNamed(folder, {authority->cluster, role, name}, files);
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

absl::StatusOr<RevokedNow> RevokeCertificates(const std::string& folder, Role role,
                                              const std::string& name, const std::string& serial,
                                              absl::Time now, FileSystem& files) {
  if (absl::Status s = CheckIdentityName(name); !s.ok()) return s;
  if (!serial.empty() && !IsSerial(serial)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", serial,
                     "' is no serial number; name 32 hexadecimal digits, lower case, "
                     "as `strata certs show` prints them"));
  }
  const FolderLock lock(folder, files);
  if (!lock.status().ok()) return lock.status();
  if (const auto authority = ReadAuthority(folder, files); !authority.ok()) {
    return authority.status();
  }
  auto revocations = ReadRevocations(folder, files);
  if (!revocations.ok()) return revocations.status();
  std::vector<std::string> serials = {serial};
  if (serial.empty()) {
    auto found = SerialsOf(IdentityFolder(folder, role, name), files);
    if (!found.ok()) return found.status();
    if (found->empty()) {
      return absl::NotFoundError(absl::StrCat(
          IdentityFolder(folder, role, name), ": no certificate of ", RoleName(role), "/", name,
          " is there; name its number (--serial), or look what there is: strata certs show"));
    }
    serials = *std::move(found);
  }
  RevokedNow result;
  for (const std::string& each : serials) {
    const bool added = revocations->Add(each, {absl::StrCat(RoleName(role), "/", name), now});
    (added ? result.serials : result.revoked_earlier).push_back(each);
  }
  if (result.serials.empty()) return result;
  if (absl::Status s = WriteRevocations(folder, *revocations, files); !s.ok()) return s;
  return result;
}

}  // namespace strata
