// Two schemas compared: every difference is named, and what none is.
#include <catch2/catch.hpp>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/job/schema/schema_mapping.h"
#include "proto/job/schema/schema_start.h"
#include "proto/job/schema/schema_text.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/proto/job/schema/compared_schemas.h"
#include "tests/proto/job/schema/made_schema.h"

namespace strata {
namespace {

TEST_CASE("rows that get a score, or lose it, are no rows to resume from", "[schema]") {
  const JobSpec spec = CsvJob("lr");
  const Schema saved = SchemaOf(spec);
  const Schema scored = Changed(spec, [](JobSpec& s) {
    s.mutable_life_cycle()->mutable_removal()->mutable_score()->set_below(0.5f);
    s.mutable_life_cycle()->mutable_removal()->set_every_steps(3);
  });
  REQUIRE(scored.tables(0).scored());
  CHECK(ResumeProblem(saved, scored) ==
        "table features: rows had no score, and have one now (spec.lifeCycle.removal.score)");
  CHECK(ResumeProblem(scored, saved) ==
        "table features: rows had a score, and have none now (spec.lifeCycle.removal.score)");
  CHECK(ResumeProblem(scored, scored) == "OK");
  // They would be gone with the first sweep.
  CHECK(InitProblem(saved, scored, Allow(true, true)) ==
        "table features: rows had no score, and have one now (spec.lifeCycle.removal.score); leave "
        "that rule out, or begin without the checkpoint: rows that begin at score 0 are removed "
        "before they have been seen");
  CHECK(InitProblem(scored, saved) == "OK");
  CHECK(InitProblem(scored, scored) == "OK");
  InitFromSpec reset;
  reset.set_optimizer_state("reset");
  const auto keeps_score = [&](const Schema& from, const Schema& to, const InitFromSpec& init) {
    return MakeRestorePlan(MapSchemas(from, to), from, to, init).tables(0).keep_score();
  };
  CHECK(keeps_score(scored, scored, reset));
  CHECK_FALSE(keeps_score(scored, scored, {}));
  CHECK_FALSE(keeps_score(scored, saved, reset));
}

TEST_CASE("a mapping of thousands of fields is cut short", "[schema]") {
  JobSpec spec = CsvJob("lr");
  for (int i = 0; i < 500; ++i) {
    spec.mutable_data()->mutable_columns()->add_categorical(absl::StrCat("c", i));
  }
  const Schema schema = SchemaOf(spec);
  const std::string text = MappingText(MapSchemas(schema, schema));
  CHECK(text.size() < 4000);
  CHECK(absl::StrContains(text, ", field c90, "));
  CHECK(absl::EndsWith(text, "and 407 more"));
}

// It took minutes, and the scheduler's lock with it.
TEST_CASE("as many fields as libffm has are compared in no time", "[schema]") {
  constexpr int kFields = 65536;
  Schema saved = SchemaOf(CsvJob("lr"));
  saved.clear_fields();
  for (int i = 0; i < kFields; ++i) saved.add_fields()->set_name(absl::StrCat(i));
  Schema now = saved;
  now.mutable_fields()->SwapElements(0, kFields - 1);
  now.mutable_fields(1)->set_name("x");
  InitFromSpec init = Allow(true, true);
  (*init.mutable_rename())["2"] = "2";
  const SchemaMapping mapping = MapSchemas(saved, now, RenamesOf(init));
  CHECK(mapping.entries.size() > kFields);
  const std::string text = MappingText(mapping);
  CHECK(absl::StrContains(text, "new: field x; dropped: field 1; other fields: "));
  CHECK(absl::StrContains(text, "; other order: field "));
  CHECK(CheckInitFrom(mapping, saved, now, init).ok());
}

TEST_CASE("what is the same resumes, and rates may change", "[schema]") {
  for (const char* type :
       {"lr", "fm", "wide_deep", "deepfm", "dcn_v2", "dlrm", "shared_bottom", "mmoe", "din"}) {
    INFO(type);
    JobSpec spec = CsvJob(type);
    const Schema saved = SchemaOf(spec);
    CHECK(ResumeProblem(saved, saved) == "OK");
    CHECK(InitProblem(saved, saved) == "OK");
    OptimizersSpec& o = *spec.mutable_optimizer();
    o.mutable_sparse()->set_learning_rate(0.5f);
    o.mutable_dense()->mutable_schedule()->set_type("cosine");
    o.mutable_dense()->mutable_schedule()->set_decay_steps(9);
    spec.mutable_model()->set_init_scale(0.2f);
    CHECK(ResumeProblem(saved, SchemaOf(spec)) == "OK");
    CHECK(InitProblem(saved, SchemaOf(spec)) == "OK");
    // The other way: what the data are named does not reach the check.
    Schema other = saved;
    other.set_data_fingerprint("x");
    CHECK(ResumeProblem(saved, other) == "OK");
  }
}

TEST_CASE("every difference of meaning is named in one line", "[schema]") {
  const JobSpec spec = CsvJob("deepfm");
  const Schema saved = SchemaOf(spec);
  const auto problem = [&](const auto& change) {
    return ResumeProblem(saved, Changed(spec, change));
  };
  CHECK(problem([](JobSpec& s) { s.mutable_model()->set_hidden(0, 6); }) ==
        "tensor layer_0_weight was (9, 8), is (9, 6)\n"
        "tensor layer_0_bias was (8), is (6)\n"
        "tensor output_weight was (8, 1), is (6, 1)");
  CHECK(problem([](JobSpec& s) { s.mutable_model()->set_type("wide_deep"); }) ==
        "spec.model.type was deepfm, is wide_deep");
  CHECK(problem([](JobSpec& s) { s.mutable_model()->set_hash_seed(7); }) ==
        "field user: hashSeed was 0, is 7\nfield item: hashSeed was 0, is 7");
  CHECK(absl::StrContains(problem([](JobSpec& s) { s.mutable_model()->set_embedding_dim(2); }),
                          "table features was embedding(4) + weight(1), is embedding(2) + "
                          "weight(1)"));
  CHECK(problem([](JobSpec& s) {
          s.mutable_optimizer()->mutable_sparse()->set_type("ftrl");
          s.mutable_optimizer()->mutable_linear()->set_type("ftrl");
        }) ==
        "table features: embedding: the optimizer was adagrad, is ftrl; weight: the optimizer was "
        "adagrad, is ftrl");
  CHECK(absl::StartsWith(
      problem([](JobSpec& s) { s.mutable_optimizer()->mutable_dense()->set_type("adagrad"); }),
      "tensor bias: the optimizer was adam, is adagrad\ntensor numeric_weight: "));
  CHECK(problem([](JobSpec& s) {
          s.mutable_data()->mutable_columns()->mutable_categorical()->SwapElements(0, 1);
        }) ==
        "tensor layer_0_weight (9, 8) goes by the fields in their order\n"
        "field user came before item, and comes after it now");
  CHECK(problem(
            [](JobSpec& s) { s.mutable_data()->mutable_columns()->set_categorical(1, "shop"); }) ==
        "tensor layer_0_weight (9, 8) goes by the fields in their order\n"
        "field shop: the checkpoint has none\nfield item: the job has none");
  CHECK(problem([](JobSpec& s) { s.mutable_data()->mutable_columns()->set_label("z"); }) ==
        "label label: column was y, is z");
}

// Columns that are inserted or exchanged meant the same rows, and others, as long as keys went by
// the column's place in the list.
TEST_CASE("a linear model takes exchanged columns, as rows go by names", "[schema]") {
  const JobSpec spec = CsvJob("fm");
  JobSpec swapped = spec;
  swapped.mutable_data()->mutable_columns()->clear_numeric();
  const Schema saved = SchemaOf(swapped);
  swapped.mutable_data()->mutable_columns()->mutable_categorical()->SwapElements(0, 1);
  CHECK(InitProblem(saved, SchemaOf(swapped)) == "OK");
  CHECK(ResumeProblem(saved, SchemaOf(swapped)) ==
        "field user came before item, and comes after it now");
}

TEST_CASE("labels have their outputs in their order", "[schema]") {
  JobSpec spec = CsvJob("lr");
  spec.mutable_data()->mutable_columns()->clear_label();
  for (const char* name : {"click", "buy"}) spec.add_labels()->set_name(name);
  const Schema saved = SchemaOf(spec);
  CHECK(saved.tables(0).segments(0).dim() == 2);
  const Schema turned = Changed(spec, [](JobSpec& s) { s.mutable_labels()->SwapElements(0, 1); });
  CHECK(ResumeProblem(saved, saved) == "OK");
  CHECK(ResumeProblem(saved, turned) ==
        "table features weight(2): its columns follow the labels\n"
        "tensor bias (2): its columns follow the labels\n"
        "tensor numeric_weight (2): its columns follow the labels\n"
        "label click came before buy, and comes after it now");
  // Nothing is lost, so nothing is refused.
  CHECK(InitProblem(saved, turned) == "OK");
}

TEST_CASE("the mean of a label is part of what it means", "[schema]") {
  JobSpec spec = CsvJob("lr");
  spec.mutable_data()->mutable_columns()->clear_label();
  for (const char* name : {"click", "stars"}) {
    LabelConfig& label = *spec.add_labels();
    label.set_name(name);
    label.set_kind(name == std::string("stars") ? "real" : "binary");
    label.set_loss(name == std::string("stars") ? "squared" : "logloss");
  }
  const auto stating = [&](std::optional<float> mean) {
    JobSpec job = spec;
    if (mean) job.mutable_labels(1)->set_mean(*mean);
    return SchemaOf(job);
  };
  const Schema none = stating(std::nullopt), some = stating(3.2f);
  CHECK(absl::EndsWith(SchemaText(none),
                       "label click  binary  loss logloss  weight 1\n"
                       "label stars  real  loss squared  weight 1\n"));
  CHECK(absl::EndsWith(SchemaText(some), "  loss squared  weight 1  mean 3.2\n"));
  CHECK(absl::EndsWith(SchemaText(stating(0.0f)), "  loss squared  weight 1  mean 0\n"));
  CHECK(SchemaJson(some).find("\"mean\":3.2") != std::string::npos);
  CHECK(ResumeProblem(some, some) == "OK");
  CHECK(ResumeProblem(none, some) == "label stars: mean was none, is 3.2");
  CHECK(ResumeProblem(some, none) == "label stars: mean was 3.2, is none");
  CHECK(ResumeProblem(none, stating(0.0f)) == "label stars: mean was none, is 0");
  CHECK(ResumeProblem(some, stating(3.2000003f)) == "label stars: mean was 3.2, is 3.2000003");
  CHECK(InitProblem(some, stating(3.0f)) ==
        "label stars: mean was 3.2, is 3; allow it with spec.model.initFrom.newTensors: allow");
  CHECK(InitProblem(some, stating(3.0f), Allow(true, false)) == "OK");
}

// Names of the tensors that are loaded.
std::set<std::string> LoadedTensors(const Schema& saved, const Schema& now) {
  std::set<std::string> names;
  for (const auto& [from, to] : MapSchemas(saved, now).tensors) {
    CHECK(saved.tensors(from).name() == now.tensors(to).name());
    names.insert(now.tensors(to).name());
  }
  return names;
}

JobSpec OfLabels(const char* model, std::initializer_list<const char*> labels) {
  JobSpec spec = CsvJob(model);
  spec.mutable_data()->mutable_columns()->clear_label();
  for (const char* name : labels) spec.add_labels()->set_name(name);
  return spec;
}

TEST_CASE("as many weights of interactions in another shape are others", "[schema]") {
  JobSpec three = OfLabels("fm", {"a", "b", "c"}), two = OfLabels("fm", {"d", "e"});
  three.mutable_model()->set_embedding_dim(8);
  two.mutable_model()->set_embedding_dim(12);
  const Schema saved = SchemaOf(three), now = SchemaOf(two);
  for (const auto& [from, to] : MapSchemas(saved, now).tensors) {
    CHECK(now.tensors(to).name() != "interaction_weight");
  }
}

TEST_CASE("layers over fields whose tables change their widths begin anew", "[schema]") {
  JobSpec spec = OfLabels("mmoe", {"click"});
  for (const char* name : {"wide", "narrow"}) {
    TableConfig& table = *spec.add_tables();
    table.set_name(name);
    table.set_dim(std::string(name) == "wide" ? 6 : 2);
    table.mutable_optimizer()->set_type("sgd");
    FieldConfig& field = *spec.add_fields();
    field.set_name(std::string("of_") + name);
    field.set_column(field.name());
    field.set_kind("categorical");
    field.set_table(name);
  }
  JobSpec other = spec;
  other.mutable_tables(0)->set_dim(2);
  other.mutable_tables(1)->set_dim(6);
  const std::set<std::string> loaded = LoadedTensors(SchemaOf(spec), SchemaOf(other));
  CHECK_FALSE(loaded.contains("expert_0_0_weight"));
  CHECK_FALSE(loaded.contains("gate_0_weight"));
  CHECK(loaded.contains("expert_0_0_bias"));
  CHECK(LoadedTensors(SchemaOf(spec), SchemaOf(spec)).contains("gate_0_weight"));
}

}  // namespace
}  // namespace strata
