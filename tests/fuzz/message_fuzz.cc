// libFuzzer target of one message's parser, FUZZ_KIND of codec_oracle.h: no crash, and what it
// accepts is what protobuf reads.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/proto/wire/codec_oracle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using strata::testing::MessageKind;
  const strata::testing::Verdict verdict =
      strata::testing::Judge(MessageKind::FUZZ_KIND, {data, size});
  if (!verdict.complaint.empty()) {
    std::fprintf(stderr, "%s\n", verdict.complaint.c_str());
    std::abort();
  }
  return 0;
}
