#include "proto/wire/session_error.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace strata::wire {
namespace {

constexpr char kText[] = " hosts no lanes of the job";

}  // namespace

absl::Status LanesGone(SessionId session, uint64_t epoch) {
  return absl::PermissionDeniedError(absl::StrCat("header.session ", session.value, kText,
                                                  " (lane epoch ", epoch,
                                                  "): the scheduler gave them to others"));
}

bool IsLanesGone(const absl::Status& status) {
  return absl::IsPermissionDenied(status) && absl::StrContains(status.message(), kText);
}

}  // namespace strata::wire
