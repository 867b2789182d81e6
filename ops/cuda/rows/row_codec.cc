#include "ops/cuda/rows/row_codec.h"

#include "ops/codec_elements.h"
#include "ops/cuda/kernel/kernel.h"
#include "ops/cuda/kernel/vector4.h"
#include "ops/exact_math.h"
#include "ops/inline.h"
#include "ops/optimizer_rules.h"

namespace strata::ops::gpu {
namespace {

struct PackedRows {
  float* rows;
  size_t stride;
  uint32_t dim, quads;
  Count count;
  void* packed;
  bool aligned;

  STRATA_HD_MEMBER uint64_t quads_of_all() const { return uint64_t{count.Get()} * quads; }
};

STRATA_HD void StoreBytes(const void* from, uint32_t n, void* to) {
  for (uint32_t i = 0; i < n; ++i) static_cast<char*>(to)[i] = static_cast<const char*>(from)[i];
}

struct alignas(8) Four16 {
  uint16_t at[4];
};

// bf16 and fp16: one thread a quad. Whole quads are 8 bytes at a multiple of 8 where dim is a
// multiple of 4.
template <bool kFp16>
struct Pack16 {
  static constexpr uint32_t kLanes = 1;
  PackedRows a;
  STRATA_HD_MEMBER uint64_t items() const { return a.quads_of_all(); }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const RowAndQuad at = SplitItem(item, a.quads);
    const uint32_t n = a.dim - at.quad * 4;
    const Vector4 x = LoadConst4(a.rows + at.row * a.stride + at.quad * 4, n, a.aligned);
    Four16 half;
    for (uint32_t d = 0; d < 4; ++d) half.at[d] = kFp16 ? Fp16Of(x.at[d]) : Bf16Of(x.at[d]);
    uint16_t* to = static_cast<uint16_t*>(a.packed) + size_t{at.row} * a.dim + at.quad * 4;
    if (a.dim % 4 == 0) {
      *reinterpret_cast<Four16*>(to) = half;
    } else {
      for (uint32_t d = 0; d < 4 && d < n; ++d) to[d] = half.at[d];
    }
  }
};

template <bool kFp16>
struct Unpack16 {
  static constexpr uint32_t kLanes = 1;
  PackedRows a;
  STRATA_HD_MEMBER uint64_t items() const { return a.quads_of_all(); }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const RowAndQuad at = SplitItem(item, a.quads);
    const uint32_t n = a.dim - at.quad * 4;
    const uint16_t* from =
        static_cast<const uint16_t*>(a.packed) + size_t{at.row} * a.dim + at.quad * 4;
    Four16 half = {};
    if (a.dim % 4 == 0) {
      half = *reinterpret_cast<const Four16*>(from);
    } else {
      for (uint32_t d = 0; d < 4 && d < n; ++d) half.at[d] = from[d];
    }
    Vector4 x;
    for (uint32_t d = 0; d < 4; ++d) {
      x.at[d] = kFp16 ? FromFp16(half.at[d]) : FromBf16(half.at[d]);
    }
    Store4(x, a.rows + at.row * a.stride + at.quad * 4, n, a.aligned);
  }
};

// int8: eight lanes a row, since its scale is known only once all of it was read.
struct PackInt8 {
  static constexpr uint32_t kLanes = 8;
  PackedRows a;
  STRATA_HD_MEMBER uint64_t items() const { return a.count.Get(); }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group& group, uint64_t row) const {
    const float* from = a.rows + row * a.stride;
    uint32_t most = 0;
    for (uint32_t quad = group.lane(); quad < a.quads; quad += group.lanes()) {
      const Vector4 x = LoadConst4(from + quad * 4, a.dim - quad * 4, a.aligned);
      for (uint32_t d = 0; d < 4; ++d) most = rules::Max(most, rules::Magnitude(x.at[d]));
    }
    const float scale = Int8Scale(exact::FromBits(group.Max(most)));
    char* to = static_cast<char*>(a.packed) + row * (size_t{a.dim} + 4);
    if (group.lane() == 0) Write(&scale, 4, to);
    for (uint32_t quad = group.lane(); quad < a.quads; quad += group.lanes()) {
      const uint32_t n = a.dim - quad * 4;
      const Vector4 x = LoadConst4(from + quad * 4, n, a.aligned);
      int8_t q[4];
      for (uint32_t d = 0; d < 4; ++d) q[d] = Int8Of(x.at[d], scale);
      Write(q, n < 4 ? n : 4, to + 4 + quad * 4);
    }
  }
  // Rows begin at a multiple of 4 bytes where dim is one.
  STRATA_HD_MEMBER void Write(const void* from, uint32_t n, char* to) const {
    if (n == 4 && a.dim % 4 == 0) {
      uint32_t word;
      StoreBytes(from, 4, &word);
      *reinterpret_cast<uint32_t*>(to) = word;
    } else {
      StoreBytes(from, n, to);
    }
  }
};

struct UnpackInt8 {
  static constexpr uint32_t kLanes = 1;
  PackedRows a;
  STRATA_HD_MEMBER uint64_t items() const { return a.quads_of_all(); }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const RowAndQuad at = SplitItem(item, a.quads);
    const uint32_t n = a.dim - at.quad * 4;
    const char* row = static_cast<const char*>(a.packed) + at.row * (size_t{a.dim} + 4);
    float scale;
    StoreBytes(row, 4, &scale);
    Vector4 x = Zero4();
    for (uint32_t d = 0; d < 4 && d < n; ++d) {
      x.at[d] = FromInt8(static_cast<int8_t>(row[4 + at.quad * 4 + d]), scale);
    }
    Store4(x, a.rows + at.row * a.stride + at.quad * 4, n, a.aligned);
  }
};

}  // namespace

absl::Status PackRows(CudaApi& api, PackedFormat format, const float* rows, size_t stride,
                      uint32_t dim, const Count& count, void* out, StreamHandle stream) {
  const uint32_t quads = (dim + 3) / 4;
  const PackedRows a = {const_cast<float*>(rows), stride, dim, quads, count, out,
                        IsAligned4(rows, stride)};
  const uint64_t most = uint64_t{count.most} * quads;
  switch (format) {
    case PackedFormat::kBf16:
      return LaunchOver(api, "pack bf16", Pack16<false>{a}, most, stream);
    case PackedFormat::kFp16:
      return LaunchOver(api, "pack fp16", Pack16<true>{a}, most, stream);
    case PackedFormat::kInt8:
      return LaunchOver(api, "pack int8", PackInt8{a}, count.most, stream);
  }
  return absl::InvalidArgumentError("rows of no known format");
}

absl::Status UnpackRows(CudaApi& api, PackedFormat format, const void* packed, uint32_t dim,
                        const Count& count, float* rows, size_t stride, StreamHandle stream) {
  const uint32_t quads = (dim + 3) / 4;
  const PackedRows a = {
      rows, stride, dim, quads, count, const_cast<void*>(packed), IsAligned4(rows, stride)};
  const uint64_t most = uint64_t{count.most} * quads;
  switch (format) {
    case PackedFormat::kBf16:
      return LaunchOver(api, "unpack bf16", Unpack16<false>{a}, most, stream);
    case PackedFormat::kFp16:
      return LaunchOver(api, "unpack fp16", Unpack16<true>{a}, most, stream);
    case PackedFormat::kInt8:
      return LaunchOver(api, "unpack int8", UnpackInt8{a}, most, stream);
  }
  return absl::InvalidArgumentError("rows of no known format");
}

}  // namespace strata::ops::gpu
