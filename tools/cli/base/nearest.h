// The name that a user most likely meant.
#ifndef STRATA_TOOLS_CLI_BASE_NEAREST_H_
#define STRATA_TOOLS_CLI_BASE_NEAREST_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace strata {

// Fewest insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`
// (optimal string alignment), ignoring case, '_' and '-'.
size_t EditDistance(absl::string_view a, absl::string_view b);

// The candidate nearest to `name`, the first of equals; "" when none is within a third of the
// name's length (at least 2 edits).
std::string Nearest(absl::string_view name, const std::vector<std::string>& candidates);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_BASE_NEAREST_H_
