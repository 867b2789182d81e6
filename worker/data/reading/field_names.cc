#include "worker/data/reading/field_names.h"

#include <algorithm>

#include "proto/job/fields/field_plan.h"

namespace strata {

std::vector<std::string> FieldNames(const JobSpec& spec, uint32_t libffm_fields) {
  const std::string& format = spec.data().format();
  std::vector<std::string> names;
  if (format == "libfm" || format == "libsvm") return names;
  // What a column is called is known better than the name that a field would have for it.
  const bool given = !spec.fields().empty();
  const FieldsPlan plan = PlanFields(spec, libffm_fields);
  for (const FieldPlan* f : plan.ByNumber()) names.push_back(given ? f->name : f->column);
  return names;
}

std::optional<uint32_t> FieldNumber(const JobSpec& spec, uint32_t libffm_fields,
                                    const std::string& name) {
  const std::vector<std::string> names = FieldNames(spec, libffm_fields);
  const auto at = std::find(names.begin(), names.end(), name);
  if (name.empty() || at == names.end()) return std::nullopt;
  return static_cast<uint32_t>(at - names.begin());
}

}  // namespace strata
