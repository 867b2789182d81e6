#include "tests/faults/matrix/kill_matrix.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/e2e/cluster/embedded_training.h"
#include "tests/faults/matrix/scenes.h"
#include "tests/faults/matrix/struck_cluster.h"
#include "tests/faults/proxy/network_fault.h"
#include "tests/skip.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

// Four tests have 200 each together, and 5000 under --long.
uint64_t Wanted() { return LongRun() ? 1250 : 50; }

}  // namespace

void FillMatrix(Mode mode) {
  const ScratchFolder folder = Folder();
  StruckCluster cluster(
      {.mode = mode, .folder = folder.path(), .seed = 1 + static_cast<uint64_t>(mode)});
  const FaultMatrix& matrix = cluster.matrix();
  const std::vector<Scene> scenes = ScenesOf(mode);
  do {
    for (const Scene& scene : scenes) cluster.Run(scene);
    cluster.RunRecovery();
  } while (matrix.Total(Blow::kKill) < Wanted() || matrix.Total(Blow::kProxy) < Wanted());
  // A fault of the network may be over before somebody speaks.
  for (int again = 0; again < 3; ++again) {
    for (const Scene& scene : scenes) {
      if (!matrix.Full(scene.phase, mode)) cluster.Run(scene);
    }
    if (!matrix.Full(Phase::kRecovery, mode)) cluster.RunRecovery();
  }
  std::fprintf(stderr, "%s", matrix.ToText().c_str());
  for (const FaultKind kind : kFaultKinds) {
    const auto met = cluster.network_faults().find(kind);
    const uint64_t times = met == cluster.network_faults().end() ? 0 : met->second;
    std::fprintf(stderr, "%s: %llu\n", NameOf(kind), static_cast<unsigned long long>(times));
    CHECK(times > 0);
  }
  for (const std::string& empty : matrix.Empty(mode)) FAIL_CHECK("no " << empty);
  CHECK(cluster.flips() > 0);
}

}  // namespace strata::testing
