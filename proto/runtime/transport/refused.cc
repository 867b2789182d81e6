#include "proto/runtime/transport/refused.h"

#include "absl/strings/match.h"

namespace strata {

// gRPC has no code of its own for it, and repeats what the system said.
bool IsRefused(const absl::Status& status) {
  return absl::IsUnavailable(status) && absl::StrContains(status.message(), "refused");
}

}  // namespace strata
