// The error of a push whose session hosts no lanes of the job any more.
#ifndef STRATA_PROTO_WIRE_SESSION_ERROR_H_
#define STRATA_PROTO_WIRE_SESSION_ERROR_H_

#include <cstdint>

#include "absl/status/status.h"
#include "proto/core/ids.h"

namespace strata::wire {

// PERMISSION_DENIED. `epoch`: ServerJobDirective.lane_epoch that the server goes by.
absl::Status LanesGone(SessionId session, uint64_t epoch);

// Whether it is that error, whatever was put before its text: the lanes are others', as the
// scheduler decided, and trying again is no use until it has been heard.
bool IsLanesGone(const absl::Status& status);

}  // namespace strata::wire

#endif  // STRATA_PROTO_WIRE_SESSION_ERROR_H_
