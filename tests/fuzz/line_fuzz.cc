// libFuzzer target of one format's line parser, FUZZ_FORMAT of input_oracle.h.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/worker/data/formats/input_oracle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using strata::testing::LineFormat;
  const strata::testing::LineVerdict verdict = strata::testing::JudgeLine(
      LineFormat::FUZZ_FORMAT, {reinterpret_cast<const char*>(data), size});
  if (!verdict.complaint.empty()) {
    std::fprintf(stderr, "%s\n", verdict.complaint.c_str());
    std::abort();
  }
  return 0;
}
