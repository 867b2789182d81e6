// Two schemas compared: what goes by the order of fields, what else has an order, and by parts.
#include "proto/job/schema/schema_mapping.h"

#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/job/schema/schema_start.h"
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

// Tables are numbered by their places, so a job that resumes has them in their order.
TEST_CASE("tables, fields and labels in another order are told once of each", "[schema_mapping]") {
  JobSpec spec;
  spec.mutable_model()->set_type("lr");
  for (const char* name : {"a", "b", "c"}) {
    spec.add_tables()->set_name(name);
    FieldConfig& field = *spec.add_fields();
    field.set_name(absl::StrCat("of_", name));
    field.set_kind("categorical");
    field.set_table(name);
    spec.add_labels()->set_name(absl::StrCat("y_", name));
  }
  const Schema saved = SchemaOf(Resolved(spec));
  spec.mutable_tables()->SwapElements(0, 2);
  spec.mutable_fields()->SwapElements(0, 1);
  spec.mutable_labels()->SwapElements(1, 2);
  const Schema now = SchemaOf(Resolved(spec));
  const SchemaMapping mapping = MapSchemas(saved, now);
  CHECK(absl::EndsWith(MappingText(mapping),
                       "; other order: table b came before c, and comes after it now, field of_a "
                       "came before of_b, and comes after it now, label y_b came before y_c, and "
                       "comes after it now"));
  CHECK(absl::StrContains(std::string(CheckResume(mapping).message()), "\ntable b came before c"));
  CHECK(CheckInitFrom(mapping, saved, now, {}).ok());
  CHECK(mapping.tables.size() == 3);
}

TEST_CASE("by parts a difference is told once", "[schema_mapping]") {
  JobSpec spec;
  spec.mutable_data()->mutable_columns()->set_label("y");
  spec.mutable_model()->set_type("deepfm");
  spec.mutable_model()->set_embedding_dim(4);
  for (const char* name : {"user", "item"}) {
    spec.mutable_data()->mutable_columns()->add_categorical(name);
  }
  const JobSpec then = Resolved(spec);
  spec.mutable_model()->set_embedding_dim(8);
  spec.mutable_model()->set_hash_seed(9);
  spec.mutable_data()->mutable_columns()->clear_label();
  for (const char* name : {"click", "buy"}) spec.add_labels()->set_name(name);
  const JobSpec now = Resolved(spec);
  JobSpec of_labels = now;
  *of_labels.mutable_labels() = then.labels();
  SchemaByParts parts{SchemaOf(now), SchemaOf(of_labels), std::nullopt};
  const auto lines = [&] {
    return std::string(CheckResume(MapByParts(SchemaOf(then), parts)).message());
  };
  const std::string tables =
      "table features was embedding(4) + weight(1), is embedding(8) + weight(1)\n";
  const std::string readers =
      "field user: hashSeed was 0, is 9\nfield item: hashSeed was 0, is 9\n"
      "label click: the checkpoint has none\nlabel buy: the checkpoint has none\n"
      "label label: the job has none";
  CHECK(lines() == tables + readers);
  JobSpec of_tensors = of_labels;
  of_tensors.mutable_model()->set_embedding_dim(4);
  parts.tensors = SchemaOf(of_tensors);
  CHECK(lines() == tables + readers);
  of_tensors.mutable_model()->set_hidden(2, 9);
  parts.tensors = SchemaOf(of_tensors);
  CHECK(absl::StrContains(lines(), tables + "tensor layer_2_weight was (400, 400), is (400, 9)\n"));
  CHECK(absl::EndsWith(lines(), "\n" + readers));
  CHECK(MapByParts(SchemaOf(then), parts).tables.empty());
}

}  // namespace
}  // namespace strata
