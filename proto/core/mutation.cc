#include "proto/core/mutation.h"

#include <cstdlib>

namespace strata {

bool IsMutated(absl::string_view name) {
  static const char* const planted = std::getenv("STRATA_MUTATION");
  return planted != nullptr && name == planted;
}

}  // namespace strata
