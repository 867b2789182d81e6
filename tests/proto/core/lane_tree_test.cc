#include "proto/core/lane_tree.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <set>
#include <vector>

namespace strata {
namespace {

// All nodes, by the definition in words: [a, b) splits at a + the largest power of two < b - a.
std::set<LaneNode> AllNodes(uint32_t lanes) {
  std::set<LaneNode> nodes;
  const std::function<void(uint32_t, uint32_t)> add = [&](uint32_t a, uint32_t b) {
    nodes.insert({a, b});
    if (b - a < 2) return;
    uint32_t half = 1;
    while (half * 2 < b - a) half *= 2;
    add(a, a + half);
    add(a + half, b);
  };
  add(0, lanes);
  return nodes;
}

TEST_CASE("IsTreeNode knows exactly the tree's nodes", "[lane_tree]") {
  for (uint32_t lanes = 1; lanes <= 40; ++lanes) {
    const std::set<LaneNode> nodes = AllNodes(lanes);
    CHECK(nodes.size() == 2 * lanes - 1);
    for (uint32_t a = 0; a <= lanes + 2; ++a) {
      for (uint32_t b = 0; b <= lanes + 2; ++b) {
        INFO("[" << a << ", " << b << ") of " << lanes);
        REQUIRE(IsTreeNode({a, b}, lanes) == (nodes.count({a, b}) != 0));
      }
    }
  }
  CHECK(!IsTreeNode({0, 0}, 0));
  CHECK(IsTreeNode({0, 1u << 31}, 1u << 31));
}

TEST_CASE("CoverNodes is the smallest exact cover, by brute force", "[lane_tree]") {
  for (uint32_t lanes = 1; lanes <= 10; ++lanes) {
    const std::set<LaneNode> nodes = AllNodes(lanes);
    for (uint32_t held_bits = 0; held_bits < 1u << lanes; ++held_bits) {
      std::vector<uint32_t> held;
      for (uint32_t i = 0; i < lanes; ++i) {
        if (held_bits >> i & 1) held.push_back(i);
      }
      const std::vector<LaneNode> cover = CoverNodes(held, lanes);
      uint32_t covered = 0;
      for (size_t i = 0; i < cover.size(); ++i) {
        REQUIRE(nodes.count(cover[i]) == 1);
        if (i > 0) REQUIRE(cover[i - 1].end <= cover[i].first);  // ascending, disjoint
        for (uint32_t l = cover[i].first; l < cover[i].end; ++l) covered |= 1u << l;
      }
      REQUIRE(covered == held_bits);
      // Smallest: the nodes that lie within the held lanes and in no larger such node are forced.
      size_t maximal = 0;
      const auto within = [&](LaneNode n) {
        for (uint32_t l = n.first; l < n.end; ++l) {
          if ((held_bits >> l & 1) == 0) return false;
        }
        return true;
      };
      for (const LaneNode n : nodes) {
        const bool inside_larger = std::any_of(nodes.begin(), nodes.end(), [&](LaneNode m) {
          return !(m == n) && m.Covers(n) && within(m);
        });
        if (within(n) && !inside_larger) ++maximal;
      }
      REQUIRE(cover.size() == maximal);
    }
  }
  CHECK(CoverNodes({}, 0).empty());
}

TEST_CASE("nodes split as DESIGN.md says", "[lane_tree]") {
  constexpr LaneNode root{0, 6};
  static_assert(root.Left() == LaneNode{0, 4} && root.Right() == LaneNode{4, 6});
  static_assert(LaneNode{4, 7}.Left() == LaneNode{4, 6});
  static_assert(LaneNode{3, 4}.IsLeaf() && !LaneNode{3, 5}.IsLeaf());
  CHECK(CoverNodes({0, 1, 2, 3, 5}, 6) == std::vector<LaneNode>{{0, 4}, {5, 6}});
}

}  // namespace
}  // namespace strata
