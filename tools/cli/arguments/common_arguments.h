// Arguments that several commands have.
// Tested by tests/tools/cli/arguments/command_line_test.cc
#ifndef STRATA_TOOLS_CLI_ARGUMENTS_COMMON_ARGUMENTS_H_
#define STRATA_TOOLS_CLI_ARGUMENTS_COMMON_ARGUMENTS_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tools/cli/base/options.h"

namespace strata {

// Numbers that are refused with a short message: CLI11's own tells the largest double in 309
// digits.
CLI::Validator NotNegative();
CLI::Validator Positive();

// A folder to write to: with a name, and not standard output.
CLI::Validator NamedFolder();

void AddJson(CLI::App* command, bool& json);

// -f and --set.
void AddSource(CLI::App* command, JobSource& source);

// --scheduler, --context, --certs and --insecure.
void AddCluster(CLI::App* command, ClusterOptions& cluster);

// --certs and --insecure, one of them.
void AddCredentials(CLI::App* command, std::string& certs, bool& insecure);

// --resume and --overwrite.
void AddFresh(CLI::App* command, bool& resume, bool& overwrite);

void AddDataRoots(CLI::App* command, std::vector<std::string>& roots);

void AddTimeout(CLI::App* command, double& seconds, const char* help);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_ARGUMENTS_COMMON_ARGUMENTS_H_
