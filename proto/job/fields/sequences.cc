#include "proto/job/fields/sequences.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/job/fields/field_plan.h"
#include "proto/job/fields/shared_rows.h"

namespace strata {
namespace {

// The one categorical field whose rows lie where the sequence's do.
absl::StatusOr<uint32_t> TargetOf(const FieldPlan& sequence, const FieldsPlan& plan) {
  std::vector<const FieldPlan*> targets;
  std::vector<std::string> names;
  for (const FieldPlan* f : plan.ByNumber()) {
    if (f->kind != FieldKind::kCategorical || f->table != sequence.table) continue;
    targets.push_back(f);
    names.push_back(f->name);
  }
  if (targets.size() == 1) {
    const std::string other = OtherRows(sequence, *targets[0]);
    if (other.empty()) return targets[0]->number;
    return absl::InvalidArgumentError(
        absl::StrCat("spec.fields: sequence '", sequence.name, "' and field '", names[0],
                     "', which din weighs it by, share table ", sequence.table,
                     " but no rows: their ", other, " differ; give both the same"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "spec.fields: sequence '", sequence.name, "' has its rows in table ", sequence.table,
      targets.empty()
          ? ", and no categorical field has; din weighs a sequence by the one that does: "
            "give that table the field of the item that is judged"
          : absl::StrCat(", and so have ", absl::StrJoin(names, ", "),
                         "; din weighs a sequence by one field: give the others a table "
                         "of their own")));
}

}  // namespace

absl::StatusOr<std::vector<SequenceShape>> SequencesOf(const JobSpec& spec, uint32_t fields) {
  std::vector<SequenceShape> sequences;
  const FieldsPlan plan = PlanFields(spec, fields);
  for (const FieldPlan* f : plan.ByNumber()) {
    if (f->kind != FieldKind::kSequence) continue;
    if (spec.tables().empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("spec.fields: sequence '", f->name,
                       "' shares no rows with the item that din weighs it by: without spec.tables "
                       "each field has "
                       "rows of its own; name a table for both"));
    }
    const auto target = TargetOf(*f, plan);
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
