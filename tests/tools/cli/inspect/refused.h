// What is said of what a user gave wrongly.
#ifndef STRATA_TESTS_TOOLS_CLI_INSPECT_REFUSED_H_
#define STRATA_TESTS_TOOLS_CLI_INSPECT_REFUSED_H_

#include <catch2/catch.hpp>
#include <string>

#include "absl/status/status.h"

namespace strata {

inline std::string Refused(const absl::Status& status) {
  CHECK(absl::IsInvalidArgument(status));
  return std::string(status.message());
}

}  // namespace strata

#endif  // STRATA_TESTS_TOOLS_CLI_INSPECT_REFUSED_H_
