#include "tools/gpu/bars/fill.h"

#include "ops/counter_random.h"
#include "ops/cuda/kernel/kernel.h"
#include "ops/inline.h"

namespace strata::gpu_check {
namespace {

using ops::gpu::CudaApi;
using ops::gpu::StreamHandle;

struct Uniform {
  float low, range;
  uint64_t stream;
  STRATA_HD_MEMBER float At(uint64_t i) const {
    const uint64_t bits = ops::MixBits(stream + (i + 1) * ops::kGoldenGamma);
    return low + range * (static_cast<float>(static_cast<int32_t>(bits >> 40)) * 0x1p-24f);
  }
};

struct Floats {
  static constexpr uint32_t kLanes = 1;
  Uniform uniform;
  float* out;
  uint64_t n;
  STRATA_HD_MEMBER uint64_t items() const { return n; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t i) const {
    out[i] = uniform.At(i);
  }
};

struct Bf16s {
  static constexpr uint32_t kLanes = 1;
  Uniform uniform;
  uint16_t* out;
  uint64_t n;
  STRATA_HD_MEMBER uint64_t items() const { return n; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t i) const {
    union {
      float value;
      uint32_t bits;
    } x{uniform.At(i)};
    out[i] = static_cast<uint16_t>(x.bits >> 16);
  }
};

// Products with odd numbers and xors with higher bits are one to one on numbers of `bits` bits.
struct RowNumbers {
  static constexpr uint32_t kLanes = 1;
  uint64_t seed;
  uint32_t* out;
  uint32_t n, bits;
  STRATA_HD_MEMBER uint64_t items() const { return n; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t i) const {
    const uint64_t mask = (uint64_t{1} << bits) - 1;
    const uint32_t half = bits / 2 + 1;
    uint64_t x = (i + seed) & mask;
    for (uint32_t round = 0; round < 3; ++round) {
      x ^= x >> half;
      x = (x * (ops::MixBits(seed + round) | 1)) & mask;
    }
    out[i] = static_cast<uint32_t>(x ^ (x >> half));
  }
};

}  // namespace

absl::Status FillFloats(CudaApi& api, uint64_t n, float low, float high, uint64_t seed, float* out,
                        StreamHandle stream) {
  const Uniform uniform = {low, high - low, ops::MixBits(seed)};
  return ops::gpu::LaunchOver(api, "fill floats", Floats{uniform, out, n}, n, stream);
}

absl::Status FillBf16(CudaApi& api, uint64_t n, float low, float high, uint64_t seed, uint16_t* out,
                      StreamHandle stream) {
  const Uniform uniform = {low, high - low, ops::MixBits(seed)};
  return ops::gpu::LaunchOver(api, "fill bf16", Bf16s{uniform, out, n}, n, stream);
}

absl::Status FillRowNumbers(CudaApi& api, uint32_t n, uint32_t bits, uint64_t seed, uint32_t* out,
                            StreamHandle stream) {
  return ops::gpu::LaunchOver(api, "fill row numbers", RowNumbers{seed, out, n, bits}, n, stream);
}

}  // namespace strata::gpu_check
