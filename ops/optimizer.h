// Optimizers applied to rows where they live (ALGORITHMS section 1). Element arithmetic under
// EXACT.md: the same bits on every machine, whatever the instruction set.
#ifndef STRATA_OPS_OPTIMIZER_H_
#define STRATA_OPS_OPTIMIZER_H_

#include <cstddef>
#include <cstdint>

namespace strata::ops {

enum class OptimizerKind : uint8_t { kSgd = 0, kAdagrad = 1, kAdam = 2 };

struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::kSgd;
  float learning_rate = 0.01f;
  float epsilon = 1e-10f;  // > 0: with 0, a zero gradient on a zero accumulator is 0/0, so refused
  float initial_accumulator = 0.0f;  // adagrad
  float beta1 = 0.9f;                // adam
  float beta2 = 0.999f;              // adam
};

// Floats of state per row of `dim` weights: sgd 0, adagrad dim, adam 2 dim (m, then v).
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

// One update of n rows. weights[i]: (dim), states[i]: (StateFloats) or ignored when that is 0;
// gradient_sums: row i at gradient_sums + i * gradient_stride, (dim). A row whose gradient or whose
// result is not finite is left exactly as it was and counted; `refused`, if not null, receives 1
// for such rows, else 0: (n). Returns the number of refused rows. Any thread; rows must be
// distinct.
size_t ApplyRows(const OptimizerConfig& config, const StepScalars& scalars, uint32_t dim, size_t n,
                 float* const* weights, float* const* states, const float* gradient_sums,
                 size_t gradient_stride, uint8_t* refused);

}  // namespace strata::ops

#endif  // STRATA_OPS_OPTIMIZER_H_
