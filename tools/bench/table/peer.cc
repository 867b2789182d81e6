#include "tools/bench/table/peer.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace strata::bench {
namespace {

constexpr char kHalves[] = R"(#include <immintrin.h>
#ifndef __AVX512F__
struct Halves { __m256 low, high; };
static inline Halves Load(const void* p) {
  return {_mm256_load_ps((const float*)p), _mm256_load_ps((const float*)p + 8)};
}
static inline void Store(void* p, Halves v) {
  _mm256_store_ps((float*)p, v.low);
  _mm256_store_ps((float*)p + 8, v.high);
}
static inline Halves Fma(Halves a, Halves b, Halves c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
static inline Halves Set(float f) { return {_mm256_set1_ps(f), _mm256_set1_ps(f)}; }
#define __m512 Halves
#define _mm512_load_ps Load
#define _mm512_store_ps Store
#define _mm512_fmadd_ps Fma
#define _mm512_set1_ps Set
#endif
)";

// The program with rows of 128 bytes, 16 weights and 16 sums of squares, and Adagrad for SGD.
constexpr char kAdagrad[] = R"(#include <cmath>
static inline void Adagrad(float* row, const float* g) {
  for (int d = 0; d < 16; ++d) {
    const float sum = row[16 + d] + g[d] * g[d];
    row[16 + d] = sum;
    row[d] -= .01f * g[d] / (sqrtf(sum) + 1e-10f);
  }
}
)";

// Empty where the program is not the one that is known.
std::string WithAdagrad(const std::string& source) {
  const std::pair<const char*, const char*> changes[] = {
      {"alloc(C*64)", "alloc(C*128)"},
      {"rows[s*16]=i", "rows[s*32]=i"},
      {"if(i+32<B)_mm_prefetch((char*)&rows[(h(k[i+32])>>SH)*16],_MM_HINT_T0);",
       "if(i+32<B){_mm_prefetch((char*)&rows[(h(k[i+32])>>SH)*32],_MM_HINT_T0);"
       "_mm_prefetch((char*)&rows[(h(k[i+32])>>SH)*32+16],_MM_HINT_T0);}"},
      {"__m512 w=_mm512_load_ps(rows+s*16);if(push)_mm512_store_ps(rows+s*16,"
       "_mm512_fmadd_ps(_mm512_set1_ps(-.01f),_mm512_load_ps(out+i*16),w));else "
       "_mm512_store_ps(out+i*16,w);",
       "if(push)Adagrad(rows+s*32,out+i*16);else "
       "_mm512_store_ps(out+i*16,_mm512_load_ps(rows+s*32));"},
      {"for(int push:{0,1})", "for(int push:{1})"},
  };
  std::string text = source;
  for (const auto& [from, to] : changes) {
    const size_t at = text.find(from);
    if (at == std::string::npos) return "";
    text.replace(at, std::strlen(from), to);
  }
  return text;
}

std::string ReadText(const std::string& path) {
  std::ifstream in(path);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// Million keys per second by push and threads of the program in the file `source`.
void RunProgram(const std::string& source, const std::string& scratch, double (&pull)[2],
                double (&push)[2]) {
  const std::string command = absl::StrCat(
      "g++ -O3 -march=native -fno-math-errno -pthread -include '", scratch, "/halves.h' '", source,
      "' -o '", scratch, "/hash' 2>&1 && '", scratch, "/hash' 2>&1");
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return;
  std::array<char, 512> buffer;
  std::string text;
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) {
    const std::string line = buffer.data();
    text += line;
    const size_t threads = line.find("thr="), rate = line.find("): ");
    if (threads == std::string::npos || rate == std::string::npos) continue;
    const int t = std::atoi(line.c_str() + threads + 4);
    if (t < 1 || t > 2) continue;
    const double keys = std::strtod(line.c_str() + rate + 3, nullptr);
    (line.find("push") == std::string::npos ? pull : push)[t - 1] = keys;
  }
  if (pclose(pipe) != 0) std::fprintf(stderr, "the peer said: %s\n", text.c_str());
}

}  // namespace

std::optional<double> TablePeer::Rate(TableWork work, size_t threads) const {
  if (threads < 1 || threads > 2) return std::nullopt;
  const double rate = rates[static_cast<size_t>(work)][threads - 1];
  return rate > 0 ? std::optional<double>(rate) : std::nullopt;
}

TablePeer RunTablePeer(const std::string& baselines, const std::string& scratch) {
  TablePeer peer;
  auto& [gather, sgd, adagrad] = peer.rates;
  std::ofstream(scratch + "/halves.h") << kHalves << kAdagrad;
  const std::string source = baselines + "/limits/hash.cc";
  RunProgram(source, scratch, gather, sgd);
  const std::string changed = WithAdagrad(ReadText(source));
  if (changed.empty()) {
    std::fprintf(stderr, "%s is another program than the one known: no Adagrad\n", source.c_str());
    return peer;
  }
  const std::string wide = scratch + "/hash128.cc";
  std::ofstream(wide) << changed;
  double none[2] = {};
  RunProgram(wide, scratch, none, adagrad);
  return peer;
}

}  // namespace strata::bench
