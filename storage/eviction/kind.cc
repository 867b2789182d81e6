#include "storage/eviction/kind.h"

#include "storage/eviction/lfu_policy.h"
#include "storage/eviction/lrfu_policy.h"
#include "storage/eviction/lru_policy.h"

namespace strata::storage {

std::optional<EvictionKind> EvictionKindOf(absl::string_view name) {
  if (name == "lru") return EvictionKind::kLru;
  if (name == "lfu") return EvictionKind::kLfu;
  if (name == "lrfu") return EvictionKind::kLrfu;
  return std::nullopt;
}

std::unique_ptr<EvictionPolicy> MakeEvictionPolicy(EvictionKind kind, size_t capacity) {
  switch (kind) {
    case EvictionKind::kLru:
      return MakeLruPolicy(capacity);
    case EvictionKind::kLfu:
      return MakeLfuPolicy(capacity);
    case EvictionKind::kLrfu:
      return MakeLrfuPolicy(capacity);
  }
  return nullptr;
}

size_t EvictionBytesPerSlot(EvictionKind kind) {
  switch (kind) {
    case EvictionKind::kLru:
      return kLruBytesPerSlot;
    case EvictionKind::kLfu:
      return kLfuBytesPerSlot;
    case EvictionKind::kLrfu:
      return kLrfuBytesPerSlot;
  }
  return 0;
}

}  // namespace strata::storage
