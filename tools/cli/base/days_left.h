// How long something is good for, in days.
// Tested by tests/tools/cli/certs/certs_text_test.cc
#ifndef STRATA_TOOLS_CLI_BASE_DAYS_LEFT_H_
#define STRATA_TOOLS_CLI_BASE_DAYS_LEFT_H_

#include <cstdint>

#include "absl/time/time.h"

namespace strata {

// Days until `until`, begun ones as whole ones; 0: it is over.
inline int64_t DaysLeft(absl::Time until, absl::Time now) {
  if (until <= now) return 0;
  constexpr absl::Duration kDay = absl::Hours(24);
  return absl::Ceil(until - now, kDay) / kDay;
}

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_BASE_DAYS_LEFT_H_
