#include "worker/data/index/feature_counter.h"

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/data/files/text_files.h"
#include "worker/data/formats/libffm_parser.h"
#include "worker/data/formats/libsvm_parser.h"

namespace strata {

FeatureCounter::FeatureCounter(const DataSpec& data)
    : parser_(data.format() == "libffm" ? MakeLibffmParser(kMaxLibffmFields)
                                        : MakeLibsvmParser(std::numeric_limits<uint32_t>::max())),
      format_(data.format()),
      libffm_(format_ == "libffm") {}

void FeatureCounter::Add(absl::string_view line) {
  if (!libffm_) {
    const auto colons = std::count(line.begin(), line.end(), ':');
    if (static_cast<uint64_t>(colons) <= most_) return;
  }
  parser_->Start(&batch_);
  LineError error;
  if (parser_->Parse(line, &batch_, &error) != LineOutcome::kExample) return;
  const bool none = batch_.keys.empty();
  const uint64_t fields = none ? 0 : libffm_ ? batch_.fields.back() + 1 : batch_.keys.size();
  most_ = std::max(most_, fields);
}

absl::StatusOr<uint32_t> FeatureCounter::Fields(const std::string& first_file) const {
  if (most_ > 0) return static_cast<uint32_t>(most_);
  return absl::InvalidArgumentError(absl::StrCat(
      "input file ", NameForMessages(first_file), ": no line has a label and a feature in ",
      format_,
      libffm_ ? " form (\"label field:index:value ...\")" : " form (\"label index:value ...\")",
      "; is spec.data.format right?"));
}

}  // namespace strata
