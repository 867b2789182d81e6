// What of the update log may go: only what an image stands for that is whole, whichever images fail
// and whenever the server dies.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/runtime/base/failpoints.h"
#include "tests/seed.h"
#include "tests/server/job/bench.h"
#include "tests/server/shard/shard_fixture.h"

namespace strata::server {
namespace {

TEST_CASE("no log goes before the image that stands for it is whole",
          "[service][recovery][seeds]") {
  const std::vector<uint64_t> seeds = Seeds("log_removal", 1, 4);
  constexpr uint64_t kLast = 45;
  const auto references = References(4, 1, kLast);
  uint64_t images = 0;
  for (const std::string point : {"server.image", "server.snapshot.write", "server.snapshot.finish",
                                  "server.snapshot.finished"}) {
    for (const uint64_t seed : seeds) {
      INFO(point << ", seed " << seed);
      std::mt19937_64 random(seed);
      JobBench bench(1);
      bench.plan().log_bytes = 20000;
      bench.Start();
      bench.plan().was_open = true;
      REQUIRE(bench.OpenSession().ok());
      std::optional<ScopedFailpoint> disk;
      uint64_t most_calm = 0, calm_since = 0;
      for (uint64_t step = 1; step <= kLast; ++step) {
        if (disk && random() % 6 == 0) {
          disk.reset();
          calm_since = step;
        } else if (!disk && random() % 8 == 0) {
          disk.emplace(point, FailpointPlan{.act = FailWith(absl::UnavailableError("planted"))});
        }
        REQUIRE(bench.PushStep(4, step, {{0, 1}}).ok());
        // Images that failed are made up for: of every shard, one after the other.
        if (!disk && step >= calm_since + 12) {
          most_calm = std::max(most_calm, bench.service_.Find(JobId(1))->log_bytes());
        }
        if (random() % 5 != 0) continue;
        images += bench.service_.Find(JobId(1))->images_written();
        if (disk) calm_since = step;
        disk.reset();  // a server that opens writes what it needs
        bench.Restart();
        REQUIRE(bench.recovered_);
        REQUIRE(bench.OpenSession().ok());
        REQUIRE(bench.Hash(step) == references[step].Hash());
        bench.CheckServed(*bench.Pull(step, 0), references[step - 1]);
      }
      CHECK(most_calm < 30000);
    }
  }
  if (!SeedsAreGiven()) CHECK(images > 50);
}

}  // namespace
}  // namespace strata::server
