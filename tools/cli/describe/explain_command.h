// `strata explain`: what a job file may say.
// Tested by tests/tools/cli/describe/explain_test.cc
#ifndef STRATA_TOOLS_CLI_DESCRIBE_EXPLAIN_COMMAND_H_
#define STRATA_TOOLS_CLI_DESCRIBE_EXPLAIN_COMMAND_H_

#include <string>

#include "tools/cli/base/exit_code.h"
#include "tools/cli/base/options.h"
#include "tools/cli/describe/job_schema.h"

namespace strata {

// Lines of at most 100 columns. Recursive: the fields of the fields too, indented.
enum class Depth { kOneLevel, kRecursive };
std::string FieldText(const JobFileField& field, Depth depth);

// One object: path, type, default and required where there are any, description, fields.
std::string FieldJson(const JobFileField& field, Depth depth);

// Prints the field at options.path.
ExitCode RunExplain(const ExplainOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_DESCRIBE_EXPLAIN_COMMAND_H_
