// What belongs to a label or a sequence follows it by name: towers and gates, and attention.
#include <catch2/catch.hpp>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/job/schema/schema_mapping.h"
#include "proto/job/schema/schema_start.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/proto/job/schema/made_schema.h"

namespace strata {
namespace {

// By what the job calls a tensor that is loaded: what the checkpoint does.
Renames Loaded(const Schema& saved, const Schema& now, const Renames& rename = {}) {
  Renames names;
  for (const auto& [from, to] : MapSchemas(saved, now, rename).tensors) {
    CHECK(names.emplace(now.tensors(to).name(), saved.tensors(from).name()).second);
  }
  return names;
}

TEST_CASE("towers and gates follow their labels to other numbers", "[schema]") {
  const std::string model = GENERATE("mmoe", "shared_bottom");
  INFO(model);
  const auto of = [&](const std::vector<std::string>& labels) {
    return SchemaOf(OfLabels(model, labels));
  };
  const Schema both = of({"click", "buy"}), buy = of({"buy"}), three = of({"cart", "buy", "click"});
  const std::vector<std::string> parts = model == "mmoe" ? std::vector<std::string>{"tower", "gate"}
                                                         : std::vector<std::string>{"tower"};
  const auto check = [&](const Renames& loaded, int saved_label, int now_label) {
    for (const std::string& part : parts) {
      const std::string rest = part == "tower" ? "_0_weight" : "_weight";
      const auto at = loaded.find(absl::StrCat(part, "_", now_label, rest));
      REQUIRE(at != loaded.end());
      CHECK(at->second == absl::StrCat(part, "_", saved_label, rest));
    }
  };
  check(Loaded(both, both), 0, 0);
  check(Loaded(both, both), 1, 1);
  check(Loaded(both, buy), 1, 0);
  check(Loaded(buy, both), 0, 1);
  CHECK_FALSE(Loaded(buy, both).contains("tower_0_0_weight"));
  const Schema swapped = of({"buy", "click"});
  check(Loaded(both, swapped), 1, 0);
  check(Loaded(both, swapped), 0, 1);
  check(Loaded(three, both), 2, 0);
  if (model == "mmoe") {
    CHECK(Loaded(three, both).at("expert_0_0_weight") == "expert_0_0_weight");
  }
  // Nothing is lost, so nothing is refused; to resume is to have the same model.
  CHECK(InitProblem(both, swapped) == "OK");
  CHECK(absl::StrContains(ResumeProblem(both, swapped), "tower_1_0_weight as tower_0_0_weight"));
  CHECK(absl::EndsWith(ResumeProblem(both, swapped),
                       "label click came before buy, and comes after it now"));
  CHECK(absl::StrContains(Text(both, buy), "tensor tower_1_0_weight as tower_0_0_weight"));
  CHECK(absl::StrContains(Text(both, buy), "dropped: "));
  CHECK_FALSE(absl::StrContains(Text(both, buy), "new: "));
  CHECK(absl::StrContains(InitProblem(buy, both), "tensor tower_0_0_weight"));
}

TEST_CASE("towers follow a label that is called otherwise, and a rename of their own", "[schema]") {
  const Schema both = SchemaOf(OfLabels("mmoe", {"click", "buy"}));
  const Schema order = SchemaOf(OfLabels("mmoe", {"order", "click"}));
  const Renames renamed = Loaded(both, order, {{"buy", "order"}});
  CHECK(renamed.at("tower_0_0_weight") == "tower_1_0_weight");
  CHECK(renamed.at("gate_1_bias") == "gate_0_bias");
  CHECK(InitProblem(both, order, Init({{"buy", "order"}})) == "OK");
  // Without it that tower begins anew: it is of another label.
  CHECK_FALSE(Loaded(both, order).contains("tower_0_0_weight"));
  CHECK(Loaded(both, order, {{"tower_1_0_weight", "tower_0_0_weight"}}).at("tower_0_0_weight") ==
        "tower_1_0_weight");
  // A rename is heard where the label says the same, too.
  const Schema buy = SchemaOf(OfLabels("mmoe", {"buy"}));
  CHECK(Loaded(both, buy, {{"tower_1_0_weight", "tower_0_0_weight"}}).at("tower_0_0_weight") ==
        "tower_1_0_weight");
  CHECK(absl::StrContains(InitProblem(both, buy, Init({{"tower_0_0_weight", "tower_0_0_weight"}})),
                          "the checkpoint's tensors tower_0_0_weight and tower_1_0_weight would "
                          "both be called tower_0_0_weight"));
  // The one label of a job may be called anything.
  CHECK(Loaded(buy, SchemaOf(OfLabels("mmoe", {"order"}))).contains("tower_0_0_weight"));
}

TEST_CASE("a plan reads a tower from where its label's was", "[schema]") {
  const Schema both = SchemaOf(OfLabels("mmoe", {"click", "buy"}));
  const Schema buy = SchemaOf(OfLabels("mmoe", {"buy"}));
  const auto tensor = [](const Schema& schema, const std::string& name) {
    for (const SchemaTensor& t : schema.tensors()) {
      if (t.name() == name) return t;
    }
    FAIL(name);
    return SchemaTensor();
  };
  const RestorePlan plan = MakeRestorePlan(MapSchemas(both, buy), both, buy, Init({}, true));
  const uint64_t to = tensor(buy, "tower_0_0_weight").first_row();
  int found = 0;
  for (const RestoreTensor& t : plan.tensors()) {
    if (t.to_row() != to) continue;
    ++found;
    CHECK(t.from_row() == tensor(both, "tower_1_0_weight").first_row());
  }
  CHECK(found == 1);
}

// Din over an item and two sequences of items, which are called after `first` and `second`.
JobSpec OfSequences(const char* first, const char* second, uint32_t attention = 3) {
  JobSpec spec = CsvJob("din");
  spec.mutable_data()->mutable_columns()->clear_categorical();
  spec.mutable_data()->mutable_columns()->clear_numeric();
  spec.mutable_model()->add_attention_hidden(attention);
  TableConfig& table = *spec.add_tables();
  table.set_name("items");
  table.set_dim(4);
  table.mutable_optimizer()->set_type("sgd");
  for (const char* name : {"item", first, second}) {
    FieldConfig& field = *spec.add_fields();
    field.set_name(name);
    field.set_kind(name == std::string("item") ? "categorical" : "sequence");
    field.set_table("items");
    if (field.kind() == "sequence") field.set_max_length(5);
  }
  return spec;
}

// Where each tensor of `prefix` is loaded from: "attention_a_0_weight as attention_b_0_weight".
std::set<std::string> LoadedAs(const Schema& saved, const Schema& now, const char* prefix,
                               const Renames& rename) {
  std::set<std::string> out;
  for (const auto& [from, to] : MapSchemas(saved, now, rename).tensors) {
    if (!absl::StartsWith(saved.tensors(from).name(), prefix)) continue;
    out.insert(absl::StrCat(saved.tensors(from).name(), " as ", now.tensors(to).name()));
  }
  return out;
}

TEST_CASE("attention goes with the sequence that is renamed", "[schema]") {
  using Pairs = std::set<std::string>;
  const auto all = [](const std::string& from, const std::string& to) {
    Pairs pairs;
    for (const char* part : {"_0_weight", "_0_bias", "_1_weight", "_1_bias"}) {
      pairs.insert(absl::StrCat("attention_", from, part, " as attention_", to, part));
    }
    return pairs;
  };
  // One name begins as the other, and both end as a layer's number does.
  const Schema saved = SchemaOf(OfSequences("a", "a_0"));
  CHECK(LoadedAs(saved, saved, "attention_a_0_0", {}).size() == 2);
  const Schema swapped = SchemaOf(OfSequences("a_0", "a"));
  const Renames swap = {{"a", "a_0"}, {"a_0", "a"}};
  Pairs both = all("a", "a_0");
  both.merge(all("a_0", "a"));
  CHECK(LoadedAs(saved, swapped, "attention_", swap) == both);
  InitFromSpec init;
  for (const auto& [from, to] : swap) (*init.mutable_rename())[from] = to;
  CHECK(InitProblem(saved, swapped, init) == "OK");
  // One alone; the other is where it was.
  const Schema renamed = SchemaOf(OfSequences("b", "a_0"));
  both = all("a", "b");
  both.merge(all("a_0", "a_0"));
  CHECK(LoadedAs(saved, renamed, "attention_", {{"a", "b"}}) == both);
  // Left behind, with a new sequence of its name.
  CHECK(LoadedAs(saved, saved, "attention_", {{"a", ""}}) == all("a_0", "a_0"));
  // What a rename says of a tensor counts.
  const auto own = LoadedAs(saved, renamed, "attention_", {{"a", "b"}, {"attention_a_1_bias", ""}});
  CHECK(own.size() == 7);
  CHECK_FALSE(own.contains("attention_a_1_bias as attention_b_1_bias"));
  // Layers of other widths are told as such.
  InitFromSpec one;
  (*one.mutable_rename())["a"] = "b";
  CHECK(absl::StartsWith(InitProblem(saved, SchemaOf(OfSequences("b", "a_0", 4)), one),
                         "tensor attention_b_0_weight was (16, 3), is (16, 4); let it"));
}

}  // namespace
}  // namespace strata
