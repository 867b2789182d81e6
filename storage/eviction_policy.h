// Which rows leave a tier when it is full.
#ifndef STRATA_STORAGE_EVICTION_POLICY_H_
#define STRATA_STORAGE_EVICTION_POLICY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace strata::storage {

// Follows the slots of one table's tier. Not thread-safe. Never decides what a row's value is, so
// results do not depend on the policy.
class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;

  // Of memory per slot; counted in the tier's limit.
  virtual size_t bytes_per_slot() const = 0;

  virtual void OnInsert(uint32_t slot) = 0;
  virtual void OnHit(uint32_t slot) = 0;
  virtual void OnRemove(uint32_t slot) = 0;

  // Appends up to `count` distinct slots that hold a row and for which may_leave(slot); fewer only
  // if there are no more. The slots stay the policy's until OnRemove.
  virtual void Choose(size_t count, const std::function<bool(uint32_t)>& may_leave,
                      std::vector<uint32_t>& victims) = 0;
};

enum class EvictionKind : uint8_t {
  kClock,  // second chance: LRU to within one sweep, one byte per slot (Corbato, 1968)
};

// For slots 0 .. capacity-1.
std::unique_ptr<EvictionPolicy> MakeEvictionPolicy(EvictionKind kind, size_t capacity);

// bytes_per_slot() of that kind, before there is one.
size_t EvictionBytesPerSlot(EvictionKind kind);

}  // namespace strata::storage

#endif  // STRATA_STORAGE_EVICTION_POLICY_H_
