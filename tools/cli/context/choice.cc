#include "tools/cli/context/choice.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/job/checks/shown.h"
#include "tools/cli/context/context_file.h"
#include "tools/cli/context/contexts.h"

namespace strata {
namespace {

absl::Status NoCurrentContext(const Contexts& contexts) {
  if (contexts.all.empty()) {
    return absl::NotFoundError(
        "no cluster is known here; start one with 'strata up', or name one with --scheduler "
        "HOST:PORT, or for good with 'strata context add'");
  }
  return absl::NotFoundError(absl::StrCat(
      "no context is the current one; choose one with 'strata context use NAME', or name one with "
      "--context; there are: ",
      ContextNames(contexts)));
}

// Folders that are typed are shown in messages as they are typed.
absl::StatusOr<ChosenCluster> FromContext(const ClusterOptions& given) {
  const absl::StatusOr<Contexts> contexts = ReadContexts();
  if (!contexts.ok()) return contexts.status();
  const std::string& name = given.context.empty() ? contexts->current : given.context;
  if (name.empty()) return NoCurrentContext(*contexts);
  const Context* context = FindContext(*contexts, name);
  if (context == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("--context ", ShownText(name),
                     ": there is no such context; there are: ", ContextNames(*contexts)));
  }
  return ChosenCluster{context->scheduler, context->certs,
                       absl::StrCat("context '", name, "' of ", ContextsPath())};
}

}  // namespace

absl::StatusOr<ChosenCluster> ChooseCluster(const ClusterOptions& given) {
  absl::StatusOr<ChosenCluster> chosen = ChosenCluster{given.scheduler, "", "--scheduler"};
  if (given.scheduler.empty()) {
    chosen = FromContext(given);
    if (!chosen.ok()) return chosen;
  } else if (absl::Status s = CheckSchedulerAddress(given.scheduler); !s.ok()) {
    return absl::Status(s.code(), absl::StrCat("--", s.message()));
  }
  if (!given.certs.empty()) chosen->certs = given.certs;
  if (given.insecure) chosen->certs.clear();
  return chosen;
}

std::string FolderOfContext() {
  const absl::StatusOr<Contexts> contexts = ReadContexts();
  if (!contexts.ok()) return "";
  const Context* context = FindContext(*contexts, contexts->current);
  return context == nullptr ? "" : context->folder;
}

}  // namespace strata
