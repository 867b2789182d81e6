#include "proto/job/fields/row_limits.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

#include "proto/job/fields/field_plan.h"

namespace strata {

std::vector<RowLimit> RowLimitsOfFields(const JobSpec& spec, uint32_t fields,
                                        const VocabularySizes& vocabularies) {
  constexpr uint64_t kMissing = 1;
  std::vector<RowLimit> limits(fields);
  for (uint32_t f = 0; f < fields; ++f) limits[f].shared_with = f;
  if (spec.fields().empty()) return limits;  // of libffm the data have up to 65,536
  const FieldsPlan plan = PlanFields(spec, fields);
  const std::vector<const FieldPlan*> by_number = plan.ByNumber();
  // What decides a key of a vocabulary beside its value, and the first field that has it.
  std::map<std::tuple<std::string, std::string, uint64_t, std::string>, uint32_t> first_of;
  for (uint32_t f = 0; f < std::min<size_t>(fields, by_number.size()); ++f) {
    const FieldPlan& field = *by_number[f];
    if (field.transform.type == TransformType::kBucketise) {
      limits[f].rows = field.transform.bounds.size() + 1 + kMissing;
    }
    if (!field.vocabulary) continue;
    const auto values = vocabularies.find(field.vocabulary->file);
    if (values == vocabularies.end()) continue;
    limits[f].rows = values->second + field.vocabulary->out_of_vocabulary + kMissing;
    limits[f].shared_with = first_of
                                .emplace(std::tuple(field.table, field.vocabulary->file,
                                                    field.hash_seed, field.seed_name),
                                         f)
                                .first->second;
  }
  return limits;
}

}  // namespace strata
