// libFuzzer target of the reader of deltas: no crash, bounded memory, and blocks that are what they
// say. Checksums are mended first, or nothing would be behind them.
//
// An input that begins with an even byte is the number of a small delta and what to change in it;
// any other is read as it is. A delta begins with an odd byte, so that those of the corpus
// (delta_seeds.h) are of the second kind, all but `mutations`.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/storage/delta/oracle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint8_t> bytes(data, data + size);
  if (size > 0 && data[0] % 2 == 0) {
    bytes = strata::storage::SmallDelta(data[0]);
    for (size_t i = 1; i + 2 < size; i += 3) {  // three bytes: where (two), and what
      bytes[(data[i] + 256u * data[i + 1]) % bytes.size()] = data[i + 2];
    }
  }
  strata::storage::MendChecksums(bytes);
  const absl::Status s = strata::storage::ReadWholeDelta(bytes);
  if (s.ok() || absl::IsDataLoss(s)) return 0;
  std::fprintf(stderr, "%s\n", std::string(s.message()).c_str());
  std::abort();
}
