// What is killed, stopped or cut off, in which phase of a job and in which mode: the table that the
// tests of faults fill, and of which no possible cell may stay empty.
#ifndef STRATA_TESTS_FAULTS_MATRIX_FAULT_MATRIX_H_
#define STRATA_TESTS_FAULTS_MATRIX_FAULT_MATRIX_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace strata::testing {

enum class Role { kServer, kWorker, kScheduler };
// What the cluster does at the moment. Another phase is a line here and a place in scenes.cc.
// kForward: records go to the next copy and are acknowledged. kPromotion: a copy takes over.
// kCopyImage: a new copy is fed.
enum class Phase {
  kPull,
  kPush,
  kCommit,
  kCheckpoint,
  kImage,
  kRecovery,
  kForward,
  kPromotion,
  kCopyImage
};
enum class Mode { kBsp, kAsync, kDownpour, kEasgd };
// kProxy: a fault of the network on a connection that the process has opened or taken. kClock: the
// wall clock that the process sees is set by an hour or two.
enum class Blow { kKill, kStop, kProxy, kClock };

// In every phase; and in kClockPhases.
inline constexpr Blow kBlows[] = {Blow::kKill, Blow::kStop, Blow::kProxy};
inline constexpr Blow kAllBlows[] = {Blow::kKill, Blow::kStop, Blow::kProxy, Blow::kClock};
inline constexpr Role kRoles[] = {Role::kServer, Role::kWorker, Role::kScheduler};
// Of jobs without copies of their shards, and of those with copies.
inline constexpr Phase kPlainPhases[] = {Phase::kPull,       Phase::kPush,  Phase::kCommit,
                                         Phase::kCheckpoint, Phase::kImage, Phase::kRecovery};
inline constexpr Phase kCopiesPhases[] = {Phase::kForward, Phase::kPromotion, Phase::kCopyImage};
// A clock is no part of a phase: those in which processes wait for each other in different ways.
inline constexpr Phase kClockPhases[] = {Phase::kPull, Phase::kCommit, Phase::kCheckpoint};
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
  // Of each cell of the mode, in those phases, which of those blows never met it.
  std::vector<std::string> Empty(std::span<const Phase> phases, Mode mode,
                                 std::span<const Blow> blows = kBlows) const;
  // A line for each cell, "FAULTS: ROLE PHASE MODE KILLS STOPS PROXY CLOCK", for tools/test, which
  // prints the tables of all tests as one; the totals last.
  std::string ToText() const;

 private:
  std::map<std::pair<Cell, Blow>, uint64_t> counts_;
};

}  // namespace strata::testing

#endif  // STRATA_TESTS_FAULTS_MATRIX_FAULT_MATRIX_H_
