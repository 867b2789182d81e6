// Where certificates lie in a folder of them:
//
//   FOLDER/ca/ca.crt, ca.key, issued, revoked     the authority: where certificates are issued
//   FOLDER/ca/SERIAL.key                          while it is changed (authority_rollover.h)
//   FOLDER/ROLE/NAME/current                      a link to the newest of:
//   FOLDER/ROLE/NAME/SERIAL/ca.crt, tls.crt, tls.key
//
// A process is given FOLDER/ROLE/NAME/current, or a copy of it; nothing but that goes to other
// machines.
// Tested by tests/proto/runtime/credentials/authority_files_test.cc
#ifndef STRATA_PROTO_RUNTIME_CREDENTIALS_PLACES_H_
#define STRATA_PROTO_RUNTIME_CREDENTIALS_PLACES_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/runtime/credentials/identity.h"

namespace strata {

inline constexpr char kAuthorityCertificateFile[] = "ca.crt";
inline constexpr char kAuthorityKeyFile[] = "ca.key";
inline constexpr char kIssuedFile[] = "issued";
inline constexpr char kRevokedFile[] = "revoked";
inline constexpr char kCertificateFile[] = "tls.crt";
inline constexpr char kKeyFile[] = "tls.key";

// Longer files of certificates and keys are refused unread.
inline constexpr uint64_t kMaxCredentialBytes = uint64_t{256} << 10;
// The same of the lists of issued and of revoked ones, some 100,000 of them; longer ones are not
// written either.
inline constexpr uint64_t kMaxListBytes = uint64_t{32} << 20;

// A folder's name without "/" and "/." at its end, behind which the kernel follows a link, and
// parent_path() takes for a name.
inline std::string BareFolder(std::string folder) {
  for (;;) {
    const size_t size = folder.size();
    const bool slash = size > 1 && folder[size - 1] == '/';
    const bool dot = size > 2 && folder[size - 1] == '.' && folder[size - 2] == '/';
    if (!slash && !dot) return folder;
    folder.pop_back();
  }
}

inline std::string AuthorityFolder(absl::string_view folder) { return absl::StrCat(folder, "/ca"); }
// Of an authority that is to sign, or signs, in place of the one that was there first.
inline std::string NextKeyFile(absl::string_view folder, absl::string_view serial) {
  return absl::StrCat(AuthorityFolder(folder), "/", serial, ".key");
}
inline std::string RoleFolder(absl::string_view folder, Role role) {
  return absl::StrCat(folder, "/", RoleName(role));
}
inline std::string IdentityFolder(absl::string_view folder, Role role, absl::string_view name) {
  return absl::StrCat(RoleFolder(folder, role), "/", name);
}
inline std::string CurrentFolder(absl::string_view folder, Role role, absl::string_view name) {
  return absl::StrCat(IdentityFolder(folder, role, name), "/current");
}

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_CREDENTIALS_PLACES_H_
