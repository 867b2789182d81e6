#include <immintrin.h>

#include "ops/nn/gemm_kernel.h"

namespace strata::ops {
namespace {

// 6 x 16: 12 accumulators, two vectors of b and one broadcast of a in 16 registers.
constexpr int kRows = 6;
constexpr int kLanes = 8;

#define STRATA_UNROLL _Pragma("GCC unroll 16")

// The first n lanes.
inline __m256i LaneMask(size_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// Whole vectors go without a mask: a masked store takes 12 cycles on AMD's cores, an eighth of a
// tile's time.
template <int V>
inline void Store(float* c, int v, bool whole, const __m256i* lanes, __m256 x) {
  if (v < V - 1 || whole) {
    _mm256_storeu_ps(c, x);
  } else {
    _mm256_maskstore_ps(c, lanes[v], x);
  }
}

// Epilogue and store of one row.
template <int V>
inline void Finish(const GemmTile& t, int row, const __m256* acc, const __m256i* lanes) {
  const __m256 zero = _mm256_setzero_ps();
  const bool whole = t.cols == V * kLanes;
  STRATA_UNROLL
  for (int v = 0; v < V; ++v) {
    __m256 x = acc[v];
    if (t.bias != nullptr) {
      x = _mm256_add_ps(x, _mm256_maskload_ps(t.bias + v * kLanes, lanes[v]));
    }
    if (t.relu) x = _mm256_and_ps(x, _mm256_cmp_ps(x, zero, _CMP_GT_OQ));
    if (t.mask != nullptr) {
      const __m256 h = _mm256_maskload_ps(t.mask + row * t.ld_mask + v * kLanes, lanes[v]);
      x = _mm256_and_ps(x, _mm256_cmp_ps(h, zero, _CMP_GT_OQ));
    }
    Store<V>(t.c + row * t.ldc + v * kLanes, v, whole, lanes, x);
  }
}

template <int R, int V, bool kPacked>
void Tile(const GemmTile& t) {
  __m256i lanes[V];
  lanes[V - 1] = LaneMask(t.cols - (V - 1) * kLanes);
  if (V == 2) lanes[0] = LaneMask(kLanes);
  __m256 acc[R][V];
  STRATA_UNROLL
  for (int r = 0; r < R; ++r) {
    STRATA_UNROLL
    for (int v = 0; v < V; ++v) {
      acc[r][v] = t.load_c ? _mm256_maskload_ps(t.c + r * t.ldc + v * kLanes, lanes[v])
                           : _mm256_setzero_ps();
    }
  }
  const float* a = t.a;
  const float* a3 = t.a + 3 * t.a_stride;
  const float* b = t.b;
  const size_t stride = t.a_stride;
  for (size_t k = 0; k < t.k; ++k) {
    __m256 bv[V];
    STRATA_UNROLL
    for (int v = 0; v < V; ++v) bv[v] = _mm256_load_ps(b + v * kLanes);
    STRATA_UNROLL
    for (int r = 0; r < R; ++r) {
      const __m256 x = _mm256_broadcast_ss(
          kPacked ? a + r : (r < 3 ? a : a3) + static_cast<size_t>(r % 3) * stride);
      STRATA_UNROLL
      for (int v = 0; v < V; ++v) acc[r][v] = _mm256_fmadd_ps(x, bv[v], acc[r][v]);
    }
    a += kPacked ? kRows : 1;
    a3 += 1;
    b += 2 * kLanes;
  }
  STRATA_UNROLL
  for (int r = 0; r < R; ++r) Finish<V>(t, r, acc[r], lanes);
}

using TileFn = void (*)(const GemmTile&);

template <int V, bool kPacked>
constexpr TileFn kTiles[kRows] = {Tile<1, V, kPacked>, Tile<2, V, kPacked>, Tile<3, V, kPacked>,
                                  Tile<4, V, kPacked>, Tile<5, V, kPacked>, Tile<6, V, kPacked>};

template <bool kPacked>
void Run(const GemmTile& t) {
  if (t.cols > kLanes) {
    kTiles<2, kPacked>[t.rows - 1](t);
  } else {
    kTiles<1, kPacked>[t.rows - 1](t);
  }
}

}  // namespace

const GemmKernel kGemmAvx2 = {"avx2", kRows, 2 * kLanes, Run<false>, Run<true>};

}  // namespace strata::ops
