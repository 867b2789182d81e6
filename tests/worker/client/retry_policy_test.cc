#include "worker/client/retry_policy.h"

#include <catch2/catch.hpp>
#include <map>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace strata {
namespace {

using Code = absl::StatusCode;

TEST_CASE("waits double from 10 ms to a second", "[retry]") {
  RetryPolicy retry(nullptr);
  CHECK(retry.failures() == 0);
  uint32_t failures = 0;
  for (int expected : {10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000, 1000, 1000, 1000}) {
    CHECK(retry.OnFailure() == absl::Milliseconds(expected));
    CHECK(retry.failures() == ++failures);
  }
  // However long a server stays away.
  for (int i = 0; i < 100; ++i) REQUIRE(retry.OnFailure() == absl::Seconds(1));
}

TEST_CASE("a success forgets the failures before it", "[retry]") {
  RetryPolicy retry(nullptr);
  for (int i = 0; i < 5; ++i) retry.OnFailure();
  retry.OnSuccess();
  CHECK(retry.failures() == 0);
  CHECK(retry.OnFailure() == absl::Milliseconds(10));
  CHECK(retry.OnFailure() == absl::Milliseconds(20));
}

TEST_CASE("each code of an error means one thing", "[retry]") {
  // As DESIGN.md, "The wire", and the comment of ErrorClass have them.
  const std::map<Code, ErrorClass> expected = {
      {Code::kUnavailable, ErrorClass::kRetry},
      {Code::kDeadlineExceeded, ErrorClass::kRetry},
      {Code::kAborted, ErrorClass::kRetry},
      {Code::kCancelled, ErrorClass::kRetry},
      {Code::kResourceExhausted, ErrorClass::kRetry},
      {Code::kDataLoss, ErrorClass::kRetry},
      {Code::kFailedPrecondition, ErrorClass::kReopen},
      {Code::kNotFound, ErrorClass::kReopen},
      {Code::kInvalidArgument, ErrorClass::kFatal},
      {Code::kPermissionDenied, ErrorClass::kFatal},
      {Code::kUnauthenticated, ErrorClass::kRetry},
      {Code::kUnimplemented, ErrorClass::kFatal},
      {Code::kInternal, ErrorClass::kFatal},
      {Code::kUnknown, ErrorClass::kFatal},
      {Code::kAlreadyExists, ErrorClass::kFatal},
      {Code::kOutOfRange, ErrorClass::kFatal},
  };
  for (const auto& [code, meaning] : expected) {
    INFO(absl::StatusCodeToString(code));
    CHECK(Classify(absl::Status(code, "x")) == meaning);
  }
}

}  // namespace
}  // namespace strata
