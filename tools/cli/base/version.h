// The version of this source tree.
// Tested by tests/tools/cli/strata_binary_test.cc
#ifndef STRATA_TOOLS_CLI_BASE_VERSION_H_
#define STRATA_TOOLS_CLI_BASE_VERSION_H_

namespace strata {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_BASE_VERSION_H_
