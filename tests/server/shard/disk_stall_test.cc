#include "server/shard/disk_stall.h"

#include <catch2/catch.hpp>

namespace strata::server {
namespace {

const absl::Status kFull = absl::ResourceExhaustedError("/log/1: No space left on device");

TEST_CASE("a stall is logged at its beginning, then now and then with a count", "[disk_stall]") {
  DiskStall stall;
  absl::Time now = absl::UnixEpoch();
  CHECK(!stall.info(now));
  CHECK(stall.Failed(kFull, now) == 1);
  uint64_t said = 0, times = 0;
  for (int i = 1; i <= 300; ++i) {  // half a minute of tries
    now += absl::Milliseconds(100);
    const uint64_t n = stall.Failed(kFull, now);
    said += n > 0;
    times += n;
  }
  CHECK(said == 3);
  CHECK(times == 300);
  REQUIRE(stall.info(now));
  CHECK(stall.info(now)->why == kFull);
  CHECK(stall.info(now)->since == absl::UnixEpoch());
}

TEST_CASE("a stall ends once, and what comes soon after is the same one", "[disk_stall]") {
  DiskStall stall;
  const absl::Time begin = absl::UnixEpoch();
  CHECK(!stall.Succeeded(begin));
  CHECK(stall.Failed(kFull, begin) == 1);
  CHECK(stall.Succeeded(begin + absl::Seconds(3)) == absl::Seconds(3));
  CHECK(!stall.Succeeded(begin + absl::Seconds(3)));
  // Full to the brim: one commit went through.
  CHECK(stall.info(begin + absl::Seconds(4)));
  CHECK(stall.Failed(absl::UnavailableError("x"), begin + absl::Seconds(4)) == 0);
  REQUIRE(stall.info(begin + absl::Seconds(20)));
  CHECK(stall.info(begin + absl::Seconds(20))->since == begin);
  CHECK(stall.info(begin + absl::Seconds(20))->why == absl::UnavailableError("x"));
  // Really over; another one is news at once.
  CHECK(stall.Succeeded(begin + absl::Seconds(21)) == absl::Seconds(21));
  CHECK(!stall.info(begin + absl::Seconds(23)));
  CHECK(stall.Failed(kFull, begin + absl::Seconds(24)) == 1);
  CHECK(stall.info(begin + absl::Seconds(24))->since == begin + absl::Seconds(24));
}

}  // namespace
}  // namespace strata::server
