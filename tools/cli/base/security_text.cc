#include "tools/cli/base/security_text.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/runtime/credentials/certs_command.h"
#include "tools/cli/base/days_left.h"

namespace strata {
namespace {

// `unix_ms`: when it expires; 0: there is none.
void AddExpiry(absl::string_view whose, int64_t unix_ms, absl::Time now, std::string& text) {
  if (unix_ms == 0) return;
  const int64_t days = DaysLeft(absl::FromUnixMillis(unix_ms), now);
  if (days > kWarnAtDays) return;
  absl::StrAppend(
      &text, "The certificate of ", whose,
      days == 0 ? " has expired" : absl::StrCat(" expires in ", days, days == 1 ? " day" : " days"),
      ".\n");
}

}  // namespace

std::string SecurityText(const ClusterStatus& cluster, absl::Time now, const std::string& certs) {
  std::string text;
  AddExpiry("the scheduler", cluster.certificate_not_after_unix_ms(), now, text);
  for (const NodeStatus& n : cluster.nodes()) {
    AddExpiry(n.name(), n.certificate_not_after_unix_ms(), now, text);
  }
  if (!text.empty()) {
    const std::string above = certs.empty() ? "" : AuthorityAbove(certs);
    absl::StrAppend(&text, "Renew all that there are: ", RenewAllCommand(above), "\n");
  }
  if (cluster.insecure()) {
    text =
        "This cluster is insecure: it has no certificates, and nobody is asked who he is.\n" + text;
  }
  return text;
}

}  // namespace strata
