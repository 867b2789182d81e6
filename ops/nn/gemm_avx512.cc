#include <immintrin.h>

#include "ops/nn/gemm_kernel.h"

namespace strata::ops {
namespace {

// 14 x 32: 28 accumulators, two vectors of b and one broadcast of a fill the 32 registers.
constexpr int kRows = 14;
constexpr int kLanes = 16;
constexpr int kPanel = 2 * kLanes;

#define STRATA_UNROLL _Pragma("GCC unroll 16")

// Epilogue and store of one row.
template <int V>
inline void Finish(const GemmTile& t, int row, const __m512* acc, const __mmask16* lanes) {
  const __m512 zero = _mm512_setzero_ps();
  STRATA_UNROLL
  for (int v = 0; v < V; ++v) {
    __m512 x = acc[v];
    if (t.bias != nullptr) {
      x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(lanes[v], t.bias + v * kLanes));
    }
    if (t.relu) {
      x = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, zero, _CMP_GT_OQ), x);
    }
    if (t.mask != nullptr) {
      const __m512 h = _mm512_maskz_loadu_ps(lanes[v], t.mask + row * t.ld_mask + v * kLanes);
      x = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(h, zero, _CMP_GT_OQ), x);
    }
    _mm512_mask_storeu_ps(t.c + row * t.ldc + v * kLanes, lanes[v], x);
  }
}

// The chain of a full tile, zmm4..zmm31 = acc (14, 32), zmm0 and zmm1 = b, zmm2 and zmm3 = a. In
// assembly because g++ and clang spill here, which costs a tenth of the speed. Pointers advance
// once in four steps: their additions compete with fma for execution ports.
#define STRATA_FMA(broadcast, left, right)             \
  "vfmadd231ps %%zmm0, %%zmm" broadcast ", %%zmm" left \
  "\n"                                                 \
  "vfmadd231ps %%zmm1, %%zmm" broadcast ", %%zmm" right "\n"
#define STRATA_ROW(address, broadcast, left, right) \
  "vbroadcastss " address ", %%zmm" broadcast "\n" STRATA_FMA(broadcast, left, right)
#define STRATA_LOAD_B(offset0, offset1) \
  "vmovaps " offset0                    \
  "(%[b]), %%zmm0\n"                    \
  "vmovaps " offset1 "(%[b]), %%zmm1\n"
// One step; `o` is the offset in bytes from the pointers into a.
#define STRATA_STRIDED_STEP(offset0, offset1, o)  \
  STRATA_LOAD_B(offset0, offset1)                 \
  STRATA_ROW(o "(%[a0])", "2", "4", "5")          \
  STRATA_ROW(o "(%[a0],%[s])", "3", "6", "7")     \
  STRATA_ROW(o "(%[a0],%[s],2)", "2", "8", "9")   \
  STRATA_ROW(o "(%[a1])", "3", "10", "11")        \
  STRATA_ROW(o "(%[a1],%[s])", "2", "12", "13")   \
  STRATA_ROW(o "(%[a1],%[s],2)", "3", "14", "15") \
  STRATA_ROW(o "(%[a2])", "2", "16", "17")        \
  STRATA_ROW(o "(%[a2],%[s])", "3", "18", "19")   \
  STRATA_ROW(o "(%[a2],%[s],2)", "2", "20", "21") \
  STRATA_ROW(o "(%[a3])", "3", "22", "23")        \
  STRATA_ROW(o "(%[a3],%[s])", "2", "24", "25")   \
  STRATA_ROW(o "(%[a3],%[s],2)", "3", "26", "27") \
  STRATA_ROW(o "(%[a4])", "2", "28", "29")        \
  STRATA_ROW(o "(%[a4],%[s])", "3", "30", "31")
#define STRATA_PACKED_STEP(offset0, offset1, o) \
  STRATA_LOAD_B(offset0, offset1)               \
  STRATA_ROW(o "+0(%[a0])", "2", "4", "5")      \
  STRATA_ROW(o "+4(%[a0])", "3", "6", "7")      \
  STRATA_ROW(o "+8(%[a0])", "2", "8", "9")      \
  STRATA_ROW(o "+12(%[a0])", "3", "10", "11")   \
  STRATA_ROW(o "+16(%[a0])", "2", "12", "13")   \
  STRATA_ROW(o "+20(%[a0])", "3", "14", "15")   \
  STRATA_ROW(o "+24(%[a0])", "2", "16", "17")   \
  STRATA_ROW(o "+28(%[a0])", "3", "18", "19")   \
  STRATA_ROW(o "+32(%[a0])", "2", "20", "21")   \
  STRATA_ROW(o "+36(%[a0])", "3", "22", "23")   \
  STRATA_ROW(o "+40(%[a0])", "2", "24", "25")   \
  STRATA_ROW(o "+44(%[a0])", "3", "26", "27")   \
  STRATA_ROW(o "+48(%[a0])", "2", "28", "29")   \
  STRATA_ROW(o "+52(%[a0])", "3", "30", "31")
#define STRATA_LOAD(n, offset) "vmovaps " offset "(%[acc]), %%zmm" n "\n"
#define STRATA_STORE(n, offset) "vmovaps %%zmm" n ", " offset "(%[acc])\n"
#define STRATA_ALL(i)                                                                             \
  i("4", "0") i("5", "64") i("6", "128") i("7", "192") i("8", "256") i("9", "320") i("10", "384") \
      i("11", "448") i("12", "512") i("13", "576") i("14", "640") i("15", "704") i("16", "768")   \
          i("17", "832") i("18", "896") i("19", "960") i("20", "1024") i("21", "1088")            \
              i("22", "1152") i("23", "1216") i("24", "1280") i("25", "1344") i("26", "1408")     \
                  i("27", "1472") i("28", "1536") i("29", "1600") i("30", "1664") i("31", "1728")
#define STRATA_CHAIN(four_steps, one_step, advance4, advance1)         \
  STRATA_ALL(STRATA_LOAD)                                              \
  "sub $4, %[k]\n jb 2f\n .p2align 5\n"                                \
  "1: prefetcht1 (%[ahead])\n add $64, %[ahead]\n" four_steps advance4 \
  "add $512, %[b]\n sub $4, %[k]\n jae 1b\n"                           \
  "2: add $4, %[k]\n jz 4f\n"                                          \
  "3:\n" one_step advance1                                             \
  "add $128, %[b]\n dec %[k]\n jnz 3b\n"                               \
  "4:\n" STRATA_ALL(STRATA_STORE)
#define STRATA_CLOBBERS                                                                           \
  "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", \
      "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "xmm16", "xmm17", "xmm18", "xmm19",   \
      "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29",   \
      "xmm30", "xmm31"

void StridedChain(const float* a0, size_t stride, const float* b, size_t k, const float* ahead,
                  float* acc) {
  const float *a1 = a0 + 3 * stride, *a2 = a0 + 6 * stride, *a3 = a0 + 9 * stride,
              *a4 = a0 + 12 * stride;
  asm volatile(STRATA_CHAIN(STRATA_STRIDED_STEP("0", "64", "0") STRATA_STRIDED_STEP(
                                "128", "192", "4") STRATA_STRIDED_STEP("256", "320", "8")
                                STRATA_STRIDED_STEP("384", "448", "12"),
                            STRATA_STRIDED_STEP("0", "64", "0"),
                            "add $16, %[a0]\n add $16, %[a1]\n add $16, %[a2]\n"
                            "add $16, %[a3]\n add $16, %[a4]\n",
                            "add $4, %[a0]\n add $4, %[a1]\n add $4, %[a2]\n"
                            "add $4, %[a3]\n add $4, %[a4]\n")
               : [a0] "+r"(a0), [a1] "+r"(a1), [a2] "+r"(a2), [a3] "+r"(a3), [a4] "+r"(a4),
                 [b] "+r"(b), [k] "+r"(k), [ahead] "+r"(ahead)
               : [s] "r"(stride * sizeof(float)), [acc] "r"(acc)
               : STRATA_CLOBBERS);
}

void PackedChain(const float* a0, const float* b, size_t k, const float* ahead, float* acc) {
  asm volatile(
      STRATA_CHAIN(STRATA_PACKED_STEP("0", "64", "0") STRATA_PACKED_STEP("128", "192", "56")
                       STRATA_PACKED_STEP("256", "320", "112")
                           STRATA_PACKED_STEP("384", "448", "168"),
                   STRATA_PACKED_STEP("0", "64", "0"), "add $224, %[a0]\n", "add $56, %[a0]\n")
      : [a0] "+r"(a0), [b] "+r"(b), [k] "+r"(k), [ahead] "+r"(ahead)
      : [acc] "r"(acc)
      : STRATA_CLOBBERS);
}

// A full tile: 14 rows, more than 16 columns.
template <bool kPacked>
void FullTile(const GemmTile& t) {
  const __mmask16 lanes[2] = {0xffff, static_cast<__mmask16>((1u << (t.cols - kLanes)) - 1)};
  alignas(64) float acc[kRows * kPanel];
  for (int r = 0; r < kRows; ++r) {
    float* const c = t.c + r * t.ldc;
    if (t.load_c) {
      _mm512_store_ps(acc + r * kPanel, _mm512_loadu_ps(c));
      _mm512_store_ps(acc + r * kPanel + kLanes, _mm512_maskz_loadu_ps(lanes[1], c + kLanes));
    } else {
      _mm512_store_ps(acc + r * kPanel, _mm512_setzero_ps());
      _mm512_store_ps(acc + r * kPanel + kLanes, _mm512_setzero_ps());
      _mm_prefetch(reinterpret_cast<const char*>(c), _MM_HINT_T0);
      _mm_prefetch(reinterpret_cast<const char*>(c + kLanes), _MM_HINT_T0);
    }
  }
  const float* const ahead = t.prefetch != nullptr ? t.prefetch : t.b;
  if (kPacked) {
    PackedChain(t.a, t.b, t.k, ahead, acc);
  } else {
    StridedChain(t.a, t.a_stride, t.b, t.k, ahead, acc);
  }
  for (int r = 0; r < kRows; ++r) {
    const __m512 x[2] = {_mm512_load_ps(acc + r * kPanel),
                         _mm512_load_ps(acc + r * kPanel + kLanes)};
    Finish<2>(t, r, x, lanes);
  }
}

// A tile of R rows and at most V vectors of columns, at the edges of C.
template <int R, int V, bool kPacked>
void Tile(const GemmTile& t) {
  __mmask16 lanes[V];
  lanes[V - 1] = static_cast<__mmask16>((1u << (t.cols - (V - 1) * kLanes)) - 1);
  if (V == 2) lanes[0] = 0xffff;
  __m512 acc[R][V];
  STRATA_UNROLL
  for (int r = 0; r < R; ++r) {
    STRATA_UNROLL
    for (int v = 0; v < V; ++v) {
      acc[r][v] = t.load_c ? _mm512_maskz_loadu_ps(lanes[v], t.c + r * t.ldc + v * kLanes)
                           : _mm512_setzero_ps();
    }
  }
  // Row r of a strided tile lies at a[r / 3] + (r % 3) * stride: five pointers address 14 rows.
  const size_t stride = t.a_stride;
  const float* a[5] = {t.a, t.a + 3 * stride, t.a + 6 * stride, t.a + 9 * stride,
                       t.a + 12 * stride};
  const float* b = t.b;
  for (size_t k = 0; k < t.k; ++k) {
    __m512 bv[V];
    STRATA_UNROLL
    for (int v = 0; v < V; ++v) bv[v] = _mm512_load_ps(b + v * kLanes);
    STRATA_UNROLL
    for (int r = 0; r < R; ++r) {
      const __m512 x = _mm512_set1_ps(kPacked ? a[0][r] : a[r / 3][(r % 3) * stride]);
      STRATA_UNROLL
      for (int v = 0; v < V; ++v) acc[r][v] = _mm512_fmadd_ps(x, bv[v], acc[r][v]);
    }
    STRATA_UNROLL
    for (int g = 0; g < (R + 2) / 3; ++g) a[g] += kPacked ? kRows : 1;
    b += kPanel;
  }
  STRATA_UNROLL
  for (int r = 0; r < R; ++r) Finish<V>(t, r, acc[r], lanes);
}

using TileFn = void (*)(const GemmTile&);

template <int V, bool kPacked>
constexpr TileFn kTiles[kRows] = {
    Tile<1, V, kPacked>,  Tile<2, V, kPacked>,
    Tile<3, V, kPacked>,  Tile<4, V, kPacked>,
    Tile<5, V, kPacked>,  Tile<6, V, kPacked>,
    Tile<7, V, kPacked>,  Tile<8, V, kPacked>,
    Tile<9, V, kPacked>,  Tile<10, V, kPacked>,
    Tile<11, V, kPacked>, Tile<12, V, kPacked>,
    Tile<13, V, kPacked>, V == 2 ? FullTile<kPacked> : Tile<14, 1, kPacked>};

template <bool kPacked>
void Run(const GemmTile& t) {
  if (t.cols > kLanes) {
    kTiles<2, kPacked>[t.rows - 1](t);
  } else {
    kTiles<1, kPacked>[t.rows - 1](t);
  }
}

}  // namespace

const GemmKernel kGemmAvx512 = {"avx512", kRows, kPanel, Run<false>, Run<true>};

}  // namespace strata::ops
