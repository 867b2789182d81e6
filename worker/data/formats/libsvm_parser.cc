#include "worker/data/formats/libsvm_parser.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "worker/data/formats/number_text.h"
#include "worker/data/formats/token_line.h"

namespace strata {
namespace {

class LibsvmParser : public LineParser {
 public:
  LibsvmParser(uint32_t max_features, Labels labels)
      : max_features_(max_features), labels_(labels) {}

  uint32_t numeric() const override { return 0; }

 private:
  LineOutcome ParseExample(absl::string_view line, Batch* batch, LineError* error) const override;
  // Appends one "index:value". Empty on success, else the reason.
  static std::string ParseFeature(absl::string_view token, Batch* batch);

  const uint32_t max_features_;
  const Labels labels_;
};

std::string LibsvmParser::ParseFeature(absl::string_view token, Batch* batch) {
  const size_t colon = token.find(':');
  if (colon == absl::string_view::npos) {
    return absl::StrCat("feature ", Quoted(token), " is not index:value");
  }
  uint64_t key = 0;
  const absl::string_view index = token.substr(0, colon);
  if (const NumberError e = ParseUnsigned(index, &key); e != NumberError::kNone) {
    return BadFeatureNumber("feature index", e, index);
  }
  float value = 0;
  const absl::string_view text = token.substr(colon + 1);
  if (const NumberError e = ParseReal(text, &value); e != NumberError::kNone) {
    return absl::StrCat("feature value ", Quoted(text), " ", WhyNoReal(e));
  }
  batch->keys.push_back(key);
  batch->values.push_back(value);
  return "";
}

LineOutcome LibsvmParser::ParseExample(absl::string_view line, Batch* batch,
                                       LineError* error) const {
  const BatchMark mark(*batch);
  float label = 0;
  uint64_t features = 0;
  const LineOutcome outcome =
      ParseTokenLine(line, labels_, &label, error, [&](absl::string_view token) -> std::string {
        if (++features > max_features_) {
          return absl::StrCat("more than ", max_features_,
                              " features, the most on a line of the train files");
        }
        return ParseFeature(token, batch);
      });
  if (outcome == LineOutcome::kExample) {
    AppendExample(label, batch);
  } else {
    mark.Restore(batch);
  }
  return outcome;
}

}  // namespace

std::unique_ptr<LineParser> MakeLibsvmParser(uint32_t max_features, Labels labels) {
  return std::make_unique<LibsvmParser>(max_features, labels);
}

}  // namespace strata
