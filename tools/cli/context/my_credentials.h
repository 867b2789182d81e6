// The certificate that a command shows.
#ifndef STRATA_TOOLS_CLI_CONTEXT_MY_CREDENTIALS_H_
#define STRATA_TOOLS_CLI_CONTEXT_MY_CREDENTIALS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/runtime/base/clock.h"
#include "proto/runtime/credentials/credential_source.h"

namespace strata {

// Of a folder of ca.crt, tls.crt and tls.key. UNAUTHENTICATED, whatever is wrong with it: the text
// names the file and, where it has a certificate, subject and expiry, and says what to do.
absl::StatusOr<std::shared_ptr<CredentialSource>> OpenMyCredentials(const std::string& folder,
                                                                    Clock& clock);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_CONTEXT_MY_CREDENTIALS_H_
