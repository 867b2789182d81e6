// The kernel of apply.h: a functor whose groups update one row, or a few short ones, at a time.
// Tested by tests/ops/cuda/rows/lanes_test.cc
#ifndef STRATA_OPS_CUDA_ROWS_APPLY_ROWS_H_
#define STRATA_OPS_CUDA_ROWS_APPLY_ROWS_H_

#include <cstdint>

#include "ops/cuda/kernel/row_block.h"
#include "ops/cuda/kernel/row_sum16.h"
#include "ops/cuda/kernel/vector4.h"
#include "ops/cuda/rows/apply_plan.h"
#include "ops/cuda/rows/row_quads.h"
#include "ops/exact_math.h"
#include "ops/inline.h"
#include "ops/optimizer.h"
#include "ops/optimizer_rules.h"

namespace strata::ops::gpu {

template <typename Rule>
inline constexpr bool kIsFtrl = false;
template <>
inline constexpr bool kIsFtrl<rules::Ftrl> = true;

// Rule: of optimizer_rules.h. kRowwise: rowwise_adagrad, whose Rule is Sgd. A lane holds kQuads
// quads of each of kRows rows, all loaded before the first is used. Rows longer than a group's
// kLanes x kQuads quads take several rounds: on the device only groups of 32 lanes see such rows.
template <typename Rule, bool kRowwise, uint32_t kWidth, uint32_t kQuads, uint32_t kRows>
struct ApplyQuads {
  // A shape is a matter of the device's speed: the host runs them all as one.
  using OnHost = ApplyQuads<Rule, kRowwise, 4, 4, 1>;
  static constexpr uint32_t kLanes = kWidth;
  static constexpr uint32_t kStates = Rule::kStates;
  using Row = TableRow;
  using Quads = RowQuads<kStates, kQuads>;
  ApplyPlan plan;

  template <typename Group>
  static constexpr uint32_t kRound = Group::kLanes* kQuads;  // quads
  template <typename Group>
  static constexpr bool kMayBeLong = Group::kLanes == 1 || Group::kLanes == 32;

  STRATA_HD_MEMBER uint64_t items() const {
    return (uint64_t{plan.task.rows.Get()} + kRows - 1) / kRows;
  }

  // Rows of an item are a whole grid's items apart: neighbouring groups read neighbouring sums.
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group& group, uint64_t item) const {
    const auto apart = static_cast<uint32_t>(items());
    const uint32_t rows = plan.task.rows.Get();
    const uint32_t first = static_cast<uint32_t>(item);
    uint32_t row_of[kRows];
    STRATA_UNROLL
    for (uint32_t r = 0; r < kRows; ++r) {
      const uint32_t i = first + r * apart;
      row_of[r] = i >= rows ? kNoRow : plan.task.row_of == nullptr ? i : plan.task.row_of[i];
    }
    Row row[kRows];
    Quads x[kRows];
    STRATA_UNROLL
    for (uint32_t r = 0; r < kRows; ++r) {
      if (row_of[r] == kNoRow) continue;
      float* weights = plan.task.table.At(row_of[r]);
      row[r] = {plan.task.sums + (first + r * apart) * plan.task.sum_stride, weights,
                weights + plan.task.state_offset};
      x[r].Load(group, plan, row[r], 0);
    }
    STRATA_UNROLL
    for (uint32_t r = 0; r < kRows; ++r) {
      const uint32_t i = first + r * apart;
      const uint8_t outcome = row_of[r] == kNoRow ? 0 : UpdateRow(group, row[r], x[r]);
      if (group.lane() != 0 || i >= rows) continue;
      if (plan.task.outcomes != nullptr) plan.task.outcomes[i] = outcome;
      if (outcome == kRowRefused && plan.task.refused != nullptr) AddOne(plan.task.refused);
    }
  }

 private:
  STRATA_HD_MEMBER static void AddOne(uint32_t* counter) {
#ifdef __CUDA_ARCH__
    atomicAdd(counter, 1u);
#else
    __atomic_fetch_add(counter, 1u, __ATOMIC_RELAXED);
#endif
  }

  STRATA_HD_MEMBER uint32_t Floats(uint32_t quad) const { return FloatsFrom(quad, plan.task.dim); }

  // Of the squares of scale x the gradient (kDecayed: with decay), 16 accumulators.
  template <bool kDecayed, typename Group>
  STRATA_HD_MEMBER float Squares(const Group& group, const Row& row, const RowGradient& gradient,
                                 float scale, const Quads& x) const {
    RowSum16<Group> sum;
    const uint32_t quads = (plan.task.dim + 3) / 4;
    const auto add = [&](uint32_t quad, const Vector4& sums, const Vector4& weights) {
      Vector4 g;
      for (uint32_t d = 0; d < 4; ++d) {
        g.at[d] =
            (kDecayed ? gradient.Of(sums.at[d], weights.at[d]) : gradient.Clipped(sums.at[d])) *
            scale;
      }
      sum.AddSquares(quad, g, Floats(quad));
    };
    if (Group::kLanes <= 4 && quads <= kRound<Group>) {  // the lane's quads are the sum's
      STRATA_UNROLL
      for (uint32_t v = 0; v < kQuads; ++v) {
        add(v * Group::kLanes + group.lane(), x.sums[v], x.weights[v]);
      }
    } else {
      for (uint32_t quad = RowSum16<Group>::First(group); quad < quads;
           quad += RowSum16<Group>::kStep) {
        const uint32_t n = Floats(quad);
        add(quad, LoadConst4(row.sums + quad * 4, n, plan.aligned),
            kDecayed ? Load4(row.weights + quad * 4, n, plan.aligned) : Zero4());
      }
    }
    return sum.Fold(group);
  }

  // False where the gradient is not finite. PrepareGradients of gradient_kernels.h for one row.
  template <typename Group>
  STRATA_HD_MEMBER bool Prepare(const Group& group, const Row& row, const Quads& x,
                                RowGradient* gradient) const {
    uint32_t worst = x.WorstSum(group, plan, 0, gradient->examples);
    if constexpr (kMayBeLong<Group>) {
      const uint32_t quads = (plan.task.dim + 3) / 4;
      for (uint32_t round = kRound<Group>; round < quads; round += kRound<Group>) {
        Quads more;
        more.Load(group, plan, row, round);
        worst = rules::Max(worst, more.WorstSum(group, plan, round, gradient->examples));
      }
    }
    worst = group.Max(worst);
    if (worst >= rules::kFirstNonFinite) return false;
    gradient->weight_decay = plan.weight_decay;
    if (plan.task.dim == 1) {
      const rules::ScalarClip clip(plan.clip_value, plan.clip_norm);
      gradient->clipped = worst > clip.limit_bits;
      gradient->clip_value = gradient->clipped ? clip.limit : 0.0f;
      return true;
    }
    if (plan.clip_value > 0.0f && worst > exact::Bits(plan.clip_value)) {
      gradient->clip_value = plan.clip_value;
      gradient->clipped = true;
      worst = exact::Bits(plan.clip_value);
    }
    if (plan.clip_norm > 0.0f) {
      const rules::NormClip clip(worst);
      const float scale = clip.Scale();
      const float norm = exact::Sqrt(Squares<false>(group, row, *gradient, scale, x));
      if (clip.IsLonger(norm, plan.clip_norm)) {
        gradient->scale = scale;
        gradient->factor = exact::Div(plan.clip_norm, norm);
        gradient->clipped = true;
      }
    }
    return true;
  }

  // Applies the rule to a round; returns the largest magnitude of gradients and results.
  template <typename AnyRule, typename Group>
  STRATA_HD_MEMBER uint32_t Compute(const Group& group, const AnyRule& rule,
                                    const RowGradient& gradient, uint32_t round, Quads& x) const {
    uint32_t worst = 0;
    STRATA_UNROLL
    for (uint32_t v = 0; v < kQuads; ++v) {
      const uint32_t n = Floats(round + v * Group::kLanes + group.lane());
      STRATA_UNROLL
      for (uint32_t d = 0; d < 4; ++d) {
        float unused = 0.0f;
        float& w = x.weights[v].at[d];
        float& s0 = AnyRule::kStates >= 1 ? x.first[kStates >= 1 ? v : 0].at[d] : unused;
        float& s1 = AnyRule::kStates >= 2 ? x.second[kStates >= 2 ? v : 0].at[d] : unused;
        const float g = gradient.Of(x.sums[v].at[d], w);
        rule.Update(g, w, s0, s1);
        uint32_t magnitude = rules::Max(rules::Magnitude(g), rules::Magnitude(w));
        if (AnyRule::kStates >= 1) magnitude = rules::Max(magnitude, rules::Magnitude(s0));
        if (AnyRule::kStates >= 2) magnitude = rules::Max(magnitude, rules::Magnitude(s1));
        worst = d < n ? rules::Max(worst, magnitude) : worst;
      }
    }
    return worst;
  }

  // Computes the row, and stores it where everything is finite.
  template <typename AnyRule, typename Group>
  STRATA_HD_MEMBER bool ApplyRule(const Group& group, const AnyRule& rule,
                                  const RowGradient& gradient, const Row& row, Quads& x) const {
    const uint32_t quads = (plan.task.dim + 3) / 4;
    uint32_t worst = Compute(group, rule, gradient, 0, x);
    if constexpr (kMayBeLong<Group>) {
      for (uint32_t round = kRound<Group>; round < quads; round += kRound<Group>) {
        Quads more;
        more.Load(group, plan, row, round);
        worst = rules::Max(worst, Compute(group, rule, gradient, round, more));
      }
    }
    if (group.Max(worst) >= rules::kFirstNonFinite) return false;
    x.Store(group, plan, row, 0);
    if constexpr (kMayBeLong<Group>) {
      for (uint32_t round = kRound<Group>; round < quads; round += kRound<Group>) {
        Quads more;
        more.Load(group, plan, row, round);
        Compute(group, rule, gradient, round, more);
        more.Store(group, plan, row, round);
      }
    }
    return true;
  }

  template <typename Group>
  STRATA_HD_MEMBER uint8_t UpdateRow(const Group& group, const Row& row, Quads& x) const {
    const StepScalars step = *plan.task.step;
    RuleParameters p = plan.rule;
    RowGradient gradient;
    gradient.examples = plan.rate_kind == RateKind::kAdd ? 1.0f : step.examples;
    // fma(1, sum, w): their sum, rounded once.
    p.rate = plan.rate_kind == RateKind::kAdd ? -1.0f : step.learning_rate;
    if (plan.rate_kind == RateKind::kAdam) p.rate = step.learning_rate * step.adam_correction;
    if (plan.prepares() && !Prepare(group, row, x, &gradient)) return kRowRefused;
    bool ok = true;
    if constexpr (kRowwise) {
      const float squares = Squares<true>(group, row, gradient, 1.0f, x);
      const float total = rules::GrownAccumulator(row.state[0], squares, plan.task.dim);
      p.rate = rules::RowRate(p, total);
      ok = rules::Magnitude(total) < rules::kFirstNonFinite &&
           ApplyRule(group, Rule(p), gradient, row, x);
      group.Sync();  // all lanes have read the state
      if (ok && group.lane() == 0) row.state[0] = total;
    } else if (kIsFtrl<Rule> && p.rate < kLeastFtrlRate) {
      p.rate = 0.0f;  // sgd at rate 0 refuses what ftrl refuses, and moves nothing
      ok = ApplyRule(group, rules::Sgd(p), gradient, row, x);
    } else {
      ok = ApplyRule(group, Rule(p), gradient, row, x);
    }
    if (!ok) return kRowRefused;
    return gradient.clipped ? kRowClipped : 0;
  }
};

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_ROWS_APPLY_ROWS_H_
