// Optimizers applied to rows where they live (ALGORITHMS section 1). Element arithmetic under
// EXACT.md: the same bits on every machine, whatever the instruction set.
#ifndef STRATA_OPS_OPTIMIZER_H_
#define STRATA_OPS_OPTIMIZER_H_

#include <cstddef>
#include <cstdint>

#include "ops/schedule.h"

namespace strata::ops {

enum class OptimizerKind : uint8_t {
  kSgd = 0,
  kAdagrad = 1,
  kAdam = 2,  // lazy: rows that a step does not touch stay as they are
  kMomentum = 3,
  kRowwiseAdagrad = 4,
  // McMahan et al., Ad Click Prediction, 2013, algorithm 1. Its z and w say the same where w is not
  // 0, and only w is read there: z = -w (1/eta + l2) - sgn(w) l1 with 1/eta = (beta + sqrt(n)) /
  // alpha. So a row may start from any weights, and alpha may follow a schedule: sigma is the
  // growth of 1/eta, the paper's definition, of which (sqrt(n + g^2) - sqrt(n)) / alpha is the case
  // of an alpha that stands still. Where w is 0, z is what is read. At a rate below
  // kLeastFtrlRate (a schedule's end) a row stays as it is.
  kFtrl = 5,
  // row += sum: no division by examples, rate, clipping or decay.
  kAdd = 6,
};

inline constexpr float kLeastFtrlRate = 1e-18f;

struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::kSgd;
  float learning_rate = 0.01f;  // what the schedule's factor multiplies; ftrl: alpha
  float epsilon = 1e-10f;  // > 0: with 0, a zero gradient on a zero accumulator is 0/0, so refused
  float initial_accumulator = 0.0f;  // adagrad, rowwise_adagrad
  float beta1 = 0.9f;                // adam
  float beta2 = 0.999f;              // adam
  float momentum = 0.9f;             // momentum
  bool nesterov = false;             // momentum
  float beta = 1.0f;                 // ftrl; > 0
  float l1 = 1.0f;                   // ftrl
  float l2 = 1.0f;                   // ftrl
  float clip_value = 0.0f;           // 0: no limit
  float clip_norm = 0.0f;            // 0: no limit
  float weight_decay = 0.0f;
  ScheduleConfig schedule;
};

// Floats of state per row of `dim` weights: sgd and add 0, momentum dim (v), adagrad dim (G),
// rowwise_adagrad 1 (G), adam 2 dim (m, then v), ftrl 2 dim (z, then n).
uint32_t StateFloats(OptimizerKind kind, uint32_t dim);

// Fills a new row's state: (StateFloats(kind, dim)).
void InitState(const OptimizerConfig& config, uint32_t dim, float* state);

// What is the same for all rows of one commit; computed once, on the host, in double (EXACT rule
// 4).
struct StepScalars {
  float examples = 1.0f;         // gradient = sum / examples, by division
  float learning_rate = 0.0f;    // scheduled rate
  float adam_correction = 1.0f;  // sqrt(1 - beta2^t) / (1 - beta1^t)
};

// Adam's beta^t by repeated multiplication in double, one step at a time.
class AdamPowers {
 public:
  AdamPowers(float beta1, float beta2) : beta1_(beta1), beta2_(beta2) {}
  // REQUIRES: t >= 1, the number of this step. Multiplies up to step t >= the last asked; starts
  // again from 1 when t is smaller.
  float Correction(uint64_t t);

 private:
  double beta1_, beta2_;
  double power1_ = 1.0, power2_ = 1.0;
  uint64_t t_ = 0;
};

// The scalars of one optimizer, commit by commit: functions of the commit's number alone, whatever
// was asked before.
class ScalarSource {
 public:
  explicit ScalarSource(const OptimizerConfig& config);
  // The state has seen so many commits of earlier jobs: Adam's t goes on behind them, a schedule
  // begins anew.
  void CountFrom(uint64_t earlier);
  // REQUIRES: number >= 1, counting commits from 1: Adam's t, behind those before; the schedule's t
  // is one less.
  StepScalars At(uint64_t number, uint64_t examples);

 private:
  const OptimizerKind kind_;
  const float base_rate_;
  const ScheduleConfig schedule_;
  AdamPowers powers_;
  uint64_t earlier_ = 0;
  uint64_t number_ = 0;  // of scalars_; 0: of none
  StepScalars scalars_;
};

// What became of a row, as ApplyRows tells it; neither: it was updated by its gradient.
inline constexpr uint8_t kRowRefused = 1;  // it is as it was
inline constexpr uint8_t kRowClipped = 2;  // it was updated by less than its gradient

// One update of n rows. weights[i]: (dim), states[i]: (StateFloats) or ignored when that is 0;
// gradient_sums: row i at gradient_sums + i * gradient_stride, (dim). In this order: the sum is
// divided by the examples; a gradient that is not finite is refused; elements are cut to
// +-clip_value; a gradient longer than clip_norm is scaled down to it; weight_decay x weights is
// added (so decay is never clipped, nor counts as clipping); the optimizer's rule is applied, and a
// result that is not finite refused. A refused row is left exactly as it was. `outcomes`, if not
// null, receives 0, kRowRefused or kRowClipped: (n). Returns the number of refused rows. Any
// thread; rows must be distinct.
size_t ApplyRows(const OptimizerConfig& config, const StepScalars& scalars, uint32_t dim, size_t n,
                 float* const* weights, float* const* states, const float* gradient_sums,
                 size_t gradient_stride, uint8_t* outcomes);

}  // namespace strata::ops

#endif  // STRATA_OPS_OPTIMIZER_H_
