// Which contributions of a synchronous step count, when the step is complete, and which pulls may
// be answered: the decisions of DESIGN.md section 6, "Bsp, to the bit", for one shard.
#ifndef STRATA_SERVER_PROTOCOL_STEP_GATE_H_
#define STRATA_SERVER_PROTOCOL_STEP_GATE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "proto/core/ids.h"
#include "proto/core/lane_tree.h"

namespace strata::server {

// What the caller keeps a contribution's bytes under; the gate only carries it.
using ContributionHandle = uint64_t;

struct Contribution {
  LaneNode node;
  uint64_t examples = 0;
  // Checksum of all that was pushed for this shard; repetitions are compared by it.
  uint64_t fingerprint = 0;
  ContributionHandle handle = 0;

  friend bool operator==(const Contribution&, const Contribution&) = default;
};

enum class GateVerdict : uint8_t {
  kHeld,         // kept; the caller keeps its bytes until dropped or committed
  kCovered,      // an equal or larger node is held already (or being committed): drop it
  kOld,          // step <= clock: drop it, it is committed
  kTooNew,       // step > clock + 1: refuse it
  kInvalidNode,  // not a node of the tree over the job's lanes: refuse it
};

struct GateAnswer {
  GateVerdict verdict = GateVerdict::kHeld;
  // Held contributions that the new one replaces: their bytes may go.
  std::vector<ContributionHandle> dropped;
  // The held nodes now cover every lane once: commit.
  bool complete = false;
  // The repetition differs from what is held under the same node: best effort detection of a
  // worker that computed something else the second time. The held one counts.
  bool mismatch = false;
};

// One instruction of a root's evaluation, over a stack: push a contribution's sums, or replace the
// two topmost (left below, right above) by left + right. Rows that only one side has pass through
// unchanged.
struct SumInstruction {
  enum Kind : uint8_t { kLoad, kAdd };
  Kind kind = kLoad;
  ContributionHandle handle = 0;  // kLoad

  friend bool operator==(const SumInstruction&, const SumInstruction&) = default;
};

enum class PullVerdict : uint8_t {
  kServeCurrent,   // step == clock + 1, and clock is committed: the rows as they are
  kServePreimage,  // step == clock: the rows as they were before the last step
  kWait,           // not committed yet, or a commit is in progress
  kTooOld,         // the caller's lane continues at ResumeStep
};

// A pure machine: no threads, clock, disk. Owned by the shard, called on its executor.
//
// The clock is the last step that is in the shard's own log. Where the shard has copies it is
// committed only when they have it too (server/protocol/replica_chain.h): the gate gathers by the
// clock (R5), and shows and appends by what is committed (R3, R6).
class StepGate {
 public:
  // REQUIRES: lanes >= 1. `preimages`: those of step `clock` are there (never at clock 0; after a
  // restore from a checkpoint there are none, and every lane starts at clock + 1).
  StepGate(uint32_t lanes, Step clock, bool preimages)
      : lanes_(lanes), clock_(clock), committed_(clock), preimages_(preimages) {}

  // The shard has copies: from now on a step is committed by CommitThrough alone, and `committed`
  // is what is so far. Without this call a step is committed when it is appended.
  void WaitForCopies(Step committed);
  // Never goes back; may run ahead of the clock while a step is being applied.
  void CommitThrough(Step step);

  GateAnswer Contribute(Step step, const Contribution& contribution);

  // The held nodes cover the root, no commit has begun, and the step before is committed.
  bool Complete() const;
  // How to add up the held contributions. REQUIRES: they cover the root. Ends with one value.
  std::vector<SumInstruction> RootPlan() const;
  // Sum of the held contributions' examples.
  uint64_t Examples() const;

  // The record of step clock + 1 is about to be written, of what is held (REQUIRES: Complete()) or
  // as the copy before this one sent it: from now on nothing of step `clock` is served, and
  // contributions to the step repeat what the record has.
  void BeginCommit() { committing_ = true; }
  // The record could not be written and nothing of it is durable: as before BeginCommit.
  void AbandonCommit() { committing_ = false; }
  // Step clock + 1 is durable and applied, its pre-images are there: without copies it is
  // committed. Returns the handles of what was held. REQUIRES: BeginCommit was called.
  std::vector<ContributionHandle> Appended();

  // REQUIRES: step >= 1.
  PullVerdict Pull(Step step) const;
  // After recovery: as if just made with these. What is committed stays, unless nobody is waited
  // for.
  void Reset(Step clock, bool preimages);
  // The oldest step that is served: where a lane that asked for an older one continues.
  Step ResumeStep() const { return preimages_ ? clock_ : clock_.Next(); }

  uint32_t lanes() const { return lanes_; }
  Step clock() const { return clock_; }
  Step committed() const { return committed_ < clock_ ? committed_ : clock_; }
  bool committing() const { return committing_; }
  // Ascending by lane. At most `lanes`: held nodes never overlap.
  const std::vector<Contribution>& held() const { return held_; }

 private:
  const uint32_t lanes_;
  Step clock_;
  Step committed_;
  bool waits_ = false;
  bool preimages_;
  bool committing_ = false;
  bool complete_ = false;
  std::vector<Contribution> held_;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_PROTOCOL_STEP_GATE_H_
