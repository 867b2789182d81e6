// Names of zones: what fails together, as a rack or a site.
// Tested by tests/scheduler/nodes/membership_test.cc
#ifndef STRATA_PROTO_CORE_ZONE_H_
#define STRATA_PROTO_CORE_ZONE_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace strata {

inline constexpr size_t kMaxZoneBytes = 64;

// INVALID_ARGUMENT unless it is 1 to 64 letters, digits, '.', '_' and '-'; says what it is.
absl::Status CheckZone(absl::string_view zone);

}  // namespace strata

#endif  // STRATA_PROTO_CORE_ZONE_H_
