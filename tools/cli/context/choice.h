// Which cluster a command talks to, and as whom.
#ifndef STRATA_TOOLS_CLI_CONTEXT_CHOICE_H_
#define STRATA_TOOLS_CLI_CONTEXT_CHOICE_H_

#include <string>

#include "absl/status/statusor.h"
#include "tools/cli/base/options.h"

namespace strata {

struct ChosenCluster {
  std::string scheduler;  // host:port
  std::string certs;      // folder of the caller's certificate; empty: without TLS
  std::string named_by;   // "--scheduler", or "context 'prod' of FILE": for messages
};

// The first of: --scheduler; the context that --context names; the current context. --certs and
// --insecure count before what a context has; a --scheduler with neither is reached without TLS.
// INVALID_ARGUMENT: --scheduler is no address. NOT_FOUND: there is no such context, or none is the
// current one; the text says what to do. Others: those of the file of contexts.
absl::StatusOr<ChosenCluster> ChooseCluster(const ClusterOptions& given);

// The folder of the cluster that `strata up` started, where the current context is of one; else
// empty, also where the contexts cannot be read.
std::string FolderOfContext();

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_CONTEXT_CHOICE_H_
