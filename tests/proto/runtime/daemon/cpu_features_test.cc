#include "proto/runtime/daemon/cpu_features.h"

#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "proto/runtime/daemon/read_cpuid.h"

namespace strata {
namespace {

constexpr CpuidWords kAll{~0u, ~0u, ~0u, ~0u};

TEST_CASE("a processor with everything passes", "[cpu]") {
  CHECK(MissingCpuFeature(kAll) == nullptr);
  // Exactly what is needed, and nothing else.
  CpuidWords least;
  for (int bit : {12, 20, 22, 23, 28, 29}) least.leaf1_ecx |= 1u << bit;
  for (int bit : {3, 5, 8}) least.leaf7_ebx |= 1u << bit;
  least.leaf80000001_ecx = 1u << 5;
  least.xcr0 = 6;
  CHECK(MissingCpuFeature(least) == nullptr);
}

TEST_CASE("each missing feature is named", "[cpu]") {
  const auto missing = [](CpuidWords w) { return std::string(MissingCpuFeature(w)); };
  const auto without = [&](uint32_t CpuidWords::*word, int bit) {
    CpuidWords w = kAll;
    w.*word &= ~(1u << bit);
    return missing(w);
  };
  CHECK(without(&CpuidWords::leaf1_ecx, 20) == "SSE4.2");
  CHECK(without(&CpuidWords::leaf1_ecx, 23) == "POPCNT");
  CHECK(without(&CpuidWords::leaf1_ecx, 12) == "FMA");
  CHECK(without(&CpuidWords::leaf1_ecx, 22) == "MOVBE");
  CHECK(without(&CpuidWords::leaf1_ecx, 28) == "AVX");
  CHECK(without(&CpuidWords::leaf1_ecx, 29) == "F16C");
  CHECK(without(&CpuidWords::leaf7_ebx, 3) == "BMI1");
  CHECK(without(&CpuidWords::leaf7_ebx, 5) == "AVX2");
  CHECK(without(&CpuidWords::leaf7_ebx, 8) == "BMI2");
  CHECK(without(&CpuidWords::leaf80000001_ecx, 5) == "LZCNT");
  CHECK(without(&CpuidWords::xcr0, 2).find("operating system") != std::string::npos);
  CHECK(missing({}) == "SSE4.2");
}

TEST_CASE("this processor has what this test was compiled for", "[cpu]") {
  CHECK(MissingCpuFeature(ReadCpuid()) == nullptr);
}

TEST_CASE("a program on an older processor says what is missing before anything else runs",
          "[cpu]") {
  const std::string program =
      std::string(std::getenv("TEST_SRCDIR")) + "/strata/tests/proto/runtime/daemon/old_processor";
  std::FILE* pipe = popen(("'" + program + "' 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string said;
  for (int c; (c = std::fgetc(pipe)) != EOF;) said += static_cast<char>(c);
  const int status = pclose(pipe);
  CHECK(said ==
        "strata: this processor lacks AVX2; the program is built for x86-64-v3 (Intel Haswell, AMD "
        "Excavator, or later)\n");
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == kUnsupportedCpuExitCode);
}

}  // namespace
}  // namespace strata
