#include "scheduler/job/chains/copy_refusals.h"

#include <catch2/catch.hpp>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/time.h"

namespace strata::scheduler {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1767225600);

TEST_CASE("a process that lost a copy gets none for a while, and another of its name may",
          "[chains]") {
  FailedCopies failed;
  CHECK_FALSE(failed.Until("s0", 1, kNow));
  failed.Add("s0", 1, kNow + absl::Seconds(30), kNow);
  CHECK(failed.Until("s0", 1, kNow) == kNow + absl::Seconds(30));
  CHECK_FALSE(failed.Until("s0", 2, kNow));
  CHECK_FALSE(failed.Until("s1", 1, kNow));
  CHECK(failed.Until("s0", 1, kNow + absl::Seconds(29)));
  CHECK_FALSE(failed.Until("s0", 1, kNow + absl::Seconds(30)));
  failed.Add("s0", 2, kNow + absl::Seconds(40), kNow + absl::Seconds(10));
  CHECK_FALSE(failed.Until("s0", 1, kNow + absl::Seconds(10)));
  CHECK(failed.Until("s0", 2, kNow + absl::Seconds(39)));
}

TEST_CASE("why no server takes a copy is told of each, of a few by name", "[chains]") {
  using Why = CopyRefusal;
  CHECK(DescribeRefusals({}) ==
        "no server can take another: none is there beside those that have one; start a server in "
        "another zone (strata-server --zone; default: each is one)");
  CHECK(absl::StrContains(
      DescribeRefusals({{.server = "s1", .why = Why::kSilent},
                        {.server = "s2", .why = Why::kZone, .zone = "a"},
                        {.server = "s3", .why = Why::kFailed, .until = kNow},
                        {.server = "s4", .why = Why::kEnded},
                        {.server = "s5", .why = Why::kRoom},
                        {.server = "s6", .why = Why::kGpu}}),
      "another: s1 is silent; s2 is in zone a, which has one; s3 lost its copy and gets none "
      "before "
      "00:00:00 UTC, unless it is started again; s4 has ended or answers nobody, as a server "
      "beside it saw; and 2 "
      "more; start"));
  CHECK(absl::StrContains(
      DescribeRefusals({{.server = "s5", .why = Why::kRoom}, {.server = "s6", .why = Why::kGpu}}),
      "another: s5 has not the room (`strata nodes` shows it); s6 lacks the GPU "
      "that the job asks for; start"));
}

}  // namespace
}  // namespace strata::scheduler
