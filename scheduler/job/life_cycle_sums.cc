#include "scheduler/job/life_cycle_sums.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <cstdint>

namespace strata::scheduler {
namespace {

// All fields are counts.
template <typename Join>
void ForEach(const LifeCycleCounts& counts, LifeCycleCounts& into, Join join) {
  const auto* type = LifeCycleCounts::descriptor();
  const auto* read = counts.GetReflection();
  for (int i = 0; i < type->field_count(); ++i) {
    const auto* field = type->field(i);
    read->SetUInt64(&into, field,
                    join(read->GetUInt64(counts, field), read->GetUInt64(into, field)));
  }
}

}  // namespace

void AddLifeCycle(const LifeCycleCounts& counts, LifeCycleCounts& sum) {
  ForEach(counts, sum, [](uint64_t a, uint64_t b) { return a + b; });
}

void RaiseLifeCycle(const LifeCycleCounts& counts, LifeCycleCounts& most) {
  ForEach(counts, most, [](uint64_t a, uint64_t b) { return std::max(a, b); });
}

}  // namespace strata::scheduler
