// What a job's users are told when rows cannot be read from below DRAM, or find no memory.
#include <catch2/catch.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "proto/runtime/base/failpoints.h"
#include "server/shard/disk_stall.h"
#include "server/shard/runner.h"
#include "tests/server/job/bench.h"
#include "tests/server/shard/shard_fixture.h"

namespace strata::server {
namespace {

TEST_CASE("a pull that finds no room below DRAM is told, until one is served", "[service]") {
  const auto references = References(2, 1, 10);
  JobBench bench(1);
  bench.LimitDram();
  bench.plan().row_file = true;
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  for (uint64_t step = 1; step <= 10; ++step) REQUIRE(bench.PushStep(2, step, {{0, 1}}).ok());
  const auto troubles = [&] { return bench.service_.Find(JobId(1))->Report().troubles(); };
  CHECK(troubles().empty());
  {
    const ScopedFailpoint full(
        "tier.write", {.act = FailWith(absl::ResourceExhaustedError("SSD tier in x: no room"))});
    const auto answer = bench.Pull(11, 0);
    REQUIRE(answer->has_value());
    CHECK(absl::IsResourceExhausted((*answer)->status()));
    REQUIRE(troubles().size() == 1);
    CHECK(troubles()[0].reason() == "DiskFull");
    CHECK(absl::StartsWith(troubles()[0].message(), "reads of "));
    CHECK(absl::StrContains(troubles()[0].message(), "SSD tier in x: no room"));
  }
  bench.CheckServed(*bench.Pull(11, 0), references[10]);
  bench.timer_.Advance(2 * DiskStall::kSettle);
  CHECK(troubles().empty());
}

TEST_CASE("a commit that finds no memory says so, and goes through when there is some",
          "[service]") {
  const auto references = References(2, 1, 1);
  JobBench bench(1);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  const auto troubles = [&] { return bench.service_.Find(JobId(1))->Report().troubles(); };
  {
    const ScopedFailpoint none("huge_memory.allocate",
                               {.act = FailWith(absl::ResourceExhaustedError("none"))});
    REQUIRE(bench.PushStep(2, 1, {{0, 1}}).ok());  // held; the commit waits
    REQUIRE(troubles().size() == 1);
    CHECK(troubles()[0].reason() == "MemoryFull");
    CHECK(absl::StartsWith(troubles()[0].message(), "commits of 3 of 3 shards wait"));
    CHECK(absl::StrContains(troubles()[0].message(), "the system has no "));
  }
  bench.timer_.Advance(ShardRunner::kRetryAfter);
  bench.pool_.RunAll();
  bench.CheckServed(*bench.Pull(2, 0), references[1]);
  bench.timer_.Advance(2 * DiskStall::kSettle);
  CHECK(troubles().empty());
}

TEST_CASE("a push behind a step that is not applied yet is told to come again", "[service]") {
  const auto references = References(2, 1, 2);
  JobBench bench(1);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  {
    const ScopedFailpoint trouble("server.commit.appended",
                                  {.act = FailWith(absl::UnavailableError("disk"))});
    REQUIRE(bench.PushStep(2, 1, {{0, 1}}).ok());  // the log has it
    const absl::Status next = bench.PushStep(2, 2, {{0, 1}}).status();
    CHECK(absl::IsUnavailable(next));
    CHECK(absl::StrContains(next.message(), "step 1 is in the log and not applied yet"));
  }
  REQUIRE(bench.PushStep(2, 2, {{0, 1}}).ok());  // who comes finds it applied
  bench.CheckServed(*bench.Pull(3, 0), references[2]);
}

}  // namespace
}  // namespace strata::server
