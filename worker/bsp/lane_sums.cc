#include "worker/bsp/lane_sums.h"

#include "worker/device/gradient_there.h"

namespace strata {

absl::StatusOr<GradientPtr> LaneSums::Sum(Step step, LaneNode node) {
  auto& sums = sums_[step];
  const auto it = sums.find(node);
  if (it != sums.end()) return it->second;
  const auto& lanes = lanes_.at(step);
  auto sum = SumNode(
      node, [&](uint32_t lane) { return lanes.at(lane); },
      [this](const Gradient& left, const Gradient& right) { return Add(left, right); });
  if (sum.ok()) sums[node] = *sum;
  return sum;
}

absl::StatusOr<GradientPtr> LaneSums::Add(const Gradient& left, const Gradient& right) const {
  if (memory_ == nullptr) return std::make_shared<Gradient>(AddGradients(tables_, left, right));
  auto sum = AddGradientsThere(tables_, memory_, left, right);
  if (!sum.ok()) return sum.status();
  return std::make_shared<Gradient>(*std::move(sum));
}

}  // namespace strata
