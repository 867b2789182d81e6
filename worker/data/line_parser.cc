#include "worker/data/line_parser.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace strata {

void LineParser::Start(Batch* batch) const {
  batch->Clear();
  batch->numeric = numeric();
}

LineOutcome LineParser::Parse(absl::string_view line, Batch* batch, LineError* error) const {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (line.empty()) return LineOutcome::kBlank;
  if (const void* nul = std::memchr(line.data(), '\0', line.size())) {
    const size_t column = static_cast<const char*>(nul) - line.data() + 1;
    return BadLine(column, "a NUL byte; is this a text file?", error);
  }
  return ParseExample(line, batch, error);
}

void LineParser::Finish(Batch* batch) {
  if (std::all_of(batch->values.begin(), batch->values.end(), [](float v) { return v == 1.0f; })) {
    batch->values.clear();
  }
}

LineOutcome BadLine(size_t column, std::string reason, LineError* error) {
  error->column = column;
  error->reason = std::move(reason);
  return LineOutcome::kBad;
}

}  // namespace strata
