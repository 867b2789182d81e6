// How a phase is hit on purpose: a process of the cluster, the marker, stands still at a failpoint
// of the phase again and again while a job runs. Whoever is struck then is struck in that phase.
#ifndef STRATA_TESTS_FAULTS_MATRIX_SCENES_H_
#define STRATA_TESTS_FAULTS_MATRIX_SCENES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/faults/matrix/fault_matrix.h"

namespace strata::testing {

struct Scene {
  Phase phase;
  Role marker;
  const char* failpoint;
  // Hits of the failpoint from one standstill to the next. So each standstill but the first proves
  // that there was traffic since the one before, also of a marker that was killed there.
  uint32_t every;
  std::vector<Role> struck;  // in turn
};

// All scenes of a mode without copies. Every role is in some scene of every phase.
std::vector<Scene> ScenesOf(Mode mode);

// Scenes in which clocks are set, of all roles in turn.
std::vector<Scene> ClockScenesOf();

// The same of a job with copies, where the marker is whichever server stands still: all of them
// have the failpoints, as who is promoted, and who feeds a new copy, changes with each blow.
struct CopiesScene {
  Phase phase;
  std::string failpoints;  // a server's flag --failpoints
  // The phase comes only after some server was lost: one that heads shards, or any.
  bool needs_loss = false;
  bool of_head = false;
  bool loses_folder = false;  // of the server, as with its machine
};
std::vector<CopiesScene> CopiesScenesOf(Mode mode);

// The marker's flag --failpoints.
std::string ArmedFor(const Scene& scene);

}  // namespace strata::testing

#endif  // STRATA_TESTS_FAULTS_MATRIX_SCENES_H_
