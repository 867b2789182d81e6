// What certificates a folder has, and the revoking of some.
#ifndef STRATA_PROTO_RUNTIME_CREDENTIALS_CERTIFICATE_LIST_H_
#define STRATA_PROTO_RUNTIME_CREDENTIALS_CERTIFICATE_LIST_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/credentials/authority_files.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/identity_files.h"
#include "proto/runtime/files/file_system.h"

namespace strata {

struct ListedCertificate {
  IdentityCertificate certificate;
  bool revoked = false;
};
struct CertificateList {
  AuthorityCertificate authority;
  std::vector<ListedCertificate> certificates;  // the current ones, by role and name
  std::vector<absl::Status> problems;           // of what is no good; each names its file
};
// Errors are those of the authority and of its list of revoked ones; those of other files, the list
// of issued ones too, are problems.
absl::StatusOr<CertificateList> ListCertificates(const std::string& folder,
                                                 FileSystem& files = FileSystem::Kernel());

// What has expired and counts otherwise: the CA that signs, and certificates that were not revoked.
// Each names its file and what to do. FAILED_PRECONDITION.
std::vector<absl::Status> Expired(const CertificateList& list, const std::string& folder,
                                  absl::Time now);

struct RevokedNow {
  std::vector<std::string> serials;          // revoked by this call
  std::vector<std::string> revoked_earlier;  // and before it
};
// Revokes every certificate of the identity that has not expired, however often it was renewed
// since. With `serial` (upper or lower case, with colons or without) that number alone, also of one
// that is on no list. What has expired goes from the list, which is replaced as a whole, durably.
// NOT_FOUND: no such certificate is known. INVALID_ARGUMENT: the name or the number is none, or the
// number is another's.
absl::StatusOr<RevokedNow> RevokeCertificates(const std::string& folder, Role role,
                                              const std::string& name, const std::string& serial,
                                              absl::Time now,
                                              FileSystem& files = FileSystem::Kernel());

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_CREDENTIALS_CERTIFICATE_LIST_H_
