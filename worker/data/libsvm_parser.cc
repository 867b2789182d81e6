#include "worker/data/libsvm_parser.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "worker/data/number_text.h"

namespace strata {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\t'; }

std::string BadIndex(NumberError error, absl::string_view text) {
  if (error == NumberError::kOutOfRange) {
    return absl::StrCat("feature index ", Quoted(text), " is over 18446744073709551615 (2^64 - 1)");
  }
  if (!text.empty() && text[0] == '-') {
    return absl::StrCat("feature index ", Quoted(text), " is negative");
  }
  return absl::StrCat("feature index ", Quoted(text), " is not a whole number");
}

class LibsvmParser : public LineParser {
 public:
  explicit LibsvmParser(uint32_t max_features) : max_features_(max_features) {}

  uint32_t numeric() const override { return 0; }

 private:
  LineOutcome ParseExample(absl::string_view line, Batch* batch, LineError* error) const override;
  // Appends one "index:value". Empty on success, else the reason.
  static std::string ParseFeature(absl::string_view token, Batch* batch);

  const uint32_t max_features_;
};

std::string LibsvmParser::ParseFeature(absl::string_view token, Batch* batch) {
  const size_t colon = token.find(':');
  if (colon == absl::string_view::npos) {
    return absl::StrCat("feature ", Quoted(token), " is not index:value");
  }
  uint64_t key = 0;
  const absl::string_view index = token.substr(0, colon);
  if (const NumberError e = ParseUnsigned(index, &key); e != NumberError::kNone) {
    return BadIndex(e, index);
  }
  float value = 0;
  const absl::string_view text = token.substr(colon + 1);
  if (ParseReal(text, &value) != NumberError::kNone) {
    return absl::StrCat("feature value ", Quoted(text), " is not a finite number");
  }
  batch->keys.push_back(key);
  batch->values.push_back(value);
  return "";
}

LineOutcome LibsvmParser::ParseExample(absl::string_view line, Batch* batch,
                                       LineError* error) const {
  const BatchMark mark(*batch);
  line = line.substr(0, line.find('#'));
  float label = 0;
  uint64_t features = 0;
  bool have_label = false;
  size_t at = 0;
  while (true) {
    while (at < line.size() && IsSpace(line[at])) ++at;
    if (at == line.size()) break;
    size_t end = at + 1;
    while (end < line.size() && !IsSpace(line[end])) ++end;
    const absl::string_view token = line.substr(at, end - at);
    std::string reason;
    if (!have_label) {
      have_label = true;
      if (!ParseLabel(token, &label)) {
        reason = absl::StrCat("label ", Quoted(token), " is none of 0, 1, -1");
      }
    } else if (++features > max_features_) {
      reason = absl::StrCat("more than ", max_features_,
                            " features, the most on a line of the train files");
    } else {
      reason = ParseFeature(token, batch);
    }
    if (!reason.empty()) {
      mark.Restore(batch);
      return BadLine(at + 1, std::move(reason), error);
    }
    at = end;
  }
  if (!have_label) return LineOutcome::kBlank;
  AppendExample(label, batch);
  return LineOutcome::kExample;
}

}  // namespace

std::unique_ptr<LineParser> MakeLibsvmParser(uint32_t max_features) {
  return std::make_unique<LibsvmParser>(max_features);
}

}  // namespace strata
