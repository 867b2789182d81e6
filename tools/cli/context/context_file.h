// The file of contexts: closed to others, changed by one process at a time, whole or not at all.
#ifndef STRATA_TOOLS_CLI_CONTEXT_CONTEXT_FILE_H_
#define STRATA_TOOLS_CLI_CONTEXT_CONTEXT_FILE_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/cli/context/contexts.h"

namespace strata {

// $XDG_CONFIG_HOME/strata/contexts.yaml, by default ~/.config/strata/contexts.yaml. Empty: the
// environment has neither XDG_CONFIG_HOME nor HOME.
std::string ContextsPath();

// No file: no contexts. PERMISSION_DENIED: the file or its folder belongs to somebody else or is
// open to others, so that somebody else may have led commands elsewhere; the text says how to close
// it. INVALID_ARGUMENT: ParseContexts'.
absl::StatusOr<Contexts> ReadContexts();

// Reads, has `change` change them, writes the file anew (mode 0600, in a folder of mode 0700, both
// made where they are missing) and brings it to the device; no other process changes it meanwhile.
// After an error the file is as it was. Errors: ReadContexts', those of `change`, of files;
// ABORTED: somebody else has had it for ten seconds.
//
//   ChangeContexts([&](Contexts& contexts) { return UseContext("prod", contexts); });
absl::Status ChangeContexts(const std::function<absl::Status(Contexts&)>& change);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_CONTEXT_CONTEXT_FILE_H_
