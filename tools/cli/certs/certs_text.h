// How certificates are shown: JSON for programs, text for people.
#ifndef STRATA_TOOLS_CLI_CERTS_CERTS_TEXT_H_
#define STRATA_TOOLS_CLI_CERTS_CERTS_TEXT_H_

#include <string>

#include "absl/time/time.h"
#include "proto/runtime/credentials/authority_files.h"
#include "proto/runtime/credentials/certificate_list.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/identity_files.h"

namespace strata {

// A table with a header line, the CA first.
std::string CertificatesTable(const CertificateList& list, absl::Time now);
// These are one line each, without its end.
std::string CertificatesJson(const CertificateList& list, absl::Time now);
std::string AuthorityJson(const AuthorityCertificate& authority, absl::Time now);
std::string CertificateJson(const IdentityCertificate& certificate, absl::Time now);
std::string RevokedJson(Role role, const std::string& name, const RevokedNow& revoked);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_CERTS_CERTS_TEXT_H_
