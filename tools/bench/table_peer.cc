#include "tools/bench/table_peer.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>

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

}  // namespace

std::optional<double> TablePeer::Rate(TableWork work, size_t threads) const {
  if (work == TableWork::kAdagrad || threads < 1 || threads > 2) return std::nullopt;
  const double rate = rates[work == TableWork::kSgd][threads - 1];
  return rate > 0 ? std::optional<double>(rate) : std::nullopt;
}

TablePeer RunTablePeer(const std::string& baselines, const std::string& scratch) {
  TablePeer peer;
  const std::string header = scratch + "/halves.h";
  std::ofstream(header) << kHalves;
  const std::string command =
      absl::StrCat("g++ -O3 -march=native -pthread -include '", header, "' '", baselines,
                   "/limits/hash.cc' -o '", scratch, "/hash' 2>&1 && '", scratch, "/hash' 2>&1");
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return peer;
  std::array<char, 512> buffer;
  std::string text;
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) {
    const std::string line = buffer.data();
    text += line;
    const size_t threads = line.find("thr="), rate = line.find("): ");
    if (threads == std::string::npos || rate == std::string::npos) continue;
    const bool push = line.find("push") != std::string::npos;
    const int t = std::atoi(line.c_str() + threads + 4);
    if (t == 1 || t == 2) peer.rates[push][t - 1] = std::strtod(line.c_str() + rate + 3, nullptr);
  }
  if (pclose(pipe) != 0) std::fprintf(stderr, "the peer said: %s\n", text.c_str());
  return peer;
}

}  // namespace strata::bench
