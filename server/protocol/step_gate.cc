#include "server/protocol/step_gate.h"

#include <algorithm>

#include "proto/core/mutation.h"

namespace strata::server {
namespace {

// Appends the evaluation of `node`; false when nothing under it is held (the identity).
bool Plan(LaneNode node, const std::vector<Contribution>& held, std::vector<SumInstruction>& out) {
  for (const Contribution& c : held) {
    if (c.node == node) {
      out.push_back({SumInstruction::kLoad, c.handle});
      return true;
    }
  }
  if (node.IsLeaf()) return false;
  const bool left = Plan(node.Left(), held, out);
  const bool right = Plan(node.Right(), held, out);
  if (left && right) out.push_back({SumInstruction::kAdd, 0});
  return left || right;
}

}  // namespace

GateAnswer StepGate::Contribute(Step step, const Contribution& contribution) {
  GateAnswer answer;
  if (!IsTreeNode(contribution.node, lanes_)) {
    answer.verdict = GateVerdict::kInvalidNode;
    return answer;
  }
  // R5: what is appended counts, committed or not.
  const Step gathered = STRATA_MUTATION("chain.gate_from_committed") ? committed() : clock_;
  if (step <= gathered && !STRATA_MUTATION("bsp.old_step_gathered")) {
    answer.verdict = GateVerdict::kOld;
    return answer;
  }
  if (step > clock_.Next() && !STRATA_MUTATION("bsp.new_step_gathered")) {
    answer.verdict = GateVerdict::kTooNew;
    return answer;
  }
  // Complete or being committed: the root is fixed, every node repeats something of it. What a copy
  // took of the one before it is held by the record alone.
  for (const Contribution& c : held_) {
    if (!c.node.Covers(contribution.node) || STRATA_MUTATION("bsp.covered_is_held")) continue;
    answer.verdict = GateVerdict::kCovered;
    answer.mismatch = c.node == contribution.node && c.fingerprint != contribution.fingerprint;
    return answer;
  }
  if (complete_ || committing_) {
    answer.verdict = GateVerdict::kCovered;
    return answer;
  }
  std::erase_if(held_, [&](const Contribution& c) {
    if (!contribution.node.Covers(c.node) || STRATA_MUTATION("bsp.ancestor_beside_children"))
      return false;
    answer.dropped.push_back(c.handle);
    return true;
  });
  held_.insert(std::upper_bound(held_.begin(), held_.end(), contribution,
                                [](const Contribution& a, const Contribution& b) {
                                  return a.node.first < b.node.first;
                                }),
               contribution);
  // Held nodes never overlap (two nodes of one tree nest or are apart), so sizes add up.
  uint32_t covered = 0;
  for (const Contribution& c : held_) covered += c.node.size();
  complete_ = covered == lanes_;
  answer.complete = complete_;
  return answer;
}

std::vector<SumInstruction> StepGate::RootPlan() const {
  std::vector<SumInstruction> out;
  Plan({0, lanes_}, held_, out);
  return out;
}

uint64_t StepGate::Examples() const {
  uint64_t examples = 0;
  for (const Contribution& c : held_) examples += c.examples;
  return examples;
}

void StepGate::WaitForCopies(Step committed) {
  waits_ = true;
  committed_ = committed;
}

void StepGate::CommitThrough(Step step) {
  if (waits_ && step > committed_) committed_ = step;
}

bool StepGate::Complete() const {
  const bool before = committed_ >= clock_ || STRATA_MUTATION("chain.appends_ahead");
  return complete_ && !committing_ && before;
}

std::vector<ContributionHandle> StepGate::Appended() {
  std::vector<ContributionHandle> handles;
  handles.reserve(held_.size());
  for (const Contribution& c : held_) handles.push_back(c.handle);
  held_.clear();
  complete_ = false;
  committing_ = false;
  preimages_ = true;
  clock_ = clock_.Next();
  if (!waits_) committed_ = clock_;
  return handles;
}

void StepGate::Reset(Step clock, bool preimages) {
  clock_ = clock;
  if (!waits_) committed_ = clock;
  preimages_ = preimages;
  committing_ = false;
  complete_ = false;
  held_.clear();
}

PullVerdict StepGate::Pull(Step step) const {
  if (step < ResumeStep()) return PullVerdict::kTooOld;
  if (committing_ || step > clock_.Next()) return PullVerdict::kWait;
  const bool shown = step == clock_ || committed_ >= clock_;
  if (!shown && !STRATA_MUTATION("chain.shows_uncommitted")) return PullVerdict::kWait;
  return step == clock_ && !STRATA_MUTATION("bsp.preimage_is_current") ? PullVerdict::kServePreimage
                                                                       : PullVerdict::kServeCurrent;
}

}  // namespace strata::server
