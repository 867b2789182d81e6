#include "worker/data/formats/line_parser.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace strata {
namespace {

bool FieldsAreOrdinals(const Batch& batch) {
  if (batch.fields.empty()) return false;
  for (uint32_t e = 0; e < batch.size; ++e) {
    for (uint32_t f = batch.offsets[e]; f < batch.offsets[e + 1]; ++f) {
      if (batch.fields[f] != f - batch.offsets[e]) return false;
    }
  }
  return true;
}

}  // namespace

void LineParser::Start(Batch* batch) const {
  batch->Clear();
  batch->numeric = numeric();
  batch->sequences = sequences();
  batch->tasks = tasks();
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
  if (FieldsAreOrdinals(*batch)) batch->fields.clear();
}

LineOutcome BadLine(size_t column, std::string reason, LineError* error) {
  error->column = column;
  error->reason = std::move(reason);
  return LineOutcome::kBad;
}

}  // namespace strata
