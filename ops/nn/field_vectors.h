// Vectors of fields whose tables differ in width, and of sequences, laid out as one row of a matrix
// for each example, and the rows' gradients. What embedding.h does for one width. Any thread;
// results do not depend on how examples and keys are split.
#ifndef STRATA_OPS_NN_FIELD_VECTORS_H_
#define STRATA_OPS_NN_FIELD_VECTORS_H_

#include <cstddef>
#include <cstdint>

#include "ops/coalesce_sum.h"

namespace strata::ops {

// Where a feature's vector is read, and where it stands in its example's row.
struct FeaturePlace {
  static constexpr uint32_t kNowhere = ~0u;

  uint64_t row = 0;  // the first of dim floats
  uint32_t column = kNowhere;
  uint16_t dim = 0;   // <= 4096
  bool first = true;  // of those at its column, which stand side by side: one field's values
  bool max = false;   // they are pooled by the greatest of each element, not by their sum
};

// The features of a batch. The arrays belong to the caller.
struct VectorExamples {
  const uint32_t* offsets = nullptr;     // (examples + 1): features of example i
  const FeaturePlace* places = nullptr;  // (features)
  const float* values = nullptr;         // (features), or null when every value is 1; not of max
  const float* rows = nullptr;
};

// Rows by example, of one width, or where `starts` is given each as wide as its example needs; the
// memory belongs to the caller.
struct VectorMatrix {
  float* data = nullptr;
  size_t stride = 0;  // floats; unused with `starts`
  // (as data), or null where no feature is pooled by max: which feature gave an element its value.
  uint32_t* from = nullptr;
  const size_t* starts = nullptr;  // (examples): the first float of each; null: example x stride

  size_t Start(size_t example) const {
    return starts == nullptr ? example * stride : starts[example];
  }
};

// Writes the vectors of examples begin .. end - 1, and zeros to the first `cleared` columns that no
// feature stands at. Sums are chains in the order of features: the first times its value
// initialises, each further one is a fma.
void GatherVectors(const VectorExamples& x, uint32_t begin, uint32_t end, uint32_t cleared,
                   const VectorMatrix& out);

// Gradient sums of keys.begin .. keys.end - 1 in the order of EXACT.md rule 6: out (keys, dim).
// `gradient`: by GatherVectors' out, with its `from`; example (features): that each belongs to.
void VectorGradients(const VectorExamples& x, const VectorMatrix& gradient, const uint32_t* example,
                     const KeyOccurrences& keys, uint32_t dim, float* out);

}  // namespace strata::ops

#endif  // STRATA_OPS_NN_FIELD_VECTORS_H_
