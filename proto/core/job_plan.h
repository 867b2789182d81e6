// What follows from a job and the size of its input alone; the scheduler and every worker must
// agree.
#ifndef STRATA_PROTO_CORE_JOB_PLAN_H_
#define STRATA_PROTO_CORE_JOB_PLAN_H_

#include <cstdint>

namespace strata {

// Bsp: steps of one pass over `lines` lines, ceil(ceil(lines / lanes) / batch_size).
// REQUIRES: lanes >= 1, batch_size >= 1.
constexpr uint64_t StepsPerEpoch(uint64_t lines, uint32_t lanes, uint32_t batch_size) {
  const uint64_t share = lines / lanes + (lines % lanes != 0);
  return share / batch_size + (share % batch_size != 0);
}

}  // namespace strata

#endif  // STRATA_PROTO_CORE_JOB_PLAN_H_
