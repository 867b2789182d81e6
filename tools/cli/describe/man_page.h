// Manual pages, made from the tree of commands and from job.proto's comments.
#ifndef STRATA_TOOLS_CLI_DESCRIBE_MAN_PAGE_H_
#define STRATA_TOOLS_CLI_DESCRIBE_MAN_PAGE_H_

#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "tools/cli/describe/command_help.h"
#include "tools/cli/describe/job_schema.h"

namespace strata {

// By file name: strata.1, strata-train.1, strata-checkpoint-list.1 ... one per command, and
// strata-job.5 on the job file. Text in the man macros of troff.
std::map<std::string, std::string> ManualPages(const CommandHelp& root, const JobFileField& job);

// The page of a daemon (section 8) around what its --help printed.
std::string DaemonPage(absl::string_view name, absl::string_view summary, absl::string_view help);

// `text` so that troff prints it as it is.
std::string TroffEscape(absl::string_view text);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_DESCRIBE_MAN_PAGE_H_
