// libFuzzer target of the gzip and zstd readers: the same outcome however a file is cut into
// pieces.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/worker/data/formats/input_oracle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string complaint =
      strata::testing::JudgeCompressed({reinterpret_cast<const char*>(data), size});
  if (!complaint.empty()) {
    std::fprintf(stderr, "%s\n", complaint.c_str());
    std::abort();
  }
  return 0;
}
