// How fast text becomes batches: what a benchmark calls.
#ifndef STRATA_WORKER_DATA_READING_PARSE_THROUGHPUT_H_
#define STRATA_WORKER_DATA_READING_PARSE_THROUGHPUT_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "worker/data/formats/line_parser.h"

namespace strata {

struct ParseThroughput {
  uint64_t bytes = 0;  // parsed, newlines included
  uint64_t examples = 0;
  uint64_t bad_lines = 0;
  double seconds = 0;
  uint64_t key_sum = 0;  // modulo 2^64, so that no work can be left out

  double BytesPerSecond() const { return seconds > 0 ? static_cast<double>(bytes) / seconds : 0; }
};

// Splits `text` into lines, parses them into batches of `batch_size` (one Batch, used again and
// again), on the calling thread. REQUIRES: batch_size >= 1.
ParseThroughput MeasureParse(const LineParser& parser, absl::string_view text, uint32_t batch_size);

}  // namespace strata

#endif  // STRATA_WORKER_DATA_READING_PARSE_THROUGHPUT_H_
