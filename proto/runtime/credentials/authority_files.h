// The authority of a cluster as files: made, read, and what it has issued and revoked.
#ifndef STRATA_PROTO_RUNTIME_CREDENTIALS_AUTHORITY_FILES_H_
#define STRATA_PROTO_RUNTIME_CREDENTIALS_AUTHORITY_FILES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/runtime/credentials/certificate.h"
#include "proto/runtime/credentials/issued_certificates.h"
#include "proto/runtime/credentials/issuer.h"
#include "proto/runtime/credentials/revocations.h"
#include "proto/runtime/files/file_system.h"

namespace strata {

// How long certificates may be good for.
inline constexpr int kMaxValidDays = 36500;
// From an hour before `now`, since machines' clocks differ, for so many days after it.
// INVALID_ARGUMENT: less than one day, or more than kMaxValidDays.
absl::StatusOr<Validity> ValidForDays(absl::Time now, int days);

// One of those whose certificates count.
struct TrustedAuthority {
  std::string pem;
  CertificateFacts facts;
};
struct AuthorityCertificate {
  std::string file;
  std::string pem;         // of all that are trusted, as it goes beside what is issued
  CertificateFacts facts;  // of the one that signs
  ClusterId cluster;
  // All of them, the one that signs first; more than one while it is changed
  // (authority_rollover.h).
  std::vector<TrustedAuthority> trusted = {};
};
// Of `folder` as places.h has it. Errors name the file. NOT_FOUND: there is none (the text says how
// to make it). FAILED_PRECONDITION: what is there is no authority's certificate of ours.
absl::StatusOr<AuthorityCertificate> ReadAuthority(const std::string& folder,
                                                   FileSystem& files = FileSystem::Kernel());
// With its key, fit to sign until `until`. FAILED_PRECONDITION: it expires before that, or has.
// DATA_LOSS: the key does not belong to it. PERMISSION_DENIED: the key is open to others.
absl::StatusOr<KeyedCertificate> ReadSigningAuthority(const std::string& folder,
                                                      const AuthorityCertificate& authority,
                                                      absl::Time now, absl::Time until,
                                                      FileSystem& files = FileSystem::Kernel());

// Makes the authority of a cluster in `folder`, which is made where it is missing: whole or not at
// all, and durable. Steps: 1 the folder (MakePlace), 2 its lock, 3 no authority is there, and no
// certificate (CheckNobodyThere), 4 the files beside their place (WriteAuthority), 5 the name of
// theirs. ALREADY_EXISTS: there is one; it stays as it is. FAILED_PRECONDITION: certificates of
// another one are there, whose list of revoked ones would begin anew.
absl::StatusOr<AuthorityCertificate> InitAuthority(const std::string& folder,
                                                   const ClusterId& cluster, int days,
                                                   absl::Time now,
                                                   FileSystem& files = FileSystem::Kernel());

// DATA_LOSS, of both lists: it is damaged or missing; neither is ever taken for an empty one.
absl::StatusOr<IssuedCertificates> ReadIssued(const std::string& folder,
                                              FileSystem& files = FileSystem::Kernel());
absl::StatusOr<Revocations> ReadRevocations(const std::string& folder,
                                            FileSystem& files = FileSystem::Kernel());
// Replaces the list as a whole, durably. The caller has the folder's lock. RESOURCE_EXHAUSTED: it
// would be too long to be read; the old one stays.
absl::Status WriteIssued(const std::string& folder, const IssuedCertificates& issued,
                         FileSystem& files = FileSystem::Kernel());
absl::Status WriteRevocations(const std::string& folder, const Revocations& revocations,
                              FileSystem& files = FileSystem::Kernel());

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_CREDENTIALS_AUTHORITY_FILES_H_
