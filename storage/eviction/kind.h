// The eviction policies that there are, by name.
// Tested by tests/storage/eviction/policy_test.cc
// Tested by tests/storage/tiered/conformance_test.cc
#ifndef STRATA_STORAGE_EVICTION_KIND_H_
#define STRATA_STORAGE_EVICTION_KIND_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/strings/string_view.h"
#include "storage/eviction/policy.h"

namespace strata::storage {

// spec.storage.eviction.
enum class EvictionKind : uint8_t {
  kLru,   // lru_policy.h
  kLfu,   // lfu_policy.h
  kLrfu,  // lrfu_policy.h: the default
};

// "lru", "lfu", "lrfu"; nothing for other text.
std::optional<EvictionKind> EvictionKindOf(absl::string_view name);

// For slots 0 .. capacity-1.
std::unique_ptr<EvictionPolicy> MakeEvictionPolicy(EvictionKind kind, size_t capacity);

// Of memory per slot, ghosts included; counted in the tier's limit. Beside it a policy has at most
// 8 KiB, and Choose needs lists of at most SlotScores::kMostCandidates * 8 bytes while it runs.
size_t EvictionBytesPerSlot(EvictionKind kind);

}  // namespace strata::storage

#endif  // STRATA_STORAGE_EVICTION_KIND_H_
