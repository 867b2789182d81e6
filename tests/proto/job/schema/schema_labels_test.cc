// What labels have side by side follows them by name, whatever labels come, go or change places.
#include "proto/job/schema/schema_labels.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/job/schema/schema.h"
#include "proto/job/schema/schema_mapping.h"
#include "proto/job/schema/schema_start.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/proto/job/schema/made_schema.h"

namespace strata {
namespace {

using Labels = std::vector<std::string>;
using Renames = std::map<std::string, std::string>;

JobSpec Job(const std::string& model, const Labels& labels) {
  JobSpec spec;
  ColumnsSpec& columns = *spec.mutable_data()->mutable_columns();
  columns.add_categorical("user");
  columns.add_categorical("item");
  for (const char* number : {"price", "age", "size"}) columns.add_numeric(number);
  for (const std::string& label : labels) spec.add_labels()->set_name(label);
  spec.mutable_model()->set_type(model);
  spec.mutable_model()->set_embedding_dim(4);
  if (model != "lr" && model != "fm") spec.mutable_model()->add_hidden(8);
  return Resolved(std::move(spec));
}

Schema Of(const std::string& model, const Labels& labels) { return SchemaOf(Job(model, labels)); }

InitFromSpec Init(bool allow_new, bool allow_dropped, const Renames& rename = {}) {
  InitFromSpec init;
  init.set_new_tensors(allow_new ? "allow" : "refuse");
  init.set_dropped_tensors(allow_dropped ? "allow" : "refuse");
  for (const auto& [from, to] : rename) (*init.mutable_rename())[from] = to;
  return init;
}

std::string Problem(const Schema& saved, const Schema& now, const InitFromSpec& init) {
  const absl::Status s = CheckInitFrom(MapSchemas(saved, now, RenamesOf(init)), saved, now, init);
  return s.ok() ? "OK" : std::string(s.message());
}

RestorePlan Plan(const Schema& saved, const Schema& now, const Renames& rename = {}) {
  const InitFromSpec init = Init(true, true, rename);
  return MakeRestorePlan(MapSchemas(saved, now, rename), saved, now, init);
}

std::string Text(const Schema& saved, const Schema& now, const Renames& rename = {}) {
  return MappingText(MapSchemas(saved, now, rename));
}

// "3: 2 0": of three labels' columns the second one, then a new one.
std::string ColumnsText(const RestoreColumns& columns) {
  std::string text = absl::StrCat(columns.saved(), ":");
  for (const uint32_t from : columns.from()) absl::StrAppend(&text, " ", from);
  return text;
}

// Of what a plan takes of tensors: by name in the job, its columns, "as it is" without.
Renames Taken(const Schema& now, const RestorePlan& plan) {
  Renames taken;
  for (const RestoreTensor& tensor : plan.tensors()) {
    for (const SchemaTensor& t : now.tensors()) {
      if (t.first_row() != tensor.to_row()) continue;
      taken[t.name()] = tensor.has_columns() ? ColumnsText(tensor.columns()) : "as it is";
    }
  }
  return taken;
}

const std::vector<std::string> kModels = {"lr",     "fm",   "wide_deep", "deepfm",
                                          "dcn_v2", "dlrm", "din"};

bool HasInteractions(const std::string& model) { return model == "fm" || model == "deepfm"; }
bool HasWeights(const std::string& model) {
  return model != "dlrm" && model != "dcn_v2" && model != "din";
}

// By what makes a label's output (worker/models/models.h): the tensors with a column for each.
std::vector<std::string> Outputs(const std::string& model) {
  std::vector<std::string> names;
  if (HasWeights(model)) names = {"bias", "numeric_weight"};
  if (model != "lr" && model != "fm") names.insert(names.end(), {"output_weight", "output_bias"});
  return names;
}

TEST_CASE("columns of labels follow their names", "[schema_labels]") {
  const auto [was, is, columns] = GENERATE(
      table<Labels, Labels, std::string>({{{"a", "b"}, {"b", "a"}, "2: 2 1"},
                                          {{"a", "b"}, {"b"}, "2: 2"},
                                          {{"b"}, {"a", "b"}, "1: 0 1"},
                                          {{"a", "b"}, {"a", "b", "c"}, "2: 1 2 0"},
                                          {{"a", "b", "c"}, {"c", "d", "a"}, "3: 3 0 1"}}));
  for (const std::string& model : kModels) {
    INFO(model << ", " << was.size() << " labels, then " << is.size());
    const Schema saved = Of(model, was), now = Of(model, is);
    const RestorePlan plan = Plan(saved, now);
    const Renames taken = Taken(now, plan);
    std::vector<std::string> outputs = Outputs(model);
    if (HasInteractions(model) && was.size() > 1 && is.size() > 1) {
      outputs.push_back("interaction_weight");
    }
    for (const std::string& name : outputs) {
      INFO(name);
      REQUIRE(taken.contains(name));
      CHECK(taken.at(name) == columns);
    }
    // All the others are of all labels.
    for (const auto& [name, how] : taken) {
      INFO(name);
      const bool output = std::find(outputs.begin(), outputs.end(), name) != outputs.end();
      CHECK((how == "as it is") != output);
    }
    const bool begins = HasInteractions(model) && was.size() == 1;
    CHECK(taken.size() + (begins ? 1 : 0) == static_cast<size_t>(now.tensors_size()));
    REQUIRE(plan.tables_size() == 1);
    CHECK(plan.tables(0).has_columns() == HasWeights(model));
    if (HasWeights(model)) CHECK(ColumnsText(plan.tables(0).columns()) == columns);
    // Rows are those of the checkpoint's tensor, of which there may be more or fewer than here.
    for (const RestoreTensor& tensor : plan.tensors()) {
      for (const SchemaTensor& t : saved.tensors()) {
        if (t.first_row() == tensor.from_row()) CHECK(tensor.rows() == t.rows());
      }
    }
    CHECK_FALSE(absl::StrContains(Text(saved, now), "anew"));
  }
}

TEST_CASE("only labels that come or go are asked about", "[schema_labels]") {
  for (const std::string& model : kModels) {
    INFO(model);
    const Schema both = Of(model, {"click", "buy"}), swapped = Of(model, {"buy", "click"});
    const Schema three = Of(model, {"click", "cart", "buy"});
    CHECK(Problem(both, swapped, Init(false, false)) == "OK");
    CHECK(Problem(both, three, Init(false, false)) ==
          "label cart: the checkpoint has none; allow it with spec.model.initFrom.newTensors: "
          "allow");
    CHECK(Problem(both, three, Init(true, false)) == "OK");
    CHECK(Problem(three, both, Init(false, false)) ==
          "label cart: the job has none; allow it with spec.model.initFrom.droppedTensors: allow");
    CHECK(Problem(three, both, Init(false, true)) == "OK");
    // To resume is to have the same model.
    CHECK_FALSE(CheckResume(MapSchemas(both, swapped)).ok());
    CHECK_FALSE(CheckResume(MapSchemas(both, three)).ok());
    CHECK(CheckResume(MapSchemas(both, both)).ok());
  }
  const Schema both = Of("deepfm", {"click", "buy"}),
               three = Of("deepfm", {"buy", "cart", "click"});
  CHECK(Text(both, three) ==
        "loaded: tensor layer_0_weight, tensor layer_0_bias, field user, field item, field "
        "price, field age, field size, label buy, label click; new: label cart; by labels: table "
        "features embedding(4) + weight(2) as embedding(4) + weight(3), tensor bias (2) as (3), "
        "tensor numeric_weight (6) as (9), tensor output_weight (8, 2) as (8, 3), tensor "
        "output_bias (2) as (3), tensor interaction_weight (4, 2) as (4, 3); other order: label "
        "click came before buy, and comes after it now");
}

TEST_CASE("a second label takes nothing from the first one", "[schema_labels]") {
  const Schema one = Of("fm", {"click"}), two = Of("fm", {"click", "buy"});
  // Weights of interactions begin as the ones that the one label had.
  CHECK(absl::StrContains(Text(one, two), "label click; new: tensor interaction_weight (4, 2), "));
  CHECK(Problem(one, two, Init(true, false)) == "OK");
  CHECK(absl::StrContains(Text(two, one), "dropped: tensor interaction_weight (4, 2), label buy"));
  CHECK(Problem(two, one, Init(true, false)) ==
        "tensor interaction_weight (4, 2): the job has none; allow it with "
        "spec.model.initFrom.droppedTensors: allow\n"
        "label buy: the job has none; allow it with spec.model.initFrom.droppedTensors: allow");
}

TEST_CASE("columns stay where they are when nothing of the labels changed", "[schema_labels]") {
  for (const std::string& model : kModels) {
    INFO(model);
    const Schema both = Of(model, {"click", "buy"}), one = Of(model, {"click"});
    // The one label of a job may be called anything.
    const Schema other = Of(model, {"order"});
    for (const auto& [saved, now] :
         {std::pair(&both, &both), std::pair(&one, &one), std::pair(&one, &other)}) {
      const RestorePlan plan = Plan(*saved, *now);
      CHECK(plan.tensors_size() == now->tensors_size());
      CHECK_FALSE(plan.tables(0).has_columns());
      for (const auto& [name, how] : Taken(*now, plan)) CHECK(how == "as it is");
    }
    // An import names none.
    Schema imported = one;
    imported.clear_labels();
    imported.clear_tensors();
    imported.set_model(kImportedModel);
    CHECK_FALSE(Plan(imported, one).tables(0).has_columns());
    CHECK_FALSE(MapSchemas(both, imported).entries.empty());
    Schema nameless = both;
    nameless.clear_labels();
    const Schema& unnamed = nameless;
    for (const auto& [saved, now] : {std::pair(&both, &unnamed), std::pair(&unnamed, &both)}) {
      CHECK(Plan(*saved, *now).tensors_size() == both.tensors_size());
      CHECK_FALSE(Plan(*saved, *now).tables(0).has_columns());
    }
  }
}

TEST_CASE("labels that are called otherwise have their columns", "[schema_labels]") {
  const Schema saved = Of("deepfm", {"click", "buy"}), now = Of("deepfm", {"order", "click"});
  const Renames rename = {{"buy", "order"}};
  CHECK(Taken(now, Plan(saved, now, rename)).at("output_bias") == "2: 2 1");
  CHECK(Problem(saved, now, Init(false, false, rename)) == "OK");
  CHECK(Taken(now, Plan(saved, now)).at("output_bias") == "2: 0 1");
  // One that is left behind has none.
  CHECK(Taken(saved, Plan(saved, saved, {{"buy", ""}})).at("output_bias") == "2: 1 0");
}

TEST_CASE("where no label stays its outputs begin anew, and what all share goes on",
          "[schema_labels]") {
  for (const std::string& model : kModels) {
    INFO(model);
    const Schema saved = Of(model, {"a", "b"});
    for (const Labels& labels : {Labels{"c", "d"}, Labels{"c", "d", "e"}}) {
      const Schema now = Of(model, labels);
      const RestorePlan plan = Plan(saved, now);
      const Renames taken = Taken(now, plan);
      for (const std::string& name : Outputs(model)) CHECK_FALSE(taken.contains(name));
      CHECK_FALSE(taken.contains("interaction_weight"));
      CHECK(plan.tables_size() == (model == "lr" ? 0 : 1));
      if (model == "wide_deep" || model == "deepfm" || model == "dlrm") {
        CHECK(taken.at("layer_0_weight") == "as it is");
      }
      CHECK(Problem(saved, now, Init(true, false)) != "OK");
      CHECK(Problem(saved, now, Init(true, true)) == "OK");
    }
  }
}

TEST_CASE("columns over other inputs begin anew, and their labels are told so", "[schema_labels]") {
  JobSpec spec = Job("deepfm", {"a", "b"});
  const Schema saved = SchemaOf(spec);
  spec.mutable_labels()->SwapElements(0, 1);
  spec.mutable_model()->set_hidden(0, 6);
  const Schema now = SchemaOf(spec);
  const std::string text = Text(saved, now);
  INFO(text);
  CHECK(absl::StrContains(text, "tensor output_weight was (8, 2), is (6, 2)"));
  CHECK(absl::StrContains(text, "outputs anew: label b (output_weight), label a (output_weight)"));
  CHECK(Taken(now, Plan(saved, now)).at("bias") == "2: 2 1");
  CHECK_FALSE(Taken(now, Plan(saved, now)).contains("output_weight"));
  // Rows of another width are other rows.
  spec = Job("deepfm", {"b", "c"});
  spec.mutable_model()->set_embedding_dim(6);
  CHECK(Plan(saved, SchemaOf(spec)).tables_size() == 0);
}

// A layer below the outputs has as many columns as there are labels by chance.
TEST_CASE("a layer is no output of labels by its shape", "[schema_labels]") {
  JobSpec deeper = Job("wide_deep", {"a", "b"}), turned = Job("wide_deep", {"b", "a"});
  deeper.mutable_model()->add_hidden(2);
  const Schema saved = SchemaOf(deeper), now = SchemaOf(turned);
  for (const char* name : {"layer_1_weight", "output_weight"}) {
    INFO(name);
    CHECK_FALSE(Taken(now, Plan(saved, now)).contains(name));
    CHECK_FALSE(Taken(saved, Plan(now, saved)).contains(name));
  }
  // Nor does a rename make its columns those of labels.
  const Renames rename = {{"layer_1_weight", "output_weight"}, {"output_weight", ""}};
  CHECK_FALSE(Taken(now, Plan(saved, now, rename)).contains("output_weight"));
  // The output has its name, whatever lies below.
  deeper.mutable_model()->set_hidden(0, 2);
  turned.mutable_model()->set_hidden(0, 2);
  const Schema from = SchemaOf(deeper), to = SchemaOf(turned);
  CHECK(Taken(to, Plan(from, to)).at("output_weight") == "2: 2 1");
  CHECK(Taken(to, Plan(from, to)).at("output_bias") == "2: 2 1");
  CHECK(absl::StrContains(Text(from, to), "dropped: tensor layer_1_weight (2, 2), "));
}

// It was told to be new, and had the outputs of the one that was told to be dropped.
TEST_CASE("the only label is told as loaded, whatever it is called", "[schema_labels]") {
  const Schema saved = Of("deepfm", {"click"});
  Schema now = Of("deepfm", {"order"});
  CHECK(Taken(now, Plan(saved, now)).contains("bias"));
  CHECK(Problem(saved, now, Init(false, true)) ==
        "label order: column was click, is order; if that column is only called otherwise now, say "
        "so with spec.model.initFrom.rename: {click: order}; else allow it with "
        "spec.model.initFrom.newTensors: allow");
  CHECK(Problem(saved, now, Init(true, false)) == "OK");
  CHECK(absl::EndsWith(Text(saved, now), "; changed: label order: column was click, is order"));
  now.mutable_labels(0)->set_column("click");
  CHECK(Problem(saved, now, Init(false, false)) == "OK");
  CHECK(absl::EndsWith(Text(saved, now), "; renamed: label click as order"));
  CHECK(CheckResume(MapSchemas(saved, now)).message() == "label click as order");
  const Renames rename = {{"click", "order"}};
  CHECK(absl::EndsWith(Text(saved, now, rename), "; renamed: label click as order"));
  // With a second one names count.
  CHECK(absl::StrContains(Text(saved, Of("deepfm", {"order", "buy"})), "; dropped: label click; "));
}

// A rename of the only label was heard for its name alone.
TEST_CASE("the only label begins anew where it is left behind", "[schema_labels]") {
  const Renames behind = {{"click", ""}};
  for (const std::string& model : kModels) {
    INFO(model);
    const Schema saved = Of(model, {"click"});
    for (const Schema& now : {saved, Of(model, {"buy"})}) {
      const RestorePlan plan = Plan(saved, now, behind);
      const Renames taken = Taken(now, plan);
      const std::vector<std::string> outputs = Outputs(model);
      for (const std::string& name : outputs) CHECK_FALSE(taken.contains(name));
      // What is of no label goes on.
      CHECK(taken.size() + outputs.size() == static_cast<size_t>(now.tensors_size()));
      for (const auto& [name, how] : taken) CHECK(how == "as it is");
      CHECK(plan.tables_size() == (model == "lr" ? 0 : 1));
      if (HasWeights(model) && model != "lr") {
        CHECK(ColumnsText(plan.tables(0).columns()) == "1: 0");
      }
      const std::string& label = now.labels(0).name();
      CHECK(absl::StrContains(Text(saved, now, behind), absl::StrCat("label ", label, "; ")));
      CHECK(Problem(saved, now, Init(true, false, behind)) != "OK");
      CHECK(Problem(saved, now, Init(false, true, behind)) != "OK");
      CHECK(Problem(saved, now, Init(true, true, behind)) == "OK");
    }
  }
  // Also one that had no name.
  Schema unnamed = Of("wide_deep", {"click"});
  unnamed.mutable_labels(0)->set_name("label");
  const Schema now = Of("wide_deep", {"click"});
  CHECK(Taken(now, Plan(unnamed, now)).contains("bias"));
  CHECK_FALSE(Taken(now, Plan(unnamed, now, {{"label", ""}})).contains("bias"));
}

// Its labels were told to begin anew.
TEST_CASE("a number that comes is no output of labels", "[schema_labels]") {
  for (const char* model : {"lr", "fm", "deepfm"}) {
    INFO(model);
    JobSpec spec = Job(model, {"a", "b"});
    const Schema saved = SchemaOf(spec);
    spec.mutable_labels()->SwapElements(0, 1);
    spec.mutable_data()->mutable_columns()->add_numeric("height");
    const std::string text = Text(saved, SchemaOf(spec));
    INFO(text);
    CHECK(absl::StrContains(text, "tensor numeric_weight was (6), is (8)"));
    CHECK_FALSE(absl::StrContains(text, "outputs anew"));
    CHECK(absl::StrContains(text, ", label b, label a; "));
  }
}

TEST_CASE("which numbers weigh what is asked before whose labels they are", "[schema_labels]") {
  JobSpec spec = Job("lr", {"a", "b"});
  const Schema saved = SchemaOf(spec);
  spec.mutable_labels()->SwapElements(0, 1);
  spec.mutable_data()->mutable_columns()->mutable_numeric()->SwapElements(0, 1);
  const Schema now = SchemaOf(spec);
  CHECK_FALSE(Taken(now, Plan(saved, now)).contains("numeric_weight"));
  CHECK(Taken(now, Plan(saved, now)).at("bias") == "2: 2 1");
}

}  // namespace
}  // namespace strata
