// The certificate of a process or a person as files: issued, renewed, read whole.
#ifndef STRATA_PROTO_RUNTIME_CREDENTIALS_IDENTITY_FILES_H_
#define STRATA_PROTO_RUNTIME_CREDENTIALS_IDENTITY_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/runtime/credentials/certificate.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/issuer.h"
#include "proto/runtime/files/file_system.h"

namespace strata {

struct IdentityCertificate {
  std::string file;
  std::string pem;
  CertificateFacts facts;
  Identity identity;
};
// tls.crt of a folder. Errors name the file; `whose` is what the command of their remedy names
// (WhoseIn). NOT_FOUND: there is none. DATA_LOSS: it is no certificate of ours.
absl::StatusOr<IdentityCertificate> ReadIdentityCertificate(
    const std::string& folder, FileSystem& files = FileSystem::Kernel(),
    const std::string& whose = "ROLE NAME, where its CA is");

struct Credentials {
  IdentityCertificate certificate;
  KeyedCertificate keyed;   // the same certificate, with its key
  std::string authorities;  // PEM
};
// All of a folder that `strata certs` made, or a link to one, or to a link, however it is spelled:
// where a link leads elsewhere meanwhile, all of the old one or all of the new one. Errors as of
// ReadIdentityCertificate; and DATA_LOSS: the key does not belong to the certificate;
// PERMISSION_DENIED: it is open to others; FAILED_PRECONDITION: another authority than that of the
// folder signed the certificate.
//
//   const auto mine = LoadCredentials("certs/server/alpha/current");
absl::StatusOr<Credentials> LoadCredentials(const std::string& folder,
                                            FileSystem& files = FileSystem::Kernel());

struct IssueOrder {
  Role role = Role::kReader;
  std::string name;
  int days = 90;
};
// Whole or not at all, and durable. Steps of both: 1 the folder's lock, 2 the authority that signs
// and its list of revoked ones, 3 whether there is one already, 4 its number on the list of issued
// ones (Record), 5 the files in a folder of their own (WriteIdentity), 6 the link to it, 7 what is
// older than the one before goes. Issue: ALREADY_EXISTS: the identity has a certificate. Renew:
// NOT_FOUND: it has none; FAILED_PRECONDITION: the one it has is of another cluster. Of both
// INVALID_ARGUMENT: no such name, or days out of range. Others: those of the authority
// (authority_files.h), of files.
absl::StatusOr<IdentityCertificate> IssueIdentity(const std::string& folder,
                                                  const IssueOrder& order, absl::Time now,
                                                  FileSystem& files = FileSystem::Kernel());
// The certificate that was there stays valid until it expires or is revoked, and its files stay
// until the next renewal, for whoever is reading them. Its number stays on the list of issued ones.
absl::StatusOr<IdentityCertificate> RenewIdentity(const std::string& folder,
                                                  const IssueOrder& order, absl::Time now,
                                                  FileSystem& files = FileSystem::Kernel());

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_CREDENTIALS_IDENTITY_FILES_H_
