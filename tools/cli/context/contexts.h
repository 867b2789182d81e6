// The clusters that a user has given names to, and the text of the file that holds them. Pure.
#ifndef STRATA_TOOLS_CLI_CONTEXT_CONTEXTS_H_
#define STRATA_TOOLS_CLI_CONTEXT_CONTEXTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace strata {

// How to reach one cluster.
struct Context {
  std::string name;
  std::string scheduler;  // host:port
  std::string certs;      // absolute folder of ca.crt, tls.crt, tls.key; empty: without TLS
  std::string folder;     // absolute folder of the cluster, where `strata up` started it here

  friend bool operator==(const Context&, const Context&) = default;
};

struct Contexts {
  std::string current;       // name of the one that counts where none is named; empty: none does
  std::vector<Context> all;  // no two of a name
  // Names of those that were current when a cluster of `strata up` took over, the last one last.
  std::vector<std::string> before;

  friend bool operator==(const Contexts&, const Contexts&) = default;
};

// INVALID_ARGUMENT: it is no host:port that a scheduler can have; the text begins "scheduler:".
absl::Status CheckSchedulerAddress(const std::string& address);

// Null: there is none of that name.
const Context* FindContext(const Contexts& contexts, absl::string_view name);
// All names with commas, "none" without any: for messages.
std::string ContextNames(const Contexts& contexts);

// What an error leaves as it was:
// ALREADY_EXISTS: there is one of that name. INVALID_ARGUMENT: name, address or folder is none. The
// first one becomes the current one.
absl::Status AddContext(Context context, Contexts& contexts);
// NOT_FOUND: there is none of that name; the text names the others.
absl::Status UseContext(absl::string_view name, Contexts& contexts);
// The same. Where it was the current one, none is afterwards.
absl::Status RemoveContext(absl::string_view name, Contexts& contexts);

// The context of the cluster that `strata up` started in a folder becomes the current one: the one
// that has the folder gets the address and the certificates; else a new one is made, and named
// after the last part of the folder's path, with a number behind it where that is taken.
// The one that was current is so again when that context goes. INVALID_ARGUMENT: address or folder
// is none.
absl::Status UseContextOfFolder(const std::string& folder, const std::string& scheduler,
                                const std::string& certs, Contexts& contexts);
bool HasContextOfFolder(const Contexts& contexts, absl::string_view folder);
// Where it was the current one, the one before it is afterwards. Nothing has that folder: nothing
// happens.
void RemoveContextOfFolder(absl::string_view folder, Contexts& contexts);

// INVALID_ARGUMENT says line, field and remedy; `file` is what messages call it. An empty text has
// no contexts.
absl::StatusOr<Contexts> ParseContexts(absl::string_view text, const std::string& file);
// YAML that ParseContexts reads again. INVALID_ARGUMENT: it would not, as a path has bytes that
// YAML cannot hold.
absl::StatusOr<std::string> ContextsText(const Contexts& contexts);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_CONTEXT_CONTEXTS_H_
