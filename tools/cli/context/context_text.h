// How contexts are shown: JSON for programs, text for people.
#ifndef STRATA_TOOLS_CLI_CONTEXT_CONTEXT_TEXT_H_
#define STRATA_TOOLS_CLI_CONTEXT_CONTEXT_TEXT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/runtime/credentials/certificate.h"
#include "tools/cli/context/contexts.h"

namespace strata {

// A context with its certificate as it is now.
struct ShownContext {
  Context context;
  bool current = false;
  std::optional<CertificateFacts> facts;  // none without TLS, or where `problem` is why
  absl::Status problem;
};

// A table with a header line; the current one has a star.
std::string ContextsTable(const std::vector<ShownContext>& contexts, absl::Time now);
// These are one line each, without its end.
std::string ContextsJson(const std::vector<ShownContext>& contexts, absl::Time now);
std::string ContextJson(const ShownContext& context, absl::Time now);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_CONTEXT_CONTEXT_TEXT_H_
