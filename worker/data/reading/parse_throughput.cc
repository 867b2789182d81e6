#include "worker/data/reading/parse_throughput.h"

#include <algorithm>
#include <chrono>

#include "worker/step/batch.h"

namespace strata {

ParseThroughput MeasureParse(const LineParser& parser, absl::string_view text,
                             uint32_t batch_size) {
  ParseThroughput result;
  result.bytes = text.size();
  const auto start = std::chrono::steady_clock::now();
  Batch batch;
  parser.Start(&batch);
  LineError error;
  const auto end_batch = [&] {
    LineParser::Finish(&batch);
    result.examples += batch.size;
    for (const uint64_t key : batch.keys) result.key_sum += key;
    parser.Start(&batch);
  };
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const LineOutcome outcome = parser.Parse(text.substr(at, end - at), &batch, &error);
    if (outcome == LineOutcome::kBad) ++result.bad_lines;
    if (batch.size == batch_size) end_batch();
    at = end + 1;
  }
  end_batch();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace strata
