#include "tests/faults/matrix/kill_matrix.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdio>
#include <random>
#include <span>
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

// Of kills, and of faults of the network. Four tests without copies and four with them have more
// than 200 of each together, and 5000 under --long.
uint64_t WantedPlain() { return LongRun() ? 900 : 36; }
uint64_t WantedWithCopies() { return LongRun() ? 350 : 15; }

// Under --long each run has draws of its own.
uint64_t SeedOf(Mode mode) {
  return LongRun() ? std::random_device()() : 1 + static_cast<uint64_t>(mode);
}

void CheckFull(const StruckCluster& cluster, std::span<const Phase> phases, Mode mode) {
  const FaultMatrix& matrix = cluster.matrix();
  std::fprintf(stderr, "%s", matrix.ToText().c_str());
  for (const FaultKind kind : kFaultKinds) {
    const auto met = cluster.network_faults().find(kind);
    const uint64_t times = met == cluster.network_faults().end() ? 0 : met->second;
    std::fprintf(stderr, "%s: %llu\n", NameOf(kind), static_cast<unsigned long long>(times));
  }
  for (const std::string& empty : matrix.Empty(phases, mode)) FAIL_CHECK("no " << empty);
}

}  // namespace

void FillMatrix(Mode mode) {
  const ScratchFolder folder = Folder();
  StruckCluster cluster({.mode = mode, .folder = folder.path(), .seed = SeedOf(mode)});
  const FaultMatrix& matrix = cluster.matrix();
  const std::vector<Scene> scenes = ScenesOf(mode);
  do {
    for (const Scene& scene : scenes) cluster.Run(scene);
    cluster.RunRecovery();
  } while (matrix.Total(Blow::kKill) < WantedPlain() || matrix.Total(Blow::kProxy) < WantedPlain());
  // A fault of the network may be over before somebody speaks.
  for (int again = 0; again < 3; ++again) {
    for (const Scene& scene : scenes) {
      if (!matrix.Full(scene.phase, mode)) cluster.Run(scene);
    }
    if (!matrix.Full(Phase::kRecovery, mode)) cluster.RunRecovery();
  }
  CheckFull(cluster, kPlainPhases, mode);
  for (const FaultKind kind : kFaultKinds) {
    INFO(NameOf(kind));
    CHECK(cluster.network_faults().contains(kind));
  }
  CHECK(cluster.flips() > 0);
}

void FillCopiesMatrix(Mode mode) {
  const ScratchFolder folder = Folder();
  StruckCluster cluster(
      {.mode = mode, .folder = folder.path(), .seed = SeedOf(mode), .copies = true, .kills = 3});
  const FaultMatrix& matrix = cluster.matrix();
  const std::vector<CopiesScene> scenes = CopiesScenesOf(mode);
  do {
    for (const CopiesScene& scene : scenes) cluster.RunCopies(scene);
  } while (matrix.Total(Blow::kKill) < WantedWithCopies() ||
           matrix.Total(Blow::kProxy) < WantedWithCopies());
  for (int again = 0; again < 3; ++again) {
    for (const CopiesScene& scene : scenes) {
      if (!matrix.Full(scene.phase, mode)) cluster.RunCopies(scene);
    }
  }
  CheckFull(cluster, kCopiesPhases, mode);
}

void FillClockMatrix(Mode mode) {
  const ScratchFolder folder = Folder();
  StruckCluster cluster(
      {.mode = mode, .folder = folder.path(), .seed = SeedOf(mode), .own_clocks = true});
  for (const Scene& scene : ClockScenesOf()) cluster.RunClocks(scene);
  std::fprintf(stderr, "%s", cluster.matrix().ToText().c_str());
  constexpr Blow kClocks[] = {Blow::kClock};
  for (const std::string& empty : cluster.matrix().Empty(kClockPhases, mode, kClocks)) {
    FAIL_CHECK("no " << empty);
  }
}

}  // namespace strata::testing
