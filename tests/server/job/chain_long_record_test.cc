// A step that is longer than a call to the next copy.
#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/core/ids.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/wire/message_codec.h"
#include "server/job/chain_link.h"
#include "tests/server/job/bench.h"
#include "tests/server/job/copies.h"
#include "tests/server/shard/shard_fixture.h"

namespace strata::server {
namespace {

// Sums of so many rows of shard 0, of 28 bytes each in its log.
Sums ManyRows(JobBench& bench, uint64_t rows, float value) {
  Sums sums;
  const PartitionRange range = bench.plan().shards[0].range;
  const uint64_t first = bench.First(range).value;
  const uint64_t stride = (bench.Last(range).value - first) / rows;
  for (uint64_t i = 0; i < rows; ++i) {
    sums[0].emplace_hint(sums[0].end(), Position(first + i * stride),
                         std::vector<float>{value, -value, 1, 2, value});
  }
  return sums;
}

void Push(Copies& copies, uint64_t step, const Sums& sums) {
  wire::PushFields fields;
  fields.step = Step(step);
  const auto answer =
      copies[0].Call(DataMethod::kPush, copies[0].PushMessage(1, step, {{0, 1}}, fields, &sums));
  REQUIRE(answer->has_value());
  REQUIRE((*answer)->ok());
}

TEST_CASE("a step that no call holds comes to the next copy, also when a part of it is lost",
          "[chain]") {
  constexpr uint64_t kRows = 700'000;
  static_assert(kRows * 28 > ChainLink::kCallBytes);
  Copies copies(2);
  copies.Open(0);
  copies.Open(1);
  copies.TellAll(1, {0, 1});
  copies.Run();
  copies.OpenSession(0);
  Push(copies, 1, ManyRows(copies[0], kRows, 0.5f));
  CHECK(copies.Clock(0) == 0);
  copies.Run();
  CHECK(copies.Clock(0) == 1);
  {  // its second part
    const ScopedFailpoint lost(
        "server.chain.received",
        {.act = FailWith(absl::UnavailableError("lost")), .first_hit = 2, .hits = 1});
    Push(copies, 2, ManyRows(copies[0], kRows, 0.25f));
    copies.Run();
    CHECK(copies.Clock(0) == 1);
  }
  copies.Pass(absl::Seconds(10));
  CHECK(copies.Clock(0) == 2);
  copies.Push(0, 3);
  copies.Run();
  CHECK(copies.Clock(0) == 3);
  const storage::HashSum hash = copies[0].Hash(3);
  copies.Kill(0);
  copies.Tell(1, 2, {1});
  copies.Run();
  copies.OpenSession(1);
  REQUIRE(copies[1].Hash(3) == hash);
}

}  // namespace
}  // namespace strata::server
