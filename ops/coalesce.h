// Sums of the gradients of a key that occurs several times in a batch, in the fixed order of
// EXACT.md rule 6: occurrences in batch order, in chunks of 32 summed from the first, then a binary
// tree over chunk numbers that splits [a, b) at a + the largest power of two < b - a.
//
// Occurrences come in compressed form, as a router makes them: unique key u stands at features
// occurrences[first[u]] .. occurrences[first[u + 1] - 1] of the batch, ascending. Sums of different
// keys are independent: callers spread ranges of keys over threads (CoalesceSplit). Any thread;
// arrays belong to the caller.
#ifndef STRATA_OPS_COALESCE_H_
#define STRATA_OPS_COALESCE_H_

#include <cstddef>
#include <cstdint>

#include "ops/coalesce_sum.h"

namespace strata::ops {

// sums row u (at u * sum_stride) = sum over u's occurrences f of gradients row f (at
// f * gradient_stride), for u in [keys.begin, keys.end); dim floats each. A key without occurrences
// gets zeros.
void CoalesceRows(const KeyOccurrences& keys, uint32_t dim, const float* gradients,
                  size_t gradient_stride, float* sums, size_t sum_stride);

// The same for one float per feature that need not be stored: the gradient of feature f is
// gradient[example[f]] * values[f], or without the factor when values is null.
// example: (features) index of the example that a feature belongs to; gradient: (examples).
void CoalesceScaled(const KeyOccurrences& keys, const uint32_t* example, const float* gradient,
                    const float* values, float* sums, size_t sum_stride);

// Where part `part` of `parts` begins when `unique` keys are split into runs of about equal work:
// [CoalesceSplit(.., part), CoalesceSplit(.., part + 1)). REQUIRES: part <= parts, parts >= 1.
uint32_t CoalesceSplit(const uint32_t* first, uint32_t unique, uint32_t parts, uint32_t part);

}  // namespace strata::ops

#endif  // STRATA_OPS_COALESCE_H_
