#include "proto/job/fields/line_features.h"

#include <algorithm>
#include <cstddef>

#include "proto/job/fields/field_plan.h"

namespace strata {
namespace {

constexpr uint64_t kShortestValue = 2;  // with what parts it from the next
constexpr uint64_t kValueBytes = 8;
constexpr uint64_t kTokenBytes = 12;  // "field:index:value "
constexpr uint64_t kNoLimit = ~uint64_t{0};

// A field of several values, and the most that it keeps.
struct Several {
  uint64_t most = kNoLimit;
  size_t field = 0;
};

// Gives the fields `values` of a line in equal shares; what one cannot keep the others have.
void Share(std::vector<Several> several, uint64_t values, std::vector<uint64_t>* features) {
  std::sort(several.begin(), several.end(),
            [](const Several& a, const Several& b) { return a.most < b.most; });
  for (size_t i = 0; i < several.size(); ++i) {
    const uint64_t share = values / (several.size() - i);
    const uint64_t taken = std::clamp<uint64_t>(share, 1, several[i].most);
    (*features)[several[i].field] = taken;
    values -= std::min(values, taken);
  }
}

}  // namespace

LineFeatures FeaturesOfFields(const JobSpec& spec, uint32_t fields, uint64_t line_bytes) {
  std::vector<uint64_t> single(fields, 1);
  const std::string& format = spec.data().format();
  if (fields == 0 || format == "libfm" || format == "libsvm") return {single, single};
  if (format == "libffm") {
    std::fill(single.begin(), single.end(),
              std::max<uint64_t>(1, line_bytes / kTokenBytes / fields));
    return {single, single};
  }
  const FieldsPlan plan = PlanFields(spec, fields);
  const std::vector<const FieldPlan*> by_number = plan.ByNumber();
  std::vector<Several> several, sequences;
  for (size_t f = 0; f < std::min<size_t>(fields, by_number.size()); ++f) {
    const FieldPlan& field = *by_number[f];
    if (field.kind == FieldKind::kMultiValued) several.push_back({kNoLimit, f});
    if (field.kind == FieldKind::kSequence) sequences.push_back({field.max_length, f});
  }
  several.insert(several.end(), sequences.begin(), sequences.end());
  LineFeatures features = {single, single};
  if (line_bytes == 0) {
    for (const Several& s : sequences) features.most[s.field] = s.most;
    return {features.most, features.most};
  }
  const uint64_t others = plan.fields.size() - several.size() + std::max(1, spec.labels_size());
  const uint64_t values = line_bytes / kValueBytes;
  Share(several, values - std::min(values, others), &features.likely);
  features.most = features.likely;
  std::vector<uint64_t> longest(fields, 1);
  Share(sequences, line_bytes / kShortestValue + sequences.size(), &longest);
  for (const Several& s : sequences) features.most[s.field] = longest[s.field];
  return features;
}

}  // namespace strata
