// The fixed binary tree over lane numbers along which gradient sums are added (DESIGN.md section
// 6): node [a, b) splits at a + the largest power of two < b - a. Results depend on it, so it
// depends on nothing but the number of lanes.
#ifndef STRATA_PROTO_CORE_LANE_TREE_H_
#define STRATA_PROTO_CORE_LANE_TREE_H_

#include <bit>
#include <cstdint>
#include <vector>

namespace strata {

// A node of the tree: lanes first .. end-1.
struct LaneNode {
  uint32_t first = 0;
  uint32_t end = 0;

  constexpr uint32_t size() const { return end - first; }
  constexpr bool IsLeaf() const { return size() == 1; }
  constexpr bool Covers(LaneNode other) const { return first <= other.first && other.end <= end; }
  // REQUIRES: size() >= 2.
  constexpr uint32_t Split() const { return first + std::bit_floor(size() - 1); }
  constexpr LaneNode Left() const { return {first, Split()}; }
  constexpr LaneNode Right() const { return {Split(), end}; }

  friend constexpr bool operator==(const LaneNode&, const LaneNode&) = default;
  friend constexpr auto operator<=>(const LaneNode&, const LaneNode&) = default;
};

// True when `node` is a node of the tree over `lanes` lanes.
constexpr bool IsTreeNode(LaneNode node, uint32_t lanes) {
  if (node.first >= node.end || node.end > lanes) return false;
  LaneNode at{0, lanes};
  while (!(at == node)) {
    if (at.IsLeaf()) return false;
    at = node.first < at.Split() ? at.Left() : at.Right();
    if (!at.Covers(node)) return false;
  }
  return true;
}

// The fewest tree nodes that together hold exactly `lanes_held` (ascending, unique, all below
// `lanes`): what a worker that hosts these lanes pushes. Ascending by `first`.
std::vector<LaneNode> CoverNodes(const std::vector<uint32_t>& lanes_held, uint32_t lanes);

}  // namespace strata

#endif  // STRATA_PROTO_CORE_LANE_TREE_H_
