#include "proto/core/lane_tree.h"

#include <algorithm>

namespace strata {
namespace {

void Cover(LaneNode node, const std::vector<uint32_t>& held, std::vector<LaneNode>& out) {
  const auto lo = std::lower_bound(held.begin(), held.end(), node.first);
  const auto hi = std::lower_bound(lo, held.end(), node.end);
  if (lo == hi) return;
  if (static_cast<uint32_t>(hi - lo) == node.size()) {
    out.push_back(node);
    return;
  }
  Cover(node.Left(), held, out);
  Cover(node.Right(), held, out);
}

}  // namespace

std::vector<LaneNode> CoverNodes(const std::vector<uint32_t>& lanes_held, uint32_t lanes) {
  std::vector<LaneNode> out;
  if (lanes > 0) Cover({0, lanes}, lanes_held, out);
  return out;
}

}  // namespace strata
