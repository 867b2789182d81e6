#include "tools/cli/context/commands.h"

#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/runtime/base/clock.h"
#include "proto/runtime/credentials/certificate.h"
#include "tools/cli/context/context_file.h"
#include "tools/cli/context/context_text.h"
#include "tools/cli/context/contexts.h"
#include "tools/cli/context/my_credentials.h"

namespace strata {
namespace {

absl::Time Now() {
  Clock* const clock = Clock::Real();
  return clock->Wall(clock->Now());
}

void PrintLine(const std::string& line) { std::printf("%s\n", line.c_str()); }

// Links stay, since a renewal leads them elsewhere.
absl::StatusOr<std::string> AbsoluteFolder(const std::string& folder) {
  std::error_code error;
  std::string absolute = std::filesystem::absolute(folder, error).lexically_normal().string();
  if (error) return absl::NotFoundError(absl::StrCat(folder, ": ", error.message()));
  while (absolute.size() > 1 && absolute.back() == '/') absolute.pop_back();
  return absolute;
}

// Reads the certificate.
ShownContext Show(const Context& context, const Contexts& contexts) {
  ShownContext shown{context, context.name == contexts.current, {}, absl::OkStatus()};
  if (context.certs.empty()) return shown;
  const auto mine = OpenMyCredentials(context.certs, *Clock::Real());
  shown.problem = mine.status();
  if (mine.ok()) shown.facts = (*mine)->Current()->certificate.facts;
  return shown;
}

std::string Described(const ShownContext& shown) {
  return absl::StrCat("context '", shown.context.name, "': scheduler ", shown.context.scheduler,
                      ", ",
                      shown.facts.has_value() ? Describe(*shown.facts) : "without TLS (insecure)",
                      shown.current ? "; it is the current one" : "");
}

// What --json prints of a context, and what people read.
ExitCode Tell(const char* done, const ShownContext& shown, bool json) {
  PrintLine(json ? ContextJson(shown, Now()) : absl::StrCat(done, " ", Described(shown)));
  return kExitOk;
}

}  // namespace

ExitCode RunContextAdd(const ContextAddOptions& options) {
  if (options.certs.empty() == !options.insecure) {
    return ReportError(absl::InvalidArgumentError(
        "context add: give --certs DIR, the folder of your certificate, or --insecure for a "
        "cluster without TLS"));
  }
  Context context{options.name, options.scheduler, "", ""};
  if (!options.insecure) {
    const absl::StatusOr<std::string> certs = AbsoluteFolder(options.certs);
    if (!certs.ok()) return ReportError(certs.status());
    context.certs = *certs;
  }
  ShownContext shown = Show(context, {});
  if (!shown.problem.ok()) return ReportError(shown.problem);
  const absl::Status added = ChangeContexts([&](Contexts& contexts) {
    const absl::Status s = AddContext(context, contexts);
    shown.current = contexts.current == context.name;
    return s;
  });
  if (!added.ok()) return ReportError(added);
  return Tell("added", shown, options.json);
}

ExitCode RunContextUse(const ContextUseOptions& options) {
  Contexts after;
  const absl::Status used = ChangeContexts([&](Contexts& contexts) {
    const absl::Status s = UseContext(options.name, contexts);
    after = contexts;
    return s;
  });
  if (!used.ok()) return ReportError(used);
  const ShownContext shown = Show(*FindContext(after, options.name), after);
  if (!shown.problem.ok()) ReportError(shown.problem);
  if (options.json) return Tell("", shown, true);
  PrintLine(absl::StrCat("context '", options.name, "' is the current one: scheduler ",
                         shown.context.scheduler));
  return kExitOk;
}

ExitCode RunContextList(const ContextListOptions& options) {
  const absl::StatusOr<Contexts> contexts = ReadContexts();
  if (!contexts.ok()) return ReportError(contexts.status());
  std::vector<ShownContext> shown;
  for (const Context& context : contexts->all) shown.push_back(Show(context, *contexts));
  if (options.json) {
    PrintLine(ContextsJson(shown, Now()));
  } else {
    std::fputs(ContextsTable(shown, Now()).c_str(), stdout);
  }
  for (const ShownContext& each : shown) {
    if (each.problem.ok()) continue;
    std::fprintf(stderr, "strata: context '%s': %s\n", each.context.name.c_str(),
                 std::string(each.problem.message()).c_str());
  }
  return kExitOk;
}

ExitCode RunContextRemove(const ContextRemoveOptions& options) {
  ShownContext shown;
  const absl::Status removed = ChangeContexts([&](Contexts& contexts) {
    const Context* there = FindContext(contexts, options.name);
    if (there != nullptr) shown = {*there, there->name == contexts.current, {}, absl::OkStatus()};
    return RemoveContext(options.name, contexts);
  });
  if (!removed.ok()) return ReportError(removed);
  if (options.json) {
    PrintLine(ContextJson(shown, Now()));
    return kExitOk;
  }
  PrintLine(absl::StrCat("removed context '", options.name, "'",
                         shown.current ? "; no context is the current one now" : ""));
  return kExitOk;
}

}  // namespace strata
