// The version of this source tree.
#ifndef STRATA_TOOLS_CLI_VERSION_H_
#define STRATA_TOOLS_CLI_VERSION_H_

namespace strata {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_VERSION_H_
