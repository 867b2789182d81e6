#include "worker/data/formats/libffm_parser.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "worker/data/formats/number_text.h"
#include "worker/data/formats/token_line.h"

namespace strata {
namespace {

// Stable sort of the features from `first` on by field.
void SortByField(size_t first, Batch* batch) {
  if (std::is_sorted(batch->fields.begin() + first, batch->fields.end())) return;
  const size_t n = batch->fields.size() - first;
  std::vector<uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return batch->fields[first + a] < batch->fields[first + b];
  });
  const Batch old = {.keys = {batch->keys.begin() + first, batch->keys.end()},
                     .values = {batch->values.begin() + first, batch->values.end()},
                     .fields = {batch->fields.begin() + first, batch->fields.end()}};
  for (size_t i = 0; i < n; ++i) {
    batch->keys[first + i] = old.keys[order[i]];
    batch->values[first + i] = old.values[order[i]];
    batch->fields[first + i] = old.fields[order[i]];
  }
}

class LibffmParser : public LineParser {
 public:
  LibffmParser(uint32_t fields, Labels labels) : fields_(fields), labels_(labels) {}

  uint32_t numeric() const override { return 0; }

 private:
  LineOutcome ParseExample(absl::string_view line, Batch* batch, LineError* error) const override {
    const BatchMark mark(*batch);
    const size_t first = batch->fields.size();
    float label = 0;
    const LineOutcome outcome =
        ParseTokenLine(line, labels_, &label, error,
                       [&](absl::string_view token) { return ParseFeature(token, batch); });
    if (outcome == LineOutcome::kExample) {
      SortByField(first, batch);
      AppendExample(label, batch);
    } else {
      mark.Restore(batch);
    }
    return outcome;
  }

  // Appends one "field:feature:value". Empty on success, else the reason.
  std::string ParseFeature(absl::string_view token, Batch* batch) const;

  const uint32_t fields_;
  const Labels labels_;
};

std::string LibffmParser::ParseFeature(absl::string_view token, Batch* batch) const {
  const size_t first = token.find(':');
  const size_t second = first == token.npos ? token.npos : token.find(':', first + 1);
  if (second == token.npos) {
    return absl::StrCat("feature ", Quoted(token), " is not field:feature:value");
  }
  uint64_t field = 0;
  const absl::string_view field_text = token.substr(0, first);
  if (const NumberError e = ParseUnsigned(field_text, &field); e != NumberError::kNone) {
    return BadFeatureNumber("field", e, field_text);
  }
  if (field >= fields_) {
    return fields_ == kMaxLibffmFields
               ? absl::StrCat("field ", field, " is over the limit of ", kMaxLibffmFields - 1)
               : absl::StrCat("field ", field, " is over ", fields_ - 1,
                              ", the highest of the train files");
  }
  uint64_t key = 0;
  const absl::string_view key_text = token.substr(first + 1, second - first - 1);
  if (const NumberError e = ParseUnsigned(key_text, &key); e != NumberError::kNone) {
    return BadFeatureNumber("feature index", e, key_text);
  }
  float value = 0;
  const absl::string_view text = token.substr(second + 1);
  if (const NumberError e = ParseReal(text, &value); e != NumberError::kNone) {
    return absl::StrCat("feature value ", Quoted(text), " ", WhyNoReal(e));
  }
  batch->keys.push_back(key);
  batch->values.push_back(value);
  batch->fields.push_back(static_cast<uint32_t>(field));
  return "";
}

}  // namespace

std::unique_ptr<LineParser> MakeLibffmParser(uint32_t fields, Labels labels) {
  return std::make_unique<LibffmParser>(fields, labels);
}

}  // namespace strata
