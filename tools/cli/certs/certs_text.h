// How certificates are shown: JSON for programs, text for people.
#ifndef STRATA_TOOLS_CLI_CERTS_CERTS_TEXT_H_
#define STRATA_TOOLS_CLI_CERTS_CERTS_TEXT_H_

#include <string>

#include "absl/time/time.h"
#include "proto/runtime/credentials/authority_files.h"
#include "proto/runtime/credentials/authority_rollover.h"
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

// An object with the renewed ones, and with the names of those that stay revoked.
std::string RenewedJson(const RenewedAll& all, absl::Time now);
// What is trusted after a step of a rollover (begin, switch or end), and what to type next; lines.
std::string RolloverText(const AuthorityCertificate& authority, const std::string& folder,
                         const std::string& step);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_CERTS_CERTS_TEXT_H_
