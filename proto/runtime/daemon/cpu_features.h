// What of x86-64-v3 a processor lacks: a pure function over what CPUID and XGETBV say. Plain C++
// without library calls, because it runs before anything else does.
#ifndef STRATA_PROTO_RUNTIME_DAEMON_CPU_FEATURES_H_
#define STRATA_PROTO_RUNTIME_DAEMON_CPU_FEATURES_H_

#include <cstdint>

namespace strata {

// The exit code of a binary that was started on a processor it was not built for.
inline constexpr int kUnsupportedCpuExitCode = 6;

struct CpuidWords {
  uint32_t leaf1_ecx = 0;
  uint32_t leaf7_ebx = 0;
  uint32_t leaf80000001_ecx = 0;
  uint32_t xcr0 = 0;  // what registers the operating system saves; 0 without OSXSAVE
};

// The name of the first missing feature, or null when none is. Static: a copy of each file's own,
// so that the linker cannot give cpu_check.cc one that was compiled for x86-64-v3.
[[maybe_unused]] static constexpr const char* MissingCpuFeature(const CpuidWords& w) {
  struct Feature {
    uint32_t word;
    int bit;
    const char* name;
  };
  const Feature features[] = {
      {w.leaf1_ecx, 20, "SSE4.2"},      {w.leaf1_ecx, 23, "POPCNT"}, {w.leaf1_ecx, 12, "FMA"},
      {w.leaf1_ecx, 22, "MOVBE"},       {w.leaf1_ecx, 28, "AVX"},    {w.leaf1_ecx, 29, "F16C"},
      {w.leaf7_ebx, 3, "BMI1"},         {w.leaf7_ebx, 5, "AVX2"},    {w.leaf7_ebx, 8, "BMI2"},
      {w.leaf80000001_ecx, 5, "LZCNT"},
  };
  for (const Feature& f : features) {
    if ((f.word >> f.bit & 1) == 0) return f.name;
  }
  if ((w.xcr0 & 6) != 6) return "saving of AVX registers by the operating system";
  return nullptr;
}

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_DAEMON_CPU_FEATURES_H_
