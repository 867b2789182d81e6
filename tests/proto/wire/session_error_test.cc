#include "proto/wire/session_error.h"

#include <catch2/catch.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace strata::wire {
namespace {

TEST_CASE("the error of a session without lanes is told from others", "[wire]") {
  const absl::Status gone = LanesGone(SessionId(7), 3);
  CHECK(absl::IsPermissionDenied(gone));
  CHECK(gone.message() ==
        "header.session 7 hosts no lanes of the job (lane epoch 3): the scheduler gave them to "
        "others");
  CHECK(IsLanesGone(gone));
  const std::string named = absl::StrCat("server 1: ", gone.message());
  CHECK(IsLanesGone(absl::PermissionDeniedError(named)));
  CHECK_FALSE(IsLanesGone(absl::FailedPreconditionError(named)));
  CHECK_FALSE(IsLanesGone(absl::PermissionDeniedError("train.csv: not to be read")));
  CHECK_FALSE(IsLanesGone(absl::OkStatus()));
}

}  // namespace
}  // namespace strata::wire
