// Whether a cluster asks who calls it, and whose certificates run out, for people.
#ifndef STRATA_TOOLS_CLI_BASE_SECURITY_TEXT_H_
#define STRATA_TOOLS_CLI_BASE_SECURITY_TEXT_H_

#include <string>

#include "absl/time/time.h"
#include "proto/strata/control.pb.h"

namespace strata {

// With so many days left a certificate is warned of.
inline constexpr int kWarnAtDays = 30;

// Lines, each with its end; empty: everybody is asked, and no certificate runs out soon. `certs`:
// the folder of the caller's own certificate, beside which the cluster's CA may be; empty: none.
std::string SecurityText(const ClusterStatus& cluster, absl::Time now, const std::string& certs);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_BASE_SECURITY_TEXT_H_
