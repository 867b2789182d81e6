// What is killed, stopped or cut off, in which phase of a job and in which mode: the table that the
// tests of faults fill, and of which no possible cell may stay empty.
#ifndef STRATA_TESTS_FAULTS_MATRIX_FAULT_MATRIX_H_
#define STRATA_TESTS_FAULTS_MATRIX_FAULT_MATRIX_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace strata::testing {

enum class Role { kServer, kWorker, kScheduler };
// What the cluster does at the moment. Another phase is a line here and a place in scenes.cc.
enum class Phase { kPull, kPush, kCommit, kCheckpoint, kImage, kRecovery };
enum class Mode { kBsp, kAsync, kDownpour, kEasgd };
// kProxy: a fault of the network on a connection that the process has opened or taken.
enum class Blow { kKill, kStop, kProxy };

inline constexpr Blow kBlows[] = {Blow::kKill, Blow::kStop, Blow::kProxy};
inline constexpr Role kRoles[] = {Role::kServer, Role::kWorker, Role::kScheduler};
inline constexpr Phase kPhases[] = {Phase::kPull,       Phase::kPush,  Phase::kCommit,
                                    Phase::kCheckpoint, Phase::kImage, Phase::kRecovery};
inline constexpr Mode kModes[] = {Mode::kBsp, Mode::kAsync, Mode::kDownpour, Mode::kEasgd};

const char* NameOf(Role role);
const char* NameOf(Phase phase);
const char* NameOf(Mode mode);  // as spec.training.mode has it
const char* NameOf(Blow blow);

class FaultMatrix {
 public:
  struct Cell {
    Role role;
    Phase phase;
    Mode mode;
    auto operator<=>(const Cell&) const = default;
  };

  void Count(const Cell& cell, Blow blow, uint64_t times = 1);
  uint64_t Of(const Cell& cell, Blow blow) const;
  uint64_t Total(Blow blow) const;
  // Whether every role was met by every blow in the phase.
  bool Full(Phase phase, Mode mode) const;
  // Of each cell of the mode what never met it.
  std::vector<std::string> Empty(Mode mode) const;
  // A line for each role and phase, a column for each mode, "kills/stops/proxy" in each; the totals
  // last.
  std::string ToText() const;

 private:
  std::map<std::pair<Cell, Blow>, uint64_t> counts_;
};

}  // namespace strata::testing

#endif  // STRATA_TESTS_FAULTS_MATRIX_FAULT_MATRIX_H_
