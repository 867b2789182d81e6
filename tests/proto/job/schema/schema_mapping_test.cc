// What goes by the fields in their order is loaded for the same fields in the same order alone.
#include "proto/job/schema/schema_mapping.h"

#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/proto/job/schema/made_schema.h"

namespace strata {
namespace {

using Names = std::vector<std::string>;

// Each field has a table, so that any of them may take any column.
Schema Of(const std::string& model, const Names& fields) {
  JobSpec spec;
  spec.mutable_data()->mutable_columns()->set_label("y");
  spec.mutable_model()->set_type(model);
  TableConfig& table = *spec.add_tables();
  table.set_name("rows");
  table.set_dim(4);
  for (const std::string& name : fields) {
    FieldConfig& field = *spec.add_fields();
    field.set_name(name);
    field.set_kind(name == "n" ? "numeric" : "categorical");
    if (name != "n") field.set_table("rows");
  }
  return SchemaOf(Resolved(spec));
}

// By what reads an example's fields side by side (worker/models/models.h).
bool ReadsFields(const std::string& model, const std::string& tensor) {
  if (model == "mmoe") {
    return (absl::StartsWith(tensor, "expert_") && absl::EndsWith(tensor, "_0_weight")) ||
           (absl::StartsWith(tensor, "gate_") && absl::EndsWith(tensor, "_weight"));
  }
  if (model == "dcn_v2" && (absl::StartsWith(tensor, "cross_") || tensor == "output_weight")) {
    return true;
  }
  return tensor == "layer_0_weight";
}

TEST_CASE("first layers are those of the same fields in the same order", "[schema_mapping]") {
  for (const char* model :
       {"wide_deep", "deepfm", "dcn_v2", "dlrm", "shared_bottom", "mmoe", "din"}) {
    INFO(model);
    const Schema saved = Of(model, {"a", "b", "c", "n"});
    const auto check = [&](const Schema& now, const std::map<std::string, std::string>& rename,
                           bool same) {
      std::set<std::string> loaded;
      for (const auto& [from, to] : MapSchemas(saved, now, rename).tensors) {
        loaded.insert(now.tensors(to).name());
      }
      for (const SchemaTensor& tensor : now.tensors()) {
        INFO(tensor.name());
        CHECK(loaded.contains(tensor.name()) == (same || !ReadsFields(model, tensor.name())));
      }
    };
    const Schema other = Of(model, {"a", "x", "c", "n"});
    check(saved, {}, true);
    check(Of(model, {"a", "c", "b", "n"}), {}, false);
    check(other, {}, false);
    check(other, {{"b", "x"}}, true);
    // One that is left behind is another one, also by its name.
    check(saved, {{"b", ""}}, false);
  }
}

}  // namespace
}  // namespace strata
