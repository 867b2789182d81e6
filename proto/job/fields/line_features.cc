#include "proto/job/fields/line_features.h"

#include <algorithm>

#include "proto/job/fields/field_plan.h"

namespace strata {
namespace {

constexpr uint64_t kShortestValue = 2;  // with what parts it from the next
constexpr uint64_t kValueBytes = 8;
constexpr uint64_t kTokenBytes = 12;  // "field:index:value "

}  // namespace

std::vector<uint64_t> FeaturesOfFields(const JobSpec& spec, uint32_t fields, uint64_t line_bytes) {
  std::vector<uint64_t> features(fields, 1);
  const std::string& format = spec.data().format();
  if (fields == 0 || format == "libfm" || format == "libsvm") return features;
  if (format == "libffm") {
    std::fill(features.begin(), features.end(),
              std::max<uint64_t>(1, line_bytes / kTokenBytes / fields));
    return features;
  }
  const FieldsPlan plan = PlanFields(spec, fields);
  const std::vector<const FieldPlan*> by_number = plan.ByNumber();
  const auto several = static_cast<uint64_t>(
      std::count_if(by_number.begin(), by_number.end(),
                    [](const FieldPlan* f) { return f->kind == FieldKind::kMultiValued; }));
  for (size_t f = 0; f < std::min<size_t>(fields, by_number.size()); ++f) {
    if (by_number[f]->kind == FieldKind::kMultiValued) {
      features[f] = std::max<uint64_t>(1, line_bytes / kValueBytes / several);
    }
    if (by_number[f]->kind != FieldKind::kSequence) continue;
    features[f] = by_number[f]->max_length;
    if (line_bytes > 0) features[f] = std::min(features[f], line_bytes / kShortestValue + 1);
  }
  return features;
}

}  // namespace strata
