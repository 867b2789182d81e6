#include "proto/runtime/credentials/identity_files.h"

#include <cerrno>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"
#include "proto/runtime/credentials/authority_files.h"
#include "proto/runtime/credentials/certs_command.h"
#include "proto/runtime/credentials/folder_lock.h"
#include "proto/runtime/credentials/places.h"
#include "proto/runtime/files/folders.h"
#include "proto/runtime/files/plain_file.h"
#include "proto/runtime/files/private_files.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr char kIssue[] = "issue one: strata certs issue ";
constexpr char kRenew[] = "renew it: strata certs renew ";
constexpr char kWhereItsAuthorityIs[] = ", where its CA is";

absl::Status Unfit(const std::string& file, absl::string_view why, absl::string_view remedy) {
  return absl::FailedPreconditionError(absl::StrCat(file, ": ", why, "; ", remedy));
}

absl::Status Damaged(const std::string& file, absl::string_view why, absl::string_view whose) {
  return absl::DataLossError(absl::StrCat(file, ": ", why, "; ", kRenew, whose));
}

// "server alpha, where its CA is".
std::string Whose(const Identity& identity) {
  return absl::StrCat(RoleName(identity.role), " ", identity.name, kWhereItsAuthorityIs);
}

// Where a link leads, and the link there, and so on; a folder itself. Each is read once, so that
// what is read there is of one folder, wherever links lead later.
absl::StatusOr<std::string> Followed(const std::string& folder, FileSystem& files) {
  constexpr int kLinks = 40;  // as many as the kernel follows
  if (STRATA_MUTATION("certs.link_read_for_each_file")) return folder;
  std::string at = BareFolder(folder);
  for (int i = 0; i < kLinks; ++i) {
    std::string target;
    const int read = files.ReadLink(at, target);
    // Gone: it is two renewals old, and the reader looks again where the first link leads.
    if (read == -EINVAL || (read == -ENOENT && i > 0)) return at;
    if (read < 0) return PlainFileError(-read, "follow", at);
    at = BareFolder((fs::path(at).parent_path() / target).string());
  }
  return PlainFileError(ELOOP, "follow", folder);
}

absl::StatusOr<Credentials> LoadFrom(const std::string& folder, FileSystem& files) {
  auto certificate = ReadIdentityCertificate(folder, files);
  if (!certificate.ok()) return certificate.status();
  const std::string key_file = absl::StrCat(folder, "/", kKeyFile);
  if (absl::Status s = CheckPrivate(key_file, files); !s.ok()) return s;
  auto key = ReadPlainFile(key_file, kMaxCredentialBytes, files);
  if (!key.ok()) return key.status();
  if (absl::Status s = CheckKeyBelongs(certificate->pem, *key); !s.ok()) {
    return Damaged(key_file, absl::StrCat(s.message(), " (", Describe(certificate->facts), ")"),
                   Whose(certificate->identity));
  }
  const std::string authority_file = absl::StrCat(folder, "/", kAuthorityCertificateFile);
  auto authorities = ReadPlainFile(authority_file, kMaxCredentialBytes, files);
  if (!authorities.ok()) return authorities.status();
  if (const auto read = ReadCertificate(*authorities); !read.ok()) {
    return Damaged(authority_file, read.status().message(), Whose(certificate->identity));
  }
  if (absl::Status s = CheckSignedBy(certificate->pem, *authorities); !s.ok()) {
    return Unfit(certificate->file,
                 absl::StrCat("certificate of ", Describe(certificate->facts), ": ", s.message(),
                              " than that of ", authority_file),
                 absl::StrCat(kRenew, Whose(certificate->identity)));
  }
  KeyedCertificate keyed{certificate->pem, *std::move(key)};
  return Credentials{*std::move(certificate), std::move(keyed), *std::move(authorities)};
}

// The files of one certificate in a folder of their own, on the device.
absl::Status WriteIdentity(const std::string& folder, const KeyedCertificate& made,
                           const std::string& authorities, FileSystem& files) {
  absl::Status s = MakePrivateFolder(folder, files);
  if (s.ok()) s = WritePrivateFile(absl::StrCat(folder, "/", kKeyFile), made.key, files);
  if (s.ok()) {
    s = WritePlainFile(absl::StrCat(folder, "/", kCertificateFile), made.certificate, files);
  }
  if (s.ok()) {
    s = WritePlainFile(absl::StrCat(folder, "/", kAuthorityCertificateFile), authorities, files);
  }
  return s.ok() ? SyncPlainFolder(folder, files) : s;
}

// The name of the folder that `current` leads to, however the link spells it; empty: nothing has
// that name.
absl::StatusOr<std::string> CurrentName(const std::string& current, FileSystem& files) {
  std::string target;
  const int read = files.ReadLink(current, target);
  if (read == -ENOENT || read == -ENOTDIR) return "";
  if (read == -EINVAL) {
    return Unfit(current, "it is no link, and so none of `strata certs`",
                 "move it away, or name another folder by --dir");
  }
  if (read < 0) return PlainFileError(-read, "follow", current);
  return fs::path(BareFolder(target)).filename().string();
}

// All but these two and the link.
absl::Status RemoveOthers(const std::string& home, const std::string& newest,
                          const std::string& before, FileSystem& files) {
  const auto names = ListFolder(home, files);
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    if (name == newest || name == before || name == "current") continue;
    if (absl::Status s = RemoveTree(absl::StrCat(home, "/", name), files); !s.ok()) return s;
  }
  return absl::OkStatus();
}

struct Making {
  const std::string& folder;
  const IssueOrder& order;
  const AuthorityCertificate& authority;
  std::string before;  // the folder that `current` leads to
  absl::Time now;
};

// Step 4: from then on it can be revoked.
absl::Status Record(const Making& making, const CertificateFacts& facts, FileSystem& files) {
  auto issued = ReadIssued(making.folder, files);
  if (!issued.ok()) return issued.status();
  issued->DropExpired(making.now);
  const std::string who = absl::StrCat(RoleName(making.order.role), "/", making.order.name);
  issued->Add(facts.serial, {who, facts.valid.until});
  return WriteIssued(making.folder, *issued, files);
}

// Steps 4 to 7.
absl::StatusOr<IdentityCertificate> MakeCurrent(const Making& making,
                                                const KeyedCertificate& signing,
                                                const Validity& valid, FileSystem& files) {
  const Identity identity{making.authority.cluster, making.order.role, making.order.name};
  const auto made = IssueCertificate(signing, identity, valid);
  if (!made.ok()) return made.status();
  const auto facts = ReadCertificate(made->certificate);
  if (!facts.ok()) return facts.status();
  const std::string home = IdentityFolder(making.folder, making.order.role, making.order.name);
  const std::string current = CurrentFolder(making.folder, making.order.role, making.order.name);
  absl::Status s = Record(making, *facts, files);
  if (s.ok()) s = MakePrivateFolder(RoleFolder(making.folder, making.order.role), files);
  if (s.ok()) s = MakePrivateFolder(home, files);
  if (!s.ok()) return s;
  const std::string newest = absl::StrCat(home, "/", facts->serial);
  s = WriteIdentity(newest, *made, making.authority.pem, files);
  if (!s.ok()) {
    RemoveTree(newest, files).IgnoreError();
    return s;
  }
  s = ReplaceLink(facts->serial, current, files);
  if (!s.ok()) {
    // Where the link leads there all the same, the folder stays.
    const auto led = CurrentName(current, files);
    if (led.ok() && *led != facts->serial) RemoveTree(newest, files).IgnoreError();
    return s;
  }
  // A failure leaves what the next renewal removes.
  RemoveOthers(home, facts->serial, making.before, files).IgnoreError();
  return IdentityCertificate{absl::StrCat(current, "/", kCertificateFile), made->certificate,
                             *facts, identity};
}

absl::Status CheckNone(const Making& making, FileSystem& files) {
  if (making.before.empty()) return absl::OkStatus();
  const std::string current = CurrentFolder(making.folder, making.order.role, making.order.name);
  const auto old = ReadIdentityCertificate(current, files);
  return absl::AlreadyExistsError(absl::StrCat(
      current, ": ", RoleName(making.order.role), "/", making.order.name,
      " has a certificate already", old.ok() ? absl::StrCat(" (", Describe(old->facts), ")") : "",
      "; ", kRenew, WhoseIn(making.folder, making.order.role, making.order.name)));
}

absl::Status CheckOne(const Making& making, FileSystem& files) {
  const std::string current = CurrentFolder(making.folder, making.order.role, making.order.name);
  if (making.before.empty()) {
    return absl::NotFoundError(absl::StrCat(
        current, ": ", RoleName(making.order.role), "/", making.order.name, " has no certificate; ",
        kIssue, WhoseIn(making.folder, making.order.role, making.order.name)));
  }
  const auto old = ReadIdentityCertificate(current, files);
  // One that cannot be read is what a new one mends.
  if (!old.ok() || old->identity.cluster == making.authority.cluster) return absl::OkStatus();
  return Unfit(old->file,
               absl::StrCat("certificate of ", Describe(old->facts), ": it is of cluster ",
                            old->identity.cluster.text(), ", and the CA here is of ",
                            making.authority.cluster.text()),
               absl::StrCat("renew it where its CA is, or move ",
                            IdentityFolder(making.folder, making.order.role, making.order.name),
                            " away and ", kIssue,
                            WhoseIn(making.folder, making.order.role, making.order.name)));
}

using CheckBefore = absl::Status (*)(const Making& making, FileSystem& files);

absl::StatusOr<IdentityCertificate> MakeIdentity(const std::string& folder, const IssueOrder& order,
                                                 absl::Time now, CheckBefore check,
                                                 FileSystem& files) {
  if (absl::Status s = CheckIdentityName(order.name); !s.ok()) return s;
  const auto valid = ValidForDays(now, order.days);
  if (!valid.ok()) return valid.status();
  const FolderLock lock(folder, files);
  if (!lock.status().ok()) return lock.status();
  const auto authority = ReadAuthority(folder, files);
  if (!authority.ok()) return authority.status();
  const auto signing = ReadSigningAuthority(folder, *authority, now, valid->until, files);
  if (!signing.ok()) return signing.status();
  // Nothing is written there. Without it nobody knows whose certificates count no more.
  const auto revoked = ReadRevocations(folder, files);
  if (!revoked.ok()) return revoked.status();
  const auto before = CurrentName(CurrentFolder(folder, order.role, order.name), files);
  if (!before.ok()) return before.status();
  const Making making{folder, order, *authority, *before, now};
  if (absl::Status s = check(making, files); !s.ok()) return s;
  return MakeCurrent(making, *signing, *valid, files);
}

}  // namespace

absl::StatusOr<IdentityCertificate> ReadIdentityCertificate(const std::string& folder,
                                                            FileSystem& files,
                                                            const std::string& whose) {
  IdentityCertificate read;
  read.file = absl::StrCat(folder, "/", kCertificateFile);
  auto pem = ReadPlainFile(read.file, kMaxCredentialBytes, files);
  if (absl::IsNotFound(pem.status())) {
    return absl::NotFoundError(
        absl::StrCat(read.file, ": no certificate is there; ", kIssue, whose));
  }
  if (!pem.ok()) return pem.status();
  const auto facts = ReadCertificate(*pem);
  if (!facts.ok()) return Damaged(read.file, facts.status().message(), whose);
  const auto identity = IdentityOf(*facts);
  if (!identity.ok()) {
    return Damaged(
        read.file,
        absl::StrCat("certificate of ", Describe(*facts), ": ", identity.status().message()),
        whose);
  }
  read.pem = *std::move(pem);
  read.facts = *facts;
  read.identity = *identity;
  return read;
}

absl::StatusOr<Credentials> LoadCredentials(const std::string& folder, FileSystem& files) {
  constexpr int kTries = 4;  // renewals while one read goes on; each but the last leaves the files
  for (int i = 0;; ++i) {
    const auto place = Followed(folder, files);
    if (!place.ok()) return place.status();
    auto loaded = LoadFrom(*place, files);
    if (loaded.ok() || i + 1 == kTries) return loaded;
    const auto now = Followed(folder, files);
    if (!now.ok() || *now == *place) return loaded;
  }
}

absl::StatusOr<IdentityCertificate> IssueIdentity(const std::string& folder,
                                                  const IssueOrder& order, absl::Time now,
                                                  FileSystem& files) {
  return MakeIdentity(folder, order, now, CheckNone, files);
}

absl::StatusOr<IdentityCertificate> RenewIdentity(const std::string& folder,
                                                  const IssueOrder& order, absl::Time now,
                                                  FileSystem& files) {
  return MakeIdentity(folder, order, now, CheckOne, files);
}

}  // namespace strata
