#include "proto/runtime/credentials/authority_files.h"

#include <cstdint>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/core/mutation.h"
#include "proto/runtime/credentials/certs_command.h"
#include "proto/runtime/credentials/folder_lock.h"
#include "proto/runtime/credentials/openssl_objects.h"
#include "proto/runtime/credentials/places.h"
#include "proto/runtime/credentials/role_folders.h"
#include "proto/runtime/files/folders.h"
#include "proto/runtime/files/plain_file.h"
#include "proto/runtime/files/private_files.h"

namespace strata {
namespace {

constexpr absl::Duration kClocksDiffer = absl::Hours(1);
constexpr absl::Duration kDay = absl::Hours(24);

absl::Status Unfit(const std::string& file, absl::string_view why, absl::string_view remedy) {
  return absl::FailedPreconditionError(absl::StrCat(file, ": ", why, "; ", remedy));
}

absl::Status Damaged(const std::string& file, absl::string_view why) {
  return absl::DataLossError(
      absl::StrCat(file, ": ", why, "; put ca.crt and ca.key back from one copy"));
}

// `folder` and what is above it, where it is missing.
absl::Status MakePlace(const std::string& named, FileSystem& files) {
  // What is above "x/" is above "x", or x would be made open to others.
  const std::string folder = BareFolder(named);
  const std::string above = std::filesystem::path(folder).parent_path().string();
  if (!above.empty()) {
    if (absl::Status s = MakeDurableFolders(above, files); !s.ok()) return s;
  }
  return MakePrivateFolder(folder, files);
}

// A whole authority in a folder of its own, on the device.
absl::Status WriteAuthority(const std::string& folder, const KeyedCertificate& authority,
                            FileSystem& files) {
  absl::Status s = MakePrivateFolder(folder, files);
  if (s.ok()) {
    s = WritePrivateFile(absl::StrCat(folder, "/", kAuthorityKeyFile), authority.key, files);
  }
  if (s.ok()) {
    s = WritePlainFile(absl::StrCat(folder, "/", kAuthorityCertificateFile), authority.certificate,
                       files);
  }
  if (s.ok()) {
    s = WritePlainFile(absl::StrCat(folder, "/", kIssuedFile), IssuedCertificates().Text(), files);
  }
  if (s.ok()) {
    s = WritePlainFile(absl::StrCat(folder, "/", kRevokedFile), Revocations().Text(), files);
  }
  return s.ok() ? SyncPlainFolder(folder, files) : s;
}

// FAILED_PRECONDITION: somebody's certificates are there, and not their authority.
absl::Status CheckNobodyThere(const std::string& folder, FileSystem& files) {
  constexpr size_t kNamed = 3;
  auto there = IdentitiesIn(folder, files);
  if (!there.ok()) return there.status();
  if (there->empty()) return absl::OkStatus();
  const size_t all = there->size();
  if (all > kNamed) there->resize(kNamed);
  return absl::FailedPreconditionError(
      absl::StrCat(folder, " has certificates of another CA (", absl::StrJoin(*there, ", "),
                   all > kNamed ? absl::StrCat(" and ", all - kNamed, " more") : "",
                   "), which is not there; put ", AuthorityFolder(folder), " back from a copy, or ",
                   NewAuthorityBeside(folder, {})));
}

std::string ListFile(const std::string& folder, const char* name) {
  return absl::StrCat(AuthorityFolder(folder), "/", name);
}

absl::Status BadList(const std::string& folder, const char* name, absl::string_view why,
                     FileSystem& files) {
  const auto authority = ReadAuthority(folder, files);
  const ClusterId cluster = authority.ok() ? authority->cluster : ClusterId();
  return absl::DataLossError(absl::StrCat(ListFile(folder, name), ": ", why,
                                          "; put it back from a copy, or ",
                                          NewAuthorityBeside(folder, cluster)));
}

template <typename List>
absl::StatusOr<List> ReadList(const std::string& folder, const char* name, const char* what,
                              FileSystem& files) {
  const auto text = ReadPlainFile(ListFile(folder, name), kMaxListBytes, files);
  if (absl::IsNotFound(text.status())) {
    if (STRATA_MUTATION("certs.list_begun_anew")) return List();
    return BadList(folder, name, absl::StrCat("the list of ", what, " certificates is missing"),
                   files);
  }
  if (!text.ok()) return text.status();
  auto list = List::Parse(*text);
  if (!list.ok()) return BadList(folder, name, list.status().message(), files);
  return list;
}

absl::Status WriteList(const std::string& folder, const char* name, const std::string& text,
                       FileSystem& files) {
  const std::string file = ListFile(folder, name);
  if (text.size() > kMaxListBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        file, " would have ", text.size(), " bytes; at most ", kMaxListBytes,
        " are read; wait until certificates expire, or ", NewAuthorityBeside(folder, {})));
  }
  if (absl::Status s = WritePlainFile(file, text, files); !s.ok()) return s;
  return SyncPlainFolder(AuthorityFolder(folder), files);
}

// Adds the one of that text to the authority's; DATA_LOSS: it is none of this cluster's.
absl::Status AddTrusted(const std::string& pem, AuthorityCertificate& authority) {
  const auto facts = ReadCertificate(pem);
  if (!facts.ok()) return Damaged(authority.file, facts.status().message());
  const auto cluster = AuthorityClusterOf(*facts);
  const std::string who = absl::StrCat("certificate of ", Describe(*facts), ": ");
  if (!cluster.ok()) return Damaged(authority.file, who + std::string(cluster.status().message()));
  if (authority.trusted.empty()) {
    authority.facts = *facts;
    authority.cluster = *cluster;
  }
  if (*cluster != authority.cluster) {
    return Damaged(authority.file,
                   absl::StrCat(who, "it is of another cluster than the one before it"));
  }
  authority.trusted.push_back({pem, *facts});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Validity> ValidForDays(absl::Time now, int days) {
  if (days < 1 || days > kMaxValidDays) {
    return absl::InvalidArgumentError(absl::StrCat("a certificate cannot be valid for ", days,
                                                   " days; name 1 to ", kMaxValidDays));
  }
  return Validity{now - kClocksDiffer, now + days * kDay};
}

absl::StatusOr<AuthorityCertificate> ReadAuthority(const std::string& folder, FileSystem& files) {
  AuthorityCertificate read;
  read.file = absl::StrCat(AuthorityFolder(folder), "/", kAuthorityCertificateFile);
  auto pem = ReadPlainFile(read.file, kMaxCredentialBytes, files);
  if (absl::IsNotFound(pem.status())) {
    return absl::NotFoundError(
        absl::StrCat(read.file, ": no CA is there; make one: strata certs init", InFolder(folder)));
  }
  if (!pem.ok()) return pem.status();
  const auto all = ParseCertificates(*pem);
  if (!all.ok()) return Damaged(read.file, all.status().message());
  for (const X509Ptr& each : *all) {
    const auto one = CertificatePem(*each);
    if (!one.ok()) return one.status();
    if (absl::Status s = AddTrusted(*one, read); !s.ok()) return s;
  }
  read.pem = *pem;
  return read;
}

absl::StatusOr<KeyedCertificate> ReadSigningAuthority(const std::string& folder,
                                                      const AuthorityCertificate& authority,
                                                      absl::Time now, absl::Time until,
                                                      FileSystem& files) {
  const absl::Time end = authority.facts.valid.until;
  const std::string who = absl::StrCat("CA ", Describe(authority.facts));
  if (end <= now) {
    return Unfit(authority.file, absl::StrCat(who, ": it has expired and signs no more"),
                 NewAuthorityBeside(folder, authority.cluster));
  }
  if (end < until) {
    const int64_t days = (end - now) / kDay;  // whole ones
    const std::string fewer = absl::StrCat("give --days ", days, " or fewer, or ");
    return Unfit(
        authority.file,
        absl::StrCat(who, ": a certificate until ", TimeText(until), " would outlive it"),
        absl::StrCat(days < 1 ? "" : fewer, NewAuthorityBeside(folder, authority.cluster)));
  }
  std::string file = NextKeyFile(folder, authority.facts.serial);
  const auto is_next = IsThere(file, files);
  if (!is_next.ok()) return is_next.status();
  if (!*is_next) file = absl::StrCat(AuthorityFolder(folder), "/", kAuthorityKeyFile);
  if (absl::Status s = CheckPrivate(file, files); absl::IsNotFound(s)) {
    return absl::NotFoundError(absl::StrCat(
        file, ": the key of the CA is not here; issue where it is, or put it back from a copy"));
  } else if (!s.ok()) {
    return s;
  }
  const auto key = ReadPlainFile(file, kMaxCredentialBytes, files);
  if (!key.ok()) return key.status();
  if (absl::Status s = CheckKeyBelongs(authority.pem, *key); !s.ok()) {
    return Damaged(file, absl::StrCat(s.message(), " (", who, ")"));
  }
  return KeyedCertificate{authority.pem, *key};
}

absl::StatusOr<AuthorityCertificate> InitAuthority(const std::string& folder,
                                                   const ClusterId& cluster, int days,
                                                   absl::Time now, FileSystem& files) {
  const auto valid = ValidForDays(now, days);
  if (!valid.ok()) return valid.status();
  if (absl::Status s = MakePlace(folder, files); !s.ok()) return s;
  const FolderLock lock(folder, files);
  if (!lock.status().ok()) return lock.status();
  const std::string place = AuthorityFolder(folder), beside = absl::StrCat(place, ".new");
  const auto there = IsThere(place, files);
  if (!there.ok()) return there.status();
  if (*there) {
    const auto old = ReadAuthority(folder, files);
    const std::string whose =
        !old.ok() ? std::string(old.status().message()) : absl::StrCat("CA ", Describe(old->facts));
    return absl::AlreadyExistsError(
        absl::StrCat(place, " is there already (", whose,
                     "); issue from it, or name another folder: strata certs init",
                     InFolder(FolderBeside(folder))));
  }
  if (absl::Status s = CheckNobodyThere(folder, files); !s.ok()) return s;
  const auto authority = MakeAuthority(cluster, *valid);
  if (!authority.ok()) return authority.status();
  absl::Status s = RemoveTree(beside, files);  // of one that was killed
  if (s.ok()) s = WriteAuthority(beside, *authority, files);
  if (s.ok()) {
    const int named = files.Rename(beside, place);
    if (named < 0) s = PlainFileError(-named, "rename", beside);
  }
  if (!s.ok()) {
    RemoveTree(beside, files).IgnoreError();
    return s;
  }
  s = SyncPlainFolder(folder, files);
  if (!s.ok()) return s;
  return ReadAuthority(folder, files);
}

absl::StatusOr<IssuedCertificates> ReadIssued(const std::string& folder, FileSystem& files) {
  return ReadList<IssuedCertificates>(folder, kIssuedFile, "issued", files);
}

absl::Status WriteIssued(const std::string& folder, const IssuedCertificates& issued,
                         FileSystem& files) {
  return WriteList(folder, kIssuedFile, issued.Text(), files);
}

absl::StatusOr<Revocations> ReadRevocations(const std::string& folder, FileSystem& files) {
  return ReadList<Revocations>(folder, kRevokedFile, "revoked", files);
}

absl::Status WriteRevocations(const std::string& folder, const Revocations& revocations,
                              FileSystem& files) {
  return WriteList(folder, kRevokedFile, revocations.Text(), files);
}

}  // namespace strata
