#include "ops/cuda/nn/field_vectors.h"

#include <cstddef>

#include "ops/cuda/kernel/kernel.h"
#include "ops/cuda/kernel/row_block.h"
#include "ops/cuda/kernel/vector4.h"
#include "ops/cuda/rows/coalesce_rows.h"
#include "ops/exact_math.h"
#include "ops/inline.h"

namespace strata::ops::gpu {
namespace {

// Eight lanes have an example.
struct PlaceExamples {
  static constexpr uint32_t kLanes = 8;
  FeatureList list;
  FeaturePlace* places;
  uint32_t* example;

  STRATA_HD_MEMBER uint64_t items() const { return list.examples; }

  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group& group, uint64_t item) const {
    const auto i = static_cast<uint32_t>(item);
    const uint32_t begin = list.offsets[i], end = list.offsets[i + 1];
    for (uint32_t f = begin + group.lane(); f < end; f += group.lanes()) {
      example[f] = i;
      places[f] = PlaceOf(i, f, begin);
    }
  }

  STRATA_HD_MEMBER FeaturePlace PlaceOf(uint32_t i, uint32_t f, uint32_t begin) const {
    FeaturePlace place;
    const uint32_t field = list.fields == nullptr ? f - begin : list.fields[f];
    if (field >= list.known_fields) return place;
    const FieldColumns columns = list.columns[field];
    const uint32_t dim = list.runs.runs[columns.table].dim;
    place.row = list.runs.RowOf(columns.table, list.key[f]);
    place.dim = static_cast<uint16_t>(dim);
    place.column = columns.column;
    if (columns.sequence != FieldColumns::kNoSequence) {
      const size_t sequence = size_t{i} * list.sequences + columns.sequence;
      place.column += (f - list.sequence_first[sequence]) * dim;
      return place;
    }
    place.max = columns.max != 0;
    place.first = list.fields == nullptr || f == begin || list.fields[f - 1] != field;
    return place;
  }
};

// One thread a quad of columns of an example's row.
struct ClearQuads {
  static constexpr uint32_t kLanes = 1;
  uint32_t examples, columns, quads;
  float* data;
  size_t stride;
  bool aligned;

  STRATA_HD_MEMBER uint64_t items() const { return uint64_t{examples} * quads; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const RowAndQuad at = SplitItem(item, quads);
    const uint32_t column = at.quad * 4;
    Store4(Zero4(), data + at.row * stride + column, columns - column, aligned);
  }
};

// One thread has quad number `quad` of each feature of an example. Features of one field stand side
// by side, so what it has of a field stays in registers.
struct GatherQuads {
  static constexpr uint32_t kLanes = 1;
  VectorExamples x;
  uint32_t examples, quads;
  VectorMatrix out;

  STRATA_HD_MEMBER uint64_t items() const { return uint64_t{examples} * quads; }

  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const RowAndQuad at = SplitItem(item, quads);
    const uint32_t column = at.quad * 4;
    const size_t row = at.row * out.stride;
    Vector4 sum = Zero4();
    uint32_t from[4] = {0, 0, 0, 0};
    for (uint32_t f = x.offsets[at.row]; f < x.offsets[at.row + 1]; ++f) {
      const FeaturePlace place = x.places[f];
      if (place.column == FeaturePlace::kNowhere || column >= place.dim) continue;
      const uint32_t n = place.dim - column;
      const float* const read = x.rows + place.row + column;
      const Vector4 v = LoadConst4(read, n, IsAligned4(read));
      float* const to = out.data + row + place.column + column;
      if (place.max) {
        Greatest(v, place.first, f, &sum, from);
        if (out.from != nullptr) StoreFrom(from, n, out.from + row + place.column + column);
      } else {
        Add(v, place.first, x.values == nullptr ? 1.0f : x.values[f], &sum);
      }
      Store4(sum, to, n, IsAligned4(to));
    }
  }

  STRATA_HD_MEMBER static void Add(const Vector4& v, bool first, float value, Vector4* sum) {
    STRATA_UNROLL
    for (uint32_t d = 0; d < 4; ++d) {
      sum->at[d] = first ? v.at[d] * value : exact::Fma(v.at[d], value, sum->at[d]);
    }
  }

  STRATA_HD_MEMBER static void Greatest(const Vector4& v, bool first, uint32_t feature,
                                        Vector4* most, uint32_t* from) {
    STRATA_UNROLL
    for (uint32_t d = 0; d < 4; ++d) {
      if (!first && !(most->at[d] < v.at[d])) continue;
      most->at[d] = v.at[d];
      from[d] = feature;
    }
  }

  STRATA_HD_MEMBER static void StoreFrom(const uint32_t* from, uint32_t n, uint32_t* to) {
    STRATA_UNROLL
    for (uint32_t d = 0; d < 4; ++d) {
      if (d < n) to[d] = from[d];
    }
  }
};

// What features contribute (ops/cuda/rows/coalesce_rows.h).
struct PlacedRows {
  const FeaturePlace* places;
  const float* values;
  VectorMatrix gradient;
  const uint32_t* example;

  STRATA_HD_MEMBER Vector4 operator()(uint32_t f, uint32_t, uint32_t column, uint32_t n) const {
    const FeaturePlace place = places[f];
    if (place.column == FeaturePlace::kNowhere) return Zero4();
    const size_t at = example[f] * gradient.stride + place.column + column;
    Vector4 v = LoadConst4(gradient.data + at, n, IsAligned4(gradient.data + at));
    const float value = values == nullptr ? 1.0f : values[f];
    STRATA_UNROLL
    for (uint32_t d = 0; d < 4; ++d) {
      if (!place.max) {
        v.at[d] = value * v.at[d];
      } else if (d < n && gradient.from[at + d] != f) {
        v.at[d] = 0.0f;
      }
    }
    return v;
  }
};

}  // namespace

absl::Status PlaceFeatures(CudaApi& api, const FeatureList& list, FeaturePlace* places,
                           uint32_t* example, StreamHandle stream) {
  return LaunchOver(api, "place features", PlaceExamples{list, places, example}, list.examples,
                    stream);
}

absl::Status GatherVectors(CudaApi& api, const VectorExamples& x, uint32_t examples,
                           uint32_t most_dim, uint32_t cleared, const VectorMatrix& out,
                           StreamHandle stream) {
  const ClearQuads clear = {examples, cleared,    RowQuads(cleared),
                            out.data, out.stride, IsAligned4(out.data, out.stride)};
  absl::Status status = LaunchOver(api, "clear vectors", clear, clear.items(), stream);
  if (!status.ok()) return status;
  const GatherQuads gather = {x, examples, RowQuads(most_dim), out};
  return LaunchOver(api, "gather vectors", gather, gather.items(), stream);
}

absl::Status VectorGradients(CudaApi& api, const Coalescer& coalescer, const GroupedKeys& grouped,
                             const VectorExamples& x, const VectorMatrix& gradient,
                             const uint32_t* example, const RowRuns& runs, float* sums,
                             StreamHandle stream) {
  const PlacedRows rows = {x.places, x.values, gradient, example};
  return CoalesceRunsOf(api, coalescer, grouped, rows, runs, sums, stream);
}

}  // namespace strata::ops::gpu
