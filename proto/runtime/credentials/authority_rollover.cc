#include "proto/runtime/credentials/authority_rollover.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/core/mutation.h"
#include "proto/runtime/credentials/certificate.h"
#include "proto/runtime/credentials/certs_command.h"
#include "proto/runtime/credentials/folder_lock.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/issuer.h"
#include "proto/runtime/credentials/places.h"
#include "proto/runtime/credentials/revocations.h"
#include "proto/runtime/credentials/role_folders.h"
#include "proto/runtime/files/folders.h"
#include "proto/runtime/files/plain_file.h"
#include "proto/runtime/files/private_files.h"

namespace strata {
namespace {

enum class Phase {
  kOne,       // no change is under way
  kBegun,     // the old one signs
  kSwitched,  // the next one signs
  kEnded,     // the next one is alone, and its key not in its place yet
};

struct Rollover {
  AuthorityCertificate authority;
  Phase phase = Phase::kOne;
  size_t next = 0;  // in authority.trusted
};

// By whose key has a file of its own.
absl::StatusOr<Rollover> Look(const std::string& folder, FileSystem& files) {
  auto authority = ReadAuthority(folder, files);
  if (!authority.ok()) return authority.status();
  Rollover now{*std::move(authority)};
  const auto& trusted = now.authority.trusted;
  for (size_t i = 0; i < trusted.size(); ++i) {
    const auto there = IsThere(NextKeyFile(folder, trusted[i].facts.serial), files);
    if (!there.ok()) return there.status();
    if (!*there) continue;
    now.next = i;
    now.phase = i > 0 ? Phase::kBegun : trusted.size() > 1 ? Phase::kSwitched : Phase::kEnded;
  }
  return now;
}

absl::Status Unfit(const AuthorityCertificate& authority, absl::string_view why,
                   absl::string_view remedy) {
  return absl::FailedPreconditionError(absl::StrCat(authority.file, ": ", why, "; ", remedy));
}

std::string TypedStep(absl::string_view step, const std::string& folder) {
  return absl::StrCat("strata certs rollover ", step, InFolder(folder));
}

// In one step, durably.
absl::StatusOr<AuthorityCertificate> Replace(const std::string& folder,
                                             const std::vector<TrustedAuthority>& trusted,
                                             FileSystem& files) {
  std::string text;
  for (const TrustedAuthority& each : trusted) text += each.pem;
  const std::string file = absl::StrCat(AuthorityFolder(folder), "/", kAuthorityCertificateFile);
  absl::Status s = WritePlainFile(file, text, files);
  if (s.ok()) s = SyncPlainFolder(AuthorityFolder(folder), files);
  if (!s.ok()) return s;
  return ReadAuthority(folder, files);
}

// Keys of none that is trusted: of a Begin that was killed.
absl::Status RemoveStrayKeys(const std::string& folder, const AuthorityCertificate& authority,
                             FileSystem& files) {
  const auto names = ListFolder(AuthorityFolder(folder), files);
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    const std::string path = absl::StrCat(AuthorityFolder(folder), "/", name);
    bool stray = absl::EndsWith(name, ".key") && name != kAuthorityKeyFile;
    for (const TrustedAuthority& each : authority.trusted) {
      stray = stray && path != NextKeyFile(folder, each.facts.serial);
    }
    if (!stray) continue;
    if (absl::Status s = RemovePlainFile(path, files); !s.ok()) return s;
  }
  return absl::OkStatus();
}

struct Holder {
  Role role;
  std::string name;
  std::string current;  // folder
};

std::string Who(const Holder& holder) {
  return absl::StrCat(RoleName(holder.role), "/", holder.name);
}

absl::StatusOr<std::vector<Holder>> HoldersIn(const std::string& folder, FileSystem& files) {
  const auto identities = IdentitiesIn(folder, files);
  if (!identities.ok()) return identities.status();
  std::vector<Holder> holders;
  for (const std::string& identity : *identities) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(identity, absl::MaxSplits('/', 1));
    const std::optional<Role> role = ParseRole(parts.first);
    if (!role.has_value()) continue;
    holders.push_back({*role, parts.second, CurrentFolder(folder, *role, parts.second)});
  }
  return holders;
}

bool IsRevoked(const Holder& holder, const Revocations& revoked, FileSystem& files) {
  const auto read = ReadIdentityCertificate(holder.current, files);
  return read.ok() && revoked.Contains(read->facts.serial);
}

using Follows = std::function<bool(const Credentials& mine)>;

// FAILED_PRECONDITION: somebody whose certificate counts does not follow yet. Nobody is asked whose
// certificate has expired or was revoked.
absl::Status CheckAllFollow(const std::string& folder, const AuthorityCertificate& authority,
                            absl::Time now, const std::string& what, const Follows& follows,
                            FileSystem& files) {
  constexpr size_t kNamed = 3;
  const auto holders = HoldersIn(folder, files);
  if (!holders.ok()) return holders.status();
  const auto revoked = ReadRevocations(folder, files);
  if (!revoked.ok()) return revoked.status();
  std::vector<std::string> behind;
  for (const Holder& holder : *holders) {
    const auto mine = LoadCredentials(holder.current, files);
    if (mine.ok()) {
      const CertificateFacts& facts = mine->certificate.facts;
      if (facts.valid.until < now || revoked->Contains(facts.serial)) continue;
      if (follows(*mine) || STRATA_MUTATION("certs.rollover_waits_for_nobody")) continue;
    }
    behind.push_back(Who(holder));
  }
  if (behind.empty()) return absl::OkStatus();
  const size_t all = behind.size();
  if (all > kNamed) behind.resize(kNamed);
  return Unfit(
      authority,
      absl::StrCat("the certificates of ", absl::StrJoin(behind, ", "),
                   all > kNamed ? absl::StrCat(" and ", all - kNamed, " more") : "", " ", what),
      absl::StrCat("renew them first, also on other machines: ", RenewAllCommand(folder)));
}

// OK: the one that signs first can renew a certificate, for the shortest time at least, and both
// lists are there; or nobody could follow a step that it is asked for.
absl::Status CheckRenews(const std::string& folder, const AuthorityCertificate& authority,
                         absl::Time now, FileSystem& files) {
  if (STRATA_MUTATION("certs.rollover_without_key")) return absl::OkStatus();
  const auto shortest = ValidForDays(now, 1);
  if (!shortest.ok()) return shortest.status();
  absl::Status s = ReadSigningAuthority(folder, authority, now, shortest->until, files).status();
  if (s.ok()) s = ReadIssued(folder, files).status();
  if (s.ok()) s = ReadRevocations(folder, files).status();
  return s;
}

// The next one first, so that it signs.
AuthorityCertificate Switched(const AuthorityCertificate& now, size_t next) {
  AuthorityCertificate switched{.file = now.file,
                                .pem = now.trusted[next].pem,
                                .facts = now.trusted[next].facts,
                                .cluster = now.cluster,
                                .trusted = {now.trusted[next]}};
  for (size_t i = 0; i < now.trusted.size(); ++i) {
    if (i == next) continue;
    switched.pem += now.trusted[i].pem;
    switched.trusted.push_back(now.trusted[i]);
  }
  return switched;
}

}  // namespace

absl::StatusOr<AuthorityCertificate> BeginRollover(const std::string& folder, int days,
                                                   absl::Time now, FileSystem& files) {
  const auto valid = ValidForDays(now, days);
  if (!valid.ok()) return valid.status();
  const FolderLock lock(folder, files);
  if (!lock.status().ok()) return lock.status();
  auto at = Look(folder, files);
  if (!at.ok()) return at.status();
  if (at->phase != Phase::kOne) {
    return absl::AlreadyExistsError(
        absl::StrCat(at->authority.file, ": its change is under way; go on with it: ",
                     TypedStep(at->phase == Phase::kBegun ? "switch" : "end", folder)));
  }
  if (absl::Status s = CheckRenews(folder, at->authority, now, files); !s.ok()) return s;
  if (absl::Status s = RemoveStrayKeys(folder, at->authority, files); !s.ok()) return s;
  const auto made = MakeAuthority(at->authority.cluster, *valid);
  if (!made.ok()) return made.status();
  const auto facts = ReadCertificate(made->certificate);
  if (!facts.ok()) return facts.status();
  absl::Status s = WritePrivateFile(NextKeyFile(folder, facts->serial), made->key, files);
  if (s.ok()) s = SyncPlainFolder(AuthorityFolder(folder), files);
  if (!s.ok()) return s;
  at->authority.trusted.push_back({made->certificate, *facts});
  return Replace(folder, at->authority.trusted, files);
}

absl::StatusOr<AuthorityCertificate> SwitchAuthority(const std::string& folder, absl::Time now,
                                                     FileSystem& files) {
  const FolderLock lock(folder, files);
  if (!lock.status().ok()) return lock.status();
  auto at = Look(folder, files);
  if (!at.ok()) return at.status();
  if (at->phase != Phase::kBegun) {
    const bool one = at->phase == Phase::kOne;
    return Unfit(
        at->authority, one ? "there is no next CA" : "the next CA signs already",
        absl::StrCat(one ? "make one: " : "go on: ", TypedStep(one ? "begin" : "end", folder)));
  }
  const absl::Status follow = CheckAllFollow(
      folder, at->authority, now, "do not trust the next CA yet",
      [&](const Credentials& mine) { return mine.authorities == at->authority.pem; }, files);
  if (!follow.ok()) return follow;
  const AuthorityCertificate switched = Switched(at->authority, at->next);
  if (absl::Status s = CheckRenews(folder, switched, now, files); !s.ok()) return s;
  return Replace(folder, switched.trusted, files);
}

absl::StatusOr<AuthorityCertificate> EndRollover(const std::string& folder, absl::Time now,
                                                 FileSystem& files) {
  const FolderLock lock(folder, files);
  if (!lock.status().ok()) return lock.status();
  auto at = Look(folder, files);
  if (!at.ok()) return at.status();
  if (at->phase == Phase::kOne || at->phase == Phase::kBegun) {
    const bool one = at->phase == Phase::kOne;
    return Unfit(at->authority, one ? "there is no change of the CA" : "the old CA signs still",
                 absl::StrCat(one ? "begin one: " : "have the next one sign first: ",
                              TypedStep(one ? "begin" : "switch", folder)));
  }
  const TrustedAuthority& next = at->authority.trusted[0];
  if (at->phase == Phase::kSwitched) {
    const absl::Status follow = CheckAllFollow(
        folder, at->authority, now, "are of the old CA",
        [&](const Credentials& mine) { return CheckSignedBy(mine.certificate.pem, next.pem).ok(); },
        files);
    if (!follow.ok()) return follow;
    const auto alone = Replace(folder, {next}, files);
    if (!alone.ok()) return alone;
  }
  // The old one's key is gone with that.
  const std::string key = NextKeyFile(folder, next.facts.serial);
  const int named =
      files.Rename(key, absl::StrCat(AuthorityFolder(folder), "/", kAuthorityKeyFile));
  if (named < 0) return PlainFileError(-named, "rename", key);
  if (absl::Status s = SyncPlainFolder(AuthorityFolder(folder), files); !s.ok()) return s;
  return ReadAuthority(folder, files);
}

absl::StatusOr<RenewedAll> RenewAll(const std::string& folder, int days, absl::Time now,
                                    FileSystem& files) {
  const auto authority = ReadAuthority(folder, files);
  if (!authority.ok()) return authority.status();
  const auto holders = HoldersIn(folder, files);
  if (!holders.ok()) return holders.status();
  const auto revoked = ReadRevocations(folder, files);
  if (!revoked.ok()) return revoked.status();
  RenewedAll all;
  absl::Status first;
  size_t failed = 0;
  for (const Holder& holder : *holders) {
    if (IsRevoked(holder, *revoked, files)) {
      all.left.push_back(Who(holder));
      continue;
    }
    auto made =
        RenewIdentity(folder, {.role = holder.role, .name = holder.name, .days = days}, now, files);
    if (made.ok()) {
      all.renewed.push_back(*std::move(made));
      continue;
    }
    ++failed;
    if (first.ok()) first = made.status();
  }
  if (first.ok()) return all;
  return absl::Status(first.code(),
                      absl::StrCat(first.message(), " (", failed, " of ", holders->size(),
                                   " certificates are not renewed, the others are)"));
}

}  // namespace strata
