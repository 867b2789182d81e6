#include "proto/job/fields/shared_rows.h"

#include <cstddef>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/job/checks/shown.h"
#include "proto/job/fields/data_fields.h"

namespace strata {
namespace {

// Of two fields that share no rows.
std::string WhyApart(const FieldPlan& a, const FieldPlan& b) {
  if (a.hash_seed != b.hash_seed) {
    return absl::StrCat("as their hashSeed is ", a.hash_seed, " and ", b.hash_seed);
  }
  return absl::StrCat("as only '", a.vocabulary ? a.name : b.name, "' has a vocabulary");
}

bool HaveOtherFiles(const FieldPlan& a, const FieldPlan& b) {
  return a.vocabulary && b.vocabulary && a.vocabulary->file != b.vocabulary->file;
}

}  // namespace

std::string OtherRows(const FieldPlan& a, const FieldPlan& b) {
  if (a.hash_seed != b.hash_seed) return "hashSeed";
  const auto file = [](const FieldPlan& f) { return f.vocabulary ? f.vocabulary->file : ""; };
  const auto rest = [](const FieldPlan& f) {
    return f.vocabulary ? f.vocabulary->out_of_vocabulary : 0;
  };
  return file(a) != file(b) || rest(a) != rest(b) ? "vocabulary" : "";
}

std::string NoSharedRows(const JobSpec& spec) {
  // Else each column has keys of its own; other formats hash nothing, or places.
  if (!spec::KeysHashTable(spec)) return "";
  const FieldsPlan plan = PlanFields(spec, 0);
  std::map<absl::string_view, const FieldPlan*> first;  // by table
  std::string text;
  size_t more = 0;
  for (const FieldPlan* f : plan.ByNumber()) {
    if (f->kind == FieldKind::kNumeric) continue;  // buckets, which are no values of others
    const FieldPlan& other = *first.emplace(f->table, f).first->second;
    if (OtherRows(other, *f).empty() || HaveOtherFiles(other, *f)) continue;
    if (!text.empty()) {
      ++more;
      continue;
    }
    text = absl::StrCat("spec.fields: fields '", other.name, "' and '", f->name,
                        "' have their rows in table ", f->table, " and share none, ",
                        WhyApart(other, *f),
                        ": an equal value has two rows; give both the same, or each a table of its "
                        "own");
  }
  if (more > 0) absl::StrAppend(&text, " (and so of ", more, " more field", more == 1 ? ")" : "s)");
  return ShownText(text);
}

}  // namespace strata
