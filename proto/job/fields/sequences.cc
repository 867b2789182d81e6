#include "proto/job/fields/sequences.h"

#include <map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "proto/job/fields/field_plan.h"
#include "proto/job/fields/shared_rows.h"

namespace strata {
namespace {

// Categorical fields by table, in their order.
using Targets = std::map<absl::string_view, std::vector<const FieldPlan*>>;

// `plan` outlives them.
Targets TargetsOf(const FieldsPlan& plan) {
  Targets targets;
  for (const FieldPlan* f : plan.ByNumber()) {
    if (f->kind == FieldKind::kCategorical) targets[f->table].push_back(f);
  }
  return targets;
}

// The one categorical field whose rows lie where the sequence's do.
absl::StatusOr<uint32_t> TargetOf(const FieldPlan& sequence, const Targets& all) {
  const auto of_table = all.find(sequence.table);
  if (of_table != all.end() && of_table->second.size() == 1) {
    const FieldPlan& target = *of_table->second[0];
    const std::string other = OtherRows(sequence, target);
    if (other.empty()) return target.number;
    return absl::InvalidArgumentError(
        absl::StrCat("spec.fields: sequence '", sequence.name, "' and field '", target.name,
                     "', which din weighs it by, share table ", sequence.table,
                     " but no rows: their ", other, " differ; give both the same"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "spec.fields: sequence '", sequence.name, "' has its rows in table ", sequence.table,
      of_table == all.end()
          ? ", and no categorical field has; din weighs a sequence by the one that does: "
            "give that table the field of the item that is judged"
          : absl::StrCat(
                ", and so have ",
                absl::StrJoin(of_table->second, ", ",
                              [](std::string* out, const FieldPlan* f) { *out += f->name; }),
                "; din weighs a sequence by one field: give the others a table "
                "of their own")));
}

}  // namespace

absl::StatusOr<std::vector<SequenceShape>> SequencesOf(const JobSpec& spec, uint32_t fields) {
  std::vector<SequenceShape> sequences;
  const FieldsPlan plan = PlanFields(spec, fields);
  const Targets targets = TargetsOf(plan);
  for (const FieldPlan* f : plan.ByNumber()) {
    if (f->kind != FieldKind::kSequence) continue;
    if (spec.tables().empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("spec.fields: sequence '", f->name,
                       "' shares no rows with the item that din weighs it by: without spec.tables "
                       "each field has "
                       "rows of its own; name a table for both"));
    }
    const auto target = TargetOf(*f, targets);
    if (!target.ok()) return target.status();
    sequences.push_back({f->name, f->number, f->max_length, *target});
  }
  return sequences;
}

std::string NothingToAttend(const JobSpec& spec) {
  if (spec.model().type() != "din") return "";
  for (const FieldConfig& f : spec.fields()) {
    if (f.kind() == "sequence") return "";
  }
  return "spec.model.type: din weighs sequences by the item, and the job has none, so it is a "
         "perceptron over its fields; give the history a field of kind sequence in spec.fields";
}

}  // namespace strata
