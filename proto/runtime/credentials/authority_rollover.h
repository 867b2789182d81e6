// Changes the authority (CA) of a cluster while it is up: for a time there are two, and whoever has
// a certificate trusts both.
//
//   ca/ca.crt      certificates of all that are trusted; the first one signs
//   ca/ca.key      the key of the one that was there first
//   ca/SERIAL.key  the key of the next one, by its certificate's number
//
// 1 BeginRollover: the next one is made. What is issued and renewed from then on is signed by the
//   old one, and trusts both.
// 2 SwitchAuthority, when everybody trusts both: the next one signs.
// 3 EndRollover, when everybody's certificate is of the next one: the old one goes, with its key.
// Each is one replacement of ca.crt, and may be done again after any error. Between them and after
// the last one all certificates are to be renewed (RenewAll).
#ifndef STRATA_PROTO_RUNTIME_CREDENTIALS_AUTHORITY_ROLLOVER_H_
#define STRATA_PROTO_RUNTIME_CREDENTIALS_AUTHORITY_ROLLOVER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/credentials/authority_files.h"
#include "proto/runtime/credentials/identity_files.h"
#include "proto/runtime/files/file_system.h"

namespace strata {

// All have the folder's lock while they work, and return the authority as it is then. Errors are
// those of authority_files.h as well, and change nothing: no step is taken after which nobody's
// certificate could be renewed, as the key that is to sign is missing, or a list is.
// FAILED_PRECONDITION: it is another step's turn, or there is somebody for whom it is too early,
// whom the text names; it says what to do.

// ALREADY_EXISTS: one is under way.
absl::StatusOr<AuthorityCertificate> BeginRollover(const std::string& folder, int days,
                                                   absl::Time now,
                                                   FileSystem& files = FileSystem::Kernel());
absl::StatusOr<AuthorityCertificate> SwitchAuthority(const std::string& folder, absl::Time now,
                                                     FileSystem& files = FileSystem::Kernel());
absl::StatusOr<AuthorityCertificate> EndRollover(const std::string& folder, absl::Time now,
                                                 FileSystem& files = FileSystem::Kernel());

struct RenewedAll {
  std::vector<IdentityCertificate> renewed;
  std::vector<std::string> left;  // "role/name" of those that were revoked, and stay so
};
// RenewIdentity of everybody who has a certificate in the folder, damaged ones too. An error of one
// keeps no other from it; the first one is returned, and names how many there were.
absl::StatusOr<RenewedAll> RenewAll(const std::string& folder, int days, absl::Time now,
                                    FileSystem& files = FileSystem::Kernel());

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_CREDENTIALS_AUTHORITY_ROLLOVER_H_
