// Which rows leave a tier when it is full.
#ifndef STRATA_STORAGE_EVICTION_POLICY_H_
#define STRATA_STORAGE_EVICTION_POLICY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "proto/core/ids.h"

namespace strata::storage {

// Follows the slots of one table's tier. Not thread-safe. Never decides what a row's value is, so
// results do not depend on the policy.
class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;

  // A row moved into `slot`, because it was referenced.
  virtual void OnInsert(uint32_t slot, Position position) = 0;
  // The row in `slot` was referenced.
  virtual void OnHit(uint32_t slot) = 0;
  // The row left: to the tier below (it may come back), or for good.
  virtual void OnEvict(uint32_t slot, Position position) = 0;
  virtual void OnErase(uint32_t slot) = 0;

  // Appends up to `count` distinct slots that hold a row and for which may_leave(slot), the first
  // to leave first; fewer only if there are no more. The slots stay the policy's until they are
  // evicted or erased, and may be chosen again.
  using MayLeave = std::function<bool(uint32_t slot)>;
  virtual void Choose(size_t count, const MayLeave& may_leave, std::vector<uint32_t>& victims) = 0;
};

}  // namespace strata::storage

#endif  // STRATA_STORAGE_EVICTION_POLICY_H_
