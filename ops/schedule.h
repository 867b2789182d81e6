// How the learning rate changes over the steps. One factor per commit, computed on the host in
// double from the step's number alone: nothing is accumulated, so a replay that begins at any step
// meets the same bits. Under EXACT.md rules 3 and 4: no libm.
#ifndef STRATA_OPS_SCHEDULE_H_
#define STRATA_OPS_SCHEDULE_H_

#include <cstdint>

namespace strata::ops {

enum class ScheduleKind : uint8_t { kConstant = 0, kStep = 1, kCosine = 2, kPoly = 3 };

struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::kConstant;
  uint64_t warmup_steps = 0;  // before all else, linear from 1 / warmup_steps to 1
  uint64_t decay_steps = 1;   // T >= 1; step: length of a plateau; cosine, poly: of the descent
  float gamma = 0.1f;         // step: 0 < gamma <= 1
  float power = 1.0f;         // poly: > 0
  float final_factor = 0.0f;  // cosine, poly: what is left after T steps, 0 to 1
};

// The factor of the base rate at step t, from 0; in [0, 1]. While t < warmup_steps it is
// (t + 1) / warmup_steps; then, with u = t - warmup_steps and x = min(u, T) / T:
//   constant  1
//   step      gamma^floor(u / T)
//   cosine    final + (1 - final) (1 + cos(pi x)) / 2   (Loshchilov and Hutter, SGDR, 2017, eq. 5)
//   poly      final + (1 - final) (1 - x)^power
// Off the real value by at most 1e-13 for powers up to 100.
double ScheduleFactor(const ScheduleConfig& config, uint64_t t);

}  // namespace strata::ops

#endif  // STRATA_OPS_SCHEDULE_H_
