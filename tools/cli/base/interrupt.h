// Ctrl-C and SIGTERM as a flag.
// Tested by tests/tools/cli/terminal_test.cc
#ifndef STRATA_TOOLS_CLI_BASE_INTERRUPT_H_
#define STRATA_TOOLS_CLI_BASE_INTERRUPT_H_

#include <atomic>

namespace strata {

// From the first call on, SIGINT and SIGTERM set the returned flag instead of ending the process;
// a second one ends it at once with exit code 130. The flag lives as long as the process.
std::atomic<bool>& CatchInterrupts();

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_BASE_INTERRUPT_H_
