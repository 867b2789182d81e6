// StruckCluster: clocks that are set.
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/faults/matrix/fault_matrix.h"
#include "tests/faults/matrix/scenes.h"
#include "tests/faults/matrix/struck_cluster.h"

namespace strata::testing {

void StruckCluster::RunClocks(const Scene& scene) {
  INFO(NameOf(o_.mode) << ", clocks, " << NameOf(scene.phase) << ", seed " << o_.seed);
  const std::string marker = Name(scene.marker), armed = ArmedFor(scene);
  phase_ = scene.phase;
  Begin(marker, armed);
  clocks_.Remember(cluster_);
  for (const Role role : scene.struck) {
    const std::string victim = Name(role);
    for (const int hours : {1, -1, 0}) {
      if (!StandsStill(marker)) {
        EndClocks();
        Begin(marker, armed);
        clocks_.Remember(cluster_);
        REQUIRE(StandsStill(marker));
      }
      std::fprintf(stderr, "  clock of %s: %d h, %.2f s\n", victim.c_str(), hours,
                   absl::ToDoubleSeconds(absl::Now() - begun_at_));
      clocks_.Set(victim, hours);
      matrix_.Count({role, phase_, o_.mode}, Blow::kClock);
      cluster_.process(marker).Signal(SIGCONT);
    }
  }
  CHECK(clocks_.Blind(cluster_).empty());
  StandsStill(marker);              // after the last one as well, or all is done
  cluster_.KillAndStart({marker});  // it stands still no more
  clocks_.Remember(cluster_);
  EndClocks();
  std::fprintf(stderr, "%s, clocks, %s: %.2f s\n", NameOf(o_.mode), NameOf(scene.phase),
               absl::ToDoubleSeconds(absl::Now() - begun_at_));
}

void StruckCluster::EndClocks() {
  End();
  CHECK(WorkerChanges() == 0);
  CHECK_FALSE(HasCondition(cluster_.Status(job_), "ServerLost"));
}

}  // namespace strata::testing
