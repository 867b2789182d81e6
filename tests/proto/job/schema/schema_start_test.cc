#include "proto/job/schema/schema_start.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "proto/job/schema/schema_mapping.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/proto/job/schema/made_schema.h"

namespace strata {
namespace {

TEST_CASE("a table begins anew where it is left behind, and the layers stay", "[schema_start]") {
  const Schema saved = SchemaOf(CsvJob("deepfm", {"user", "item"}));
  JobSpec spec = CsvJob("deepfm", {"user", "item"});
  const bool seed = GENERATE(false, true);
  INFO("another seed " << seed);
  if (seed) spec.mutable_model()->set_hash_seed(9);  // rows that begin anew may have other keys
  const Schema now = SchemaOf(spec);
  InitFromSpec init = AllowAll();
  (*init.mutable_rename())["features"] = "";
  CHECK(InitProblem(saved, now, init) == "OK");
  const SchemaMapping mapping = MapSchemas(saved, now, RenamesOf(init));
  const RestorePlan plan = MakeRestorePlan(mapping, saved, now, init);
  CHECK(plan.tables_size() == 0);
  CHECK(plan.tensors_size() == now.tensors_size());
  CHECK(absl::StrContains(MappingText(mapping),
                          "new: table features embedding(4) + weight(1); dropped: table features "
                          "embedding(4) + weight(1); rows anew: field user, field item"));
  // Nobody begins anew by mistake.
  init.set_new_tensors("refuse");
  CHECK(InitProblem(saved, now, init) ==
        "table features embedding(4) + weight(1): the checkpoint has none; allow it with "
        "spec.model.initFrom.newTensors: allow");
  init = AllowAll();
  init.set_dropped_tensors("refuse");
  (*init.mutable_rename())["features"] = "";
  CHECK(InitProblem(saved, now, init) ==
        "table features embedding(4) + weight(1): the job has none; allow it with "
        "spec.model.initFrom.droppedTensors: allow");
}

TEST_CASE("what a field means to layers that stay is compared, whatever becomes of its rows",
          "[schema_start]") {
  JobSpec spec = CsvJob("deepfm", {"user"});
  spec.mutable_data()->mutable_columns()->add_multi_valued()->set_column("tags");
  const Schema saved = SchemaOf(spec);
  spec.mutable_data()->mutable_columns()->mutable_multi_valued(0)->set_pooling("mean");
  InitFromSpec init = AllowAll();
  (*init.mutable_rename())["features"] = "";
  const std::string says =
      "field tags: pooling was sum, is mean; set what the checkpoint has, or let the field begin "
      "anew with spec.model.initFrom.rename: ";
  CHECK(InitProblem(saved, SchemaOf(spec), init) == says + "{tags: \"\"}");
  (*init.mutable_rename())["tags"] = "";
  CHECK(InitProblem(saved, SchemaOf(spec), init) == "OK");
  // Its rows go with their table.
  init = AllowAll();
  CHECK(InitProblem(saved, SchemaOf(spec), init) == says + "{tags: \"\", features: \"\"}");
  (*init.mutable_rename())["tags"] = "";
  (*init.mutable_rename())["features"] = "";
  CHECK(InitProblem(saved, SchemaOf(spec), init) == "OK");
}

TEST_CASE("a number that means something else begins anew where it is left behind",
          "[schema_start]") {
  const Schema saved = SchemaOf(CsvJob("deepfm", {"user"}));
  Schema now = saved;
  now.mutable_fields(1)->mutable_transform()->set_type("log");
  InitFromSpec init = AllowAll();
  CHECK(InitProblem(saved, now, init) ==
        "field price: transform was none, is log; set what the checkpoint has, or let the field "
        "begin anew with spec.model.initFrom.rename: {price: \"\"}");
  (*init.mutable_rename())["price"] = "";
  CHECK(InitProblem(saved, now, init) == "OK");
}

TEST_CASE("a field of another name is compared with the one whose rows it has", "[schema_start]") {
  const auto buckets = [](Schema& schema, const std::string& name, double bound) {
    SchemaField& field = *schema.add_fields();
    field = schema.fields(0);
    field.set_name(name);
    field.set_column("price");
    field.set_kind("numeric");
    field.mutable_transform()->set_type("bucketise");
    field.mutable_transform()->add_bounds(bound);
  };
  const Schema base = SchemaOf(CsvJob("lr", {"user"}));
  Schema saved = base, now = base;
  buckets(saved, "low", 2);
  buckets(saved, "high", 20);
  buckets(now, "dear", 20);
  const InitFromSpec init = AllowAll();
  CHECK(InitProblem(saved, now, init) == "OK");
  CHECK(absl::StrContains(MappingText(MapSchemas(saved, now)), "renamed: field high as dear"));
  CHECK(absl::StrContains(MappingText(MapSchemas(saved, now)), "dropped: field low"));
  now.mutable_fields(now.fields_size() - 1)->mutable_transform()->set_bounds(0, 7);
  CHECK(InitProblem(saved, now, init) ==
        "field dear: it would have the rows of the checkpoint's field low, and transform was "
        "bucketise [2], is bucketise [7]; give it a hashSeed of its own or another table, or leave "
        "that table behind with spec.model.initFrom.rename: {features: \"\"}");
  now.mutable_fields(now.fields_size() - 1)->set_hash_seed(9);
  CHECK(InitProblem(saved, now, init) == "OK");
}

TEST_CASE("a transform is compared by every digit of its numbers", "[schema_start]") {
  Schema saved = SchemaOf(CsvJob("deepfm", {"user"}));
  TransformConfig& transform = *saved.mutable_fields(1)->mutable_transform();
  transform.set_type("bucketise");
  transform.add_bounds(1000000.25);
  Schema now = saved;
  CHECK(CheckResume(MapSchemas(saved, now)).ok());
  now.mutable_fields(1)->mutable_transform()->set_bounds(0, 1000000.75);
  CHECK(CheckResume(MapSchemas(saved, now)).message() ==
        "field price: transform was bucketise [1000000.25], is bucketise [1000000.75]");
  transform.clear_bounds();
  transform.set_type("standardise");
  transform.set_mean(0.1);
  now = saved;
  now.mutable_fields(1)->mutable_transform()->set_mean(0.10000001);
  CHECK(CheckResume(MapSchemas(saved, now)).message() ==
        "field price: transform was standardise mean 0.1, is standardise mean 0.10000001");
}

TEST_CASE("rows of another shape may have other keys", "[schema_start]") {
  const Schema saved = SchemaOf(CsvJob("fm", {"user", "item"}));
  JobSpec spec = CsvJob("fm", {"user", "item"});
  spec.mutable_model()->set_hash_seed(9);
  CHECK(absl::StrContains(InitProblem(saved, SchemaOf(spec), AllowAll()),
                          "field user: hashSeed was 0, is 9; set what the checkpoint has, or "
                          "leave its table behind with spec.model.initFrom.rename: {features: "
                          "\"\"}"));
  spec.mutable_model()->set_embedding_dim(8);
  CHECK(InitProblem(saved, SchemaOf(spec), AllowAll()) == "OK");
}

TEST_CASE("weights of numbers stay when categories come and go", "[schema_start]") {
  const std::string type = GENERATE("lr", "fm", "deepfm", "dlrm");
  INFO(type);
  const auto tensors = [&](const JobSpec& before, const JobSpec& after) {
    const Schema saved = SchemaOf(before), now = SchemaOf(after);
    std::string names;
    for (const auto& [from, to] : MapSchemas(saved, now).tensors) {
      const std::string& name = now.tensors(to).name();
      if (name != "bias" && !absl::StartsWith(name, "layer_")) names += name + " ";
    }
    return names;
  };
  const std::string of_numbers =
      type == "lr"       ? "numeric_weight "
      : type == "fm"     ? "numeric_weight numeric_embedding "
      : type == "deepfm" ? "numeric_weight "
                         : "bottom_0_weight bottom_0_bias bottom_1_weight bottom_1_bias ";
  const JobSpec before = CsvJob(type, {"user", "item"}, {"price", "age"});
  CHECK(tensors(before, before) == of_numbers);
  CHECK(tensors(before, CsvJob(type, {"shop", "user", "item"}, {"price", "age"})) == of_numbers);
  CHECK(tensors(before, CsvJob(type, {"item", "user"}, {"price", "age"})) == of_numbers);
  // Those of other numbers do not.
  for (const std::vector<std::string>& numbers :
       std::vector<std::vector<std::string>>{{"age", "price"}, {"price", "size"}}) {
    const std::string kept = tensors(before, CsvJob(type, {"user", "item"}, numbers));
    CHECK_FALSE(absl::StrContains(kept, "numeric_"));
    CHECK_FALSE(absl::StrContains(kept, "bottom_0_weight"));
  }
}

// As that of spec.data.columns is.
TEST_CASE("one label without a name is any one label of that column", "[schema_start]") {
  const JobSpec columns = CsvJob("deepfm", {"user"});
  JobSpec labels = columns;
  LabelConfig& label = *labels.add_labels();
  label.set_name("click");
  label.set_column("y");
  label.set_kind("binary");
  label.set_loss("logloss");
  const Schema unnamed = SchemaOf(columns), named = SchemaOf(labels);
  CHECK(InitProblem(unnamed, named, {}) == "OK");
  CHECK(InitProblem(named, unnamed, {}) == "OK");
  CHECK(absl::StrContains(MappingText(MapSchemas(unnamed, named)), ", label click"));
  // Unless it is said to be left behind, or to be called so.
  InitFromSpec init;
  (*init.mutable_rename())["label"] = "";
  const auto mapping = [&] { return MapSchemas(unnamed, named, RenamesOf(init)); };
  CHECK(CheckInitFrom(mapping(), unnamed, named, init).message() ==
        "label click: the checkpoint has none; allow it with spec.model.initFrom.newTensors: "
        "allow\nlabel label: the job has none; allow it with spec.model.initFrom.droppedTensors: "
        "allow");
  (*init.mutable_rename())["label"] = "click";
  CHECK(absl::StrContains(MappingText(mapping()), "label label as click"));
  // Another column is another label, and one of two has a name.
  labels.mutable_labels(0)->set_column("other");
  CHECK(absl::StrContains(InitProblem(unnamed, SchemaOf(labels), {}), "label click: column was "));
  labels.mutable_labels(0)->set_column("y");
  *labels.add_labels() = labels.labels(0);
  labels.mutable_labels(1)->set_name("buy");
  CHECK(absl::StrContains(InitProblem(unnamed, SchemaOf(labels), {}),
                          "label label: the job has none"));
}

}  // namespace
}  // namespace strata
