#include "server/shard/request.h"

#include <catch2/catch.hpp>
#include <string>

#include "absl/status/status.h"

namespace strata::server {
namespace {

TEST_CASE("a request waits for the memory of others, and for none that will never be there",
          "[server]") {
  RequestMemory memory(100);
  auto held = memory.Take(60);
  REQUIRE(held.ok());
  CHECK(absl::IsResourceExhausted(memory.Take(41).status()));  // a worker tries again
  CHECK(memory.Take(40).ok());
  held = absl::CancelledError();
  CHECK(memory.used() == 0);
  CHECK(memory.Take(100).ok());
  const absl::Status never = memory.Take(101).status();
  CHECK(absl::IsInvalidArgument(never));  // which ends the job
  for (const char* part : {"101 bytes", "at most 100", "--request-bytes", "batchSize"}) {
    CHECK_THAT(std::string(never.message()), Catch::Contains(part));
  }
  CHECK(memory.used() == 0);
}

}  // namespace
}  // namespace strata::server
