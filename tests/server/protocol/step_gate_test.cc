#include "server/protocol/step_gate.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>
#include <string>

#include "tests/seed.h"

namespace strata::server {
namespace {

std::vector<LaneNode> AllNodes(uint32_t lanes) {
  std::vector<LaneNode> out;
  for (uint32_t a = 0; a < lanes; ++a) {
    for (uint32_t b = a + 1; b <= lanes; ++b) {
      if (IsTreeNode({a, b}, lanes)) out.push_back({a, b});
    }
  }
  return out;
}

// The expression that a plan evaluates, as text: leaves are handles.
std::string Evaluate(const std::vector<SumInstruction>& plan,
                     const std::map<uint64_t, std::string>& text) {
  std::vector<std::string> stack;
  for (const SumInstruction& i : plan) {
    if (i.kind == SumInstruction::kLoad) {
      stack.push_back(text.at(i.handle));
    } else {
      REQUIRE(stack.size() >= 2);
      const std::string right = stack.back();
      stack.pop_back();
      stack.back() = "(" + stack.back() + "+" + right + ")";
    }
  }
  REQUIRE(stack.size() == 1);
  return stack[0];
}

// The same for a node, straight from the definition of the tree.
std::string Reference(LaneNode n) {
  if (n.IsLeaf()) return std::to_string(n.first);
  return "(" + Reference(n.Left()) + "+" + Reference(n.Right()) + ")";
}

TEST_CASE("every order and grouping of contributions gives one root expression", "[gate][seeds]") {
  const std::vector<uint64_t> seeds = Seeds("step_gate", 0, 200);
  for (uint32_t lanes = 1; lanes <= 9; ++lanes) {
    const std::vector<LaneNode> nodes = AllNodes(lanes);
    for (const uint64_t seed : seeds) {
      INFO("seed " << seed << ", " << lanes << " lanes");
      std::mt19937_64 random(seed * 100 + lanes);
      StepGate gate(lanes, Step(4), true);
      std::map<uint64_t, std::string> text;
      std::set<uint64_t> kept;
      // Brute force beside it: which nodes are held, by the rule alone.
      std::vector<LaneNode> held;
      uint64_t handle = 0;
      while (!gate.Complete()) {
        const LaneNode node = nodes[random() % nodes.size()];
        text[++handle] = Reference(node);
        const GateAnswer a = gate.Contribute(Step(5), {node, 1, 7, handle});
        const bool covered =
            std::any_of(held.begin(), held.end(), [&](LaneNode h) { return h.Covers(node); });
        REQUIRE(a.verdict == (covered ? GateVerdict::kCovered : GateVerdict::kHeld));
        if (!covered) {
          const size_t dropped = std::erase_if(held, [&](LaneNode h) { return node.Covers(h); });
          REQUIRE(a.dropped.size() == dropped);
          held.push_back(node);
          kept.insert(handle);
        }
        for (const uint64_t d : a.dropped) REQUIRE(kept.erase(d) == 1);
        std::vector<bool> lane(lanes);
        for (const LaneNode h : held) {
          for (uint32_t i = h.first; i < h.end; ++i) lane[i] = true;
        }
        REQUIRE(a.complete == std::all_of(lane.begin(), lane.end(), [](bool b) { return b; }));
      }
      REQUIRE(Evaluate(gate.RootPlan(), text) == Reference({0, lanes}));
      gate.BeginCommit();
      const auto handles = gate.Appended();
      REQUIRE(std::set<uint64_t>(handles.begin(), handles.end()) == kept);
      REQUIRE(gate.clock() == Step(5));
    }
  }
}

TEST_CASE("old, new and impossible contributions", "[gate]") {
  StepGate gate(3, Step(4), true);
  REQUIRE(gate.Contribute(Step(4), {{0, 3}, 1, 1, 1}).verdict == GateVerdict::kOld);
  REQUIRE(gate.Contribute(Step(6), {{0, 3}, 1, 1, 1}).verdict == GateVerdict::kTooNew);
  REQUIRE(gate.Contribute(Step(5), {{1, 3}, 1, 1, 1}).verdict == GateVerdict::kInvalidNode);
  REQUIRE(gate.Contribute(Step(5), {{0, 4}, 1, 1, 1}).verdict == GateVerdict::kInvalidNode);
  REQUIRE(gate.Contribute(Step(5), {{2, 2}, 1, 1, 1}).verdict == GateVerdict::kInvalidNode);
  REQUIRE(gate.held().empty());
}

TEST_CASE("an arriving ancestor replaces; a held one covers; differing repeats are told",
          "[gate]") {
  StepGate gate(4, Step(0), false);
  REQUIRE(gate.Contribute(Step(1), {{0, 1}, 10, 5, 1}).verdict == GateVerdict::kHeld);
  REQUIRE(gate.Contribute(Step(1), {{1, 2}, 20, 6, 2}).verdict == GateVerdict::kHeld);
  REQUIRE_FALSE(gate.Contribute(Step(1), {{1, 2}, 20, 6, 9}).mismatch);
  REQUIRE(gate.Contribute(Step(1), {{1, 2}, 20, 8, 9}).mismatch);
  const GateAnswer up = gate.Contribute(Step(1), {{0, 2}, 30, 7, 3});
  REQUIRE(up.verdict == GateVerdict::kHeld);
  REQUIRE(up.dropped == std::vector<uint64_t>{1, 2});
  REQUIRE(gate.Contribute(Step(1), {{0, 1}, 10, 5, 4}).verdict == GateVerdict::kCovered);
  REQUIRE(gate.Examples() == 30);
  const GateAnswer root = gate.Contribute(Step(1), {{2, 4}, 40, 9, 5});
  REQUIRE(root.complete);
  REQUIRE(gate.Examples() == 70);
  // Complete: also an ancestor of everything changes nothing any more.
  const GateAnswer late = gate.Contribute(Step(1), {{0, 4}, 70, 9, 6});
  REQUIRE(late.verdict == GateVerdict::kCovered);
  REQUIRE(late.dropped.empty());
}

TEST_CASE("pulls: current, pre-image, wait, too old", "[gate]") {
  StepGate gate(1, Step(0), false);
  REQUIRE(gate.Pull(Step(1)) == PullVerdict::kServeCurrent);
  REQUIRE(gate.Pull(Step(2)) == PullVerdict::kWait);
  gate.Contribute(Step(1), {{0, 1}, 1, 1, 1});
  gate.BeginCommit();
  REQUIRE(gate.Pull(Step(1)) == PullVerdict::kWait);
  gate.AbandonCommit();
  REQUIRE(gate.Complete());
  REQUIRE(gate.Pull(Step(1)) == PullVerdict::kServeCurrent);
  gate.BeginCommit();
  REQUIRE(gate.Appended() == std::vector<uint64_t>{1});
  REQUIRE(gate.Pull(Step(1)) == PullVerdict::kServePreimage);
  REQUIRE(gate.Pull(Step(2)) == PullVerdict::kServeCurrent);
  REQUIRE(gate.Pull(Step(3)) == PullVerdict::kWait);
  gate.Contribute(Step(2), {{0, 1}, 1, 1, 2});
  gate.BeginCommit();
  // Pre-images end with the append of the next step.
  REQUIRE(gate.Pull(Step(1)) == PullVerdict::kWait);
  gate.Appended();
  REQUIRE(gate.Pull(Step(1)) == PullVerdict::kTooOld);
  REQUIRE(gate.ResumeStep() == Step(2));
  REQUIRE(gate.Pull(Step(2)) == PullVerdict::kServePreimage);
}

TEST_CASE("with copies a step is gathered by the log, and shown and followed by what is committed",
          "[gate]") {
  StepGate gate(1, Step(3), true);
  gate.WaitForCopies(Step(2));  // a head that was promoted with step 3 in its log
  REQUIRE(gate.committed() == Step(2));
  REQUIRE(gate.Pull(Step(3)) == PullVerdict::kServePreimage);
  REQUIRE(gate.Pull(Step(4)) == PullVerdict::kWait);
  REQUIRE(gate.Contribute(Step(3), {{0, 1}, 1, 1, 1}).verdict == GateVerdict::kOld);
  REQUIRE(gate.Contribute(Step(5), {{0, 1}, 1, 1, 1}).verdict == GateVerdict::kTooNew);
  REQUIRE(gate.Contribute(Step(4), {{0, 1}, 1, 1, 1}).verdict == GateVerdict::kHeld);
  REQUIRE_FALSE(gate.Complete());  // R6
  gate.CommitThrough(Step(3));
  REQUIRE(gate.Pull(Step(4)) == PullVerdict::kServeCurrent);
  REQUIRE(gate.Complete());
  gate.BeginCommit();
  gate.CommitThrough(Step(4));  // the others were faster than the tables here
  REQUIRE(gate.committed() == Step(3));
  gate.Appended();
  REQUIRE(gate.committed() == Step(4));
  REQUIRE(gate.Pull(Step(5)) == PullVerdict::kServeCurrent);
  gate.CommitThrough(Step(2));  // told late
  REQUIRE(gate.committed() == Step(4));
}

TEST_CASE("a step that is in the log and not applied yet is neither shown nor gathered", "[gate]") {
  StepGate gate(2, Step(3), true);
  gate.WaitForCopies(Step(3));
  gate.BeginCommit();  // step 4 of the copy before this one, which is promoted then
  REQUIRE(gate.Pull(Step(3)) == PullVerdict::kWait);
  REQUIRE(gate.Pull(Step(4)) == PullVerdict::kWait);
  REQUIRE(gate.Contribute(Step(4), {{0, 1}, 1, 1, 1}).verdict == GateVerdict::kCovered);
  REQUIRE(gate.Contribute(Step(4), {{0, 2}, 1, 1, 2}).verdict == GateVerdict::kCovered);
  REQUIRE(gate.held().empty());
  REQUIRE_FALSE(gate.Complete());
  gate.Appended();
  REQUIRE(gate.clock() == Step(4));
  REQUIRE(gate.Pull(Step(4)) == PullVerdict::kServePreimage);
  REQUIRE(gate.Contribute(Step(5), {{0, 1}, 1, 1, 3}).verdict == GateVerdict::kHeld);
}

TEST_CASE("without pre-images a lane is sent to the step after the clock", "[gate]") {
  StepGate restored(2, Step(7), false);
  REQUIRE(restored.Pull(Step(7)) == PullVerdict::kTooOld);
  REQUIRE(restored.ResumeStep() == Step(8));
  REQUIRE(restored.Pull(Step(8)) == PullVerdict::kServeCurrent);
}

}  // namespace
}  // namespace strata::server
