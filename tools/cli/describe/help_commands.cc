#include "tools/cli/describe/help_commands.h"

#include <sys/wait.h>

#include <cstdio>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tools/cli/base/text_file.h"
#include "tools/cli/cluster/supervisor.h"
#include "tools/cli/describe/commands.h"
#include "tools/cli/describe/completion.h"
#include "tools/cli/describe/job_schema.h"
#include "tools/cli/describe/man_page.h"

namespace strata {
namespace {

struct Daemon {
  const char* name;
  const char* summary;
};
constexpr Daemon kDaemons[] = {
    {"strata-scheduler", "membership, jobs and recovery of a Strata cluster"},
    {"strata-server", "owns shards of the parameters of Strata's jobs"},
    {"strata-worker", "reads data, computes and pushes gradients for Strata's jobs"},
};

// What `program --help` prints.
absl::StatusOr<std::string> HelpOf(const std::string& program) {
  std::FILE* pipe = popen(absl::StrCat(ShellQuote(program), " --help").c_str(), "r");
  if (pipe == nullptr) return absl::InternalError(absl::StrCat("cannot start ", program));
  std::string text;
  char buffer[4096];
  while (const size_t n = std::fread(buffer, 1, sizeof(buffer), pipe)) text.append(buffer, n);
  const int status = pclose(pipe);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || text.empty()) {
    return absl::InternalError(absl::StrCat(program, " --help failed"));
  }
  return text;
}

}  // namespace

ExitCode RunCompletion(const CompletionOptions& options) {
  const CommandHelp root = DescribeCommands();
  const std::string script = options.shell == "bash"  ? BashCompletion(root, AllPaths())
                             : options.shell == "zsh" ? ZshCompletion(root, AllPaths())
                                                      : FishCompletion(root, AllPaths());
  std::fputs(script.c_str(), stdout);
  return kExitOk;
}

ExitCode RunMan(const ManOptions& options) {
  std::map<std::string, std::string> pages = ManualPages(DescribeCommands(), JobSchema());
  for (const Daemon& daemon : kDaemons) {
    const absl::StatusOr<std::string> program = FindProgram("", daemon.name);
    const absl::StatusOr<std::string> help = program.ok() ? HelpOf(*program) : program.status();
    if (help.ok()) {
      pages[absl::StrCat(daemon.name, ".8")] = DaemonPage(daemon.name, daemon.summary, *help);
    } else {
      std::fprintf(
          stderr, "strata: no page of %s: %s\n", daemon.name,
          program.ok() ? std::string(help.status().message()).c_str() : "it is not beside strata");
    }
  }
  for (const auto& [name, text] : pages) {
    const absl::Status written = WriteTextFile(absl::StrCat(options.output, "/", name), text);
    if (!written.ok()) return ReportError(written);
  }
  std::fprintf(stderr, "%zu pages are in %s\n", pages.size(), options.output.c_str());
  return kExitOk;
}

}  // namespace strata
