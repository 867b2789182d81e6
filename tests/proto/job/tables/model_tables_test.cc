#include "proto/job/tables/model_tables.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "proto/core/partition.h"
#include "proto/strata/job.pb.h"

namespace strata {
namespace {

JobSpec MakeSpec(const std::string& type, uint32_t partitions) {
  JobSpec spec;
  spec.mutable_model()->set_type(type);
  spec.mutable_model()->set_embedding_dim(16);
  for (uint32_t h : {400, 300, 200}) spec.mutable_model()->add_hidden(h);
  spec.mutable_model()->set_init_scale(0.01f);
  spec.mutable_optimizer()->mutable_sparse()->set_type("adagrad");
  spec.mutable_optimizer()->mutable_sparse()->set_learning_rate(0.05f);
  spec.mutable_optimizer()->mutable_dense()->set_type("adam");
  spec.mutable_optimizer()->mutable_dense()->set_beta2(0.995f);
  spec.mutable_storage()->set_partitions(partitions);
  return spec;
}

std::vector<uint64_t> Elements(const ModelTables& m) {
  std::vector<uint64_t> out;
  for (size_t i = 0; i < m.tensor_count(); ++i) out.push_back(m.tensor(i).elements);
  return out;
}

TEST_CASE("tensors of each model", "[core]") {
  const auto lr = MakeModelTables(MakeSpec("lr", 4096), 26, 13);
  REQUIRE(lr.ok());
  REQUIRE(lr->row_dim() == 1);
  REQUIRE(lr->embedding_dim == 0);
  REQUIRE(lr->tensor_names == std::vector<std::string>{"bias", "numeric_weight"});
  REQUIRE(Elements(*lr) == std::vector<uint64_t>{1, 13});

  const auto fm = MakeModelTables(MakeSpec("fm", 4096), 26, 13);
  REQUIRE(fm.ok());
  REQUIRE(fm->row_dim() == 17);
  REQUIRE(Elements(*fm) == std::vector<uint64_t>{1, 13, 13 * 16});
  REQUIRE(fm->tensor(2).initializer == InitializerSpec{InitializerType::kNormal, 0.01f});
  const auto fm_plain = MakeModelTables(MakeSpec("fm", 4096), 10, 0);
  REQUIRE(fm_plain.ok());
  REQUIRE(Elements(*fm_plain) == std::vector<uint64_t>{1});

  const auto deep = MakeModelTables(MakeSpec("deepfm", 4096), 26, 13);
  REQUIRE(deep.ok());
  REQUIRE(deep->tensor_names ==
          std::vector<std::string>{"bias", "numeric_weight", "layer_0_weight", "layer_0_bias",
                                   "layer_1_weight", "layer_1_bias", "layer_2_weight",
                                   "layer_2_bias", "output_weight", "output_bias"});
  REQUIRE(Elements(*deep) ==
          std::vector<uint64_t>{1, 13, 429 * 400, 400, 400 * 300, 300, 300 * 200, 200, 200, 1});
  REQUIRE(deep->tensor(2).initializer.type == InitializerType::kUniform);
  REQUIRE(deep->tensor(2).initializer.scale == Approx(std::sqrt(1.0 / 429)));
  REQUIRE(deep->tensor(8).initializer.scale == Approx(std::sqrt(1.0 / 200)));
  REQUIRE(deep->tensor(9).initializer.type == InitializerType::kZero);
  REQUIRE(deep->tables[0].segments[0].optimizer.type == OptimizerType::kAdagrad);
  REQUIRE(deep->tables[0].segments[0].initializer ==
          InitializerSpec{InitializerType::kNormal, 0.01f});
  REQUIRE(deep->tables[0].segments[1].initializer.type == InitializerType::kZero);
  REQUIRE(deep->tables[1].segments[0].optimizer.type == OptimizerType::kAdam);
  REQUIRE(deep->tables[1].segments[0].optimizer.beta2 == 0.995f);
}

TEST_CASE("tensors of wide_deep, dcn_v2 and dlrm", "[core]") {
  using Names = std::vector<std::string>;
  using Sizes = std::vector<uint64_t>;
  const auto wide = MakeModelTables(MakeSpec("wide_deep", 4096), 26, 13);
  const auto deep = MakeModelTables(MakeSpec("deepfm", 4096), 26, 13);
  REQUIRE(wide.ok());
  REQUIRE(deep.ok());
  REQUIRE(wide->tables == deep->tables);

  JobSpec spec = MakeSpec("dcn_v2", 4096);
  spec.mutable_model()->set_cross_layers(2);
  const auto full = MakeModelTables(spec, 10, 3);
  REQUIRE(full.ok());
  REQUIRE(full->row_dim() == 16);  // no weight beside the embedding
  REQUIRE(full->tensor_names == Names{"cross_0_weight", "cross_0_bias", "cross_1_weight",
                                      "cross_1_bias", "layer_0_weight", "layer_0_bias",
                                      "layer_1_weight", "layer_1_bias", "layer_2_weight",
                                      "layer_2_bias", "output_weight", "output_bias"});
  REQUIRE(Elements(*full) == Sizes{163 * 163, 163, 163 * 163, 163, 163 * 400, 400, 400 * 300, 300,
                                   300 * 200, 200, 363, 1});
  spec.mutable_model()->set_cross_layers(1);
  spec.mutable_model()->set_cross_rank(8);
  const auto low = MakeModelTables(spec, 10, 3);
  REQUIRE(low.ok());
  REQUIRE(low->tensor_names[0] == "cross_0_v");
  REQUIRE(low->tensor_names[1] == "cross_0_u");
  REQUIRE(low->tensor_names[2] == "cross_0_bias");
  REQUIRE(low->tensor(0).elements == 163 * 8);
  REQUIRE(low->tensor(1).elements == 8 * 163);
  REQUIRE(low->tensor(1).initializer.scale == Approx(std::sqrt(1.0 / 8)));

  spec = MakeSpec("dlrm", 4096);
  for (uint32_t width : {512, 64}) spec.mutable_model()->add_bottom_hidden(width);
  const auto dlrm = MakeModelTables(spec, 26, 13);
  REQUIRE(dlrm.ok());
  REQUIRE(dlrm->row_dim() == 16);
  REQUIRE(dlrm->interaction_pairs() == 351);
  REQUIRE(dlrm->tensor_names[4] == "bottom_output_weight");
  REQUIRE(Elements(*dlrm) == Sizes{13 * 512, 512, 512 * 64, 64, 64 * 16, 16, 367 * 400, 400,
                                   400 * 300, 300, 300 * 200, 200, 200, 1});
  const auto plain = MakeModelTables(spec, 10, 0);  // no numbers: no bottom
  REQUIRE(plain.ok());
  REQUIRE(plain->bottom_hidden.empty());
  REQUIRE(Elements(*plain) == Sizes{45 * 400, 400, 400 * 300, 300, 300 * 200, 200, 200, 1});
}

// A din of csv: item (width 5) and user (width 3), clicks of items, two numbers.
JobSpec DinSpec() {
  JobSpec spec = MakeSpec("din", 4096);
  spec.mutable_data()->set_format("csv");
  for (const uint32_t dim : {5u, 3u}) {
    TableConfig& table = *spec.add_tables();
    table.set_name(dim == 5 ? "items" : "users");
    table.set_dim(dim);
    table.mutable_optimizer()->set_type("sgd");
  }
  const auto add = [&spec](const char* name, const char* kind, const char* table) {
    FieldConfig& field = *spec.add_fields();
    field.set_name(name);
    field.set_column(name);
    field.set_kind(kind);
    field.set_table(table);
  };
  add("user", "categorical", "users");
  add("clicks", "sequence", "items");
  spec.mutable_fields(1)->set_max_length(9);
  add("item", "categorical", "items");
  spec.mutable_model()->add_attention_hidden(6);
  spec.mutable_model()->clear_hidden();
  spec.mutable_model()->add_hidden(7);
  return spec;
}

TEST_CASE("mmoe and din take tables of any widths", "[core]") {
  using Names = std::vector<std::string>;
  using Sizes = std::vector<uint64_t>;
  JobSpec spec = DinSpec();
  const auto din = MakeModelTables(spec, 3, 2);
  INFO(din.status());
  REQUIRE(din.ok());
  CHECK(din->field_dims == std::vector<uint32_t>{3, 5, 5});
  CHECK(din->example_width() == 15);
  CHECK(din->tables[0].dim() == 5);  // no weight beside the embedding
  CHECK(din->tables[2].dim() == 3);
  REQUIRE(din->sequences.size() == 1);
  CHECK(din->sequences[0].target == 2);
  CHECK(din->tensor_names == Names{"attention_clicks_0_weight", "attention_clicks_0_bias",
                                   "attention_clicks_output_weight", "attention_clicks_output_bias",
                                   "layer_0_weight", "layer_0_bias", "output_weight",
                                   "output_bias"});
  CHECK(Elements(*din) == Sizes{20 * 6, 6, 6, 1, 15 * 7, 7, 7, 1});

  JobSpec wide = spec;
  wide.mutable_tables(0)->set_dim(4096);
  wide.mutable_fields(1)->set_max_length(4093);
  CHECK(MakeModelTables(wide, 3, 2).ok());
  wide.mutable_fields(1)->set_max_length(4096);
  CHECK(
      std::string(MakeModelTables(wide, 3, 2).status().message()) ==
      "spec.fields: an example has 16785413 floats of fields and sequences (maxLength times dim); "
      "at most 16777216 are supported: shorten sequences or narrow tables");

  spec.mutable_model()->set_type("mmoe");
  spec.mutable_model()->set_experts(2);
  spec.mutable_model()->add_expert_hidden(4);
  spec.mutable_model()->add_tower_hidden(8);
  spec.mutable_fields(1)->set_kind("multiValued");
  for (const char* name : {"click", "buy"}) spec.add_labels()->set_name(name);
  const auto mmoe = MakeModelTables(spec, 3, 2);
  INFO(mmoe.status());
  REQUIRE(mmoe.ok());
  CHECK(mmoe->tensor_names ==
        Names{"expert_0_0_weight", "expert_0_0_bias", "expert_1_0_weight", "expert_1_0_bias",
              "gate_0_weight", "gate_0_bias", "gate_1_weight", "gate_1_bias", "tower_0_0_weight",
              "tower_0_0_bias", "tower_0_output_weight", "tower_0_output_bias", "tower_1_0_weight",
              "tower_1_0_bias", "tower_1_output_weight", "tower_1_output_bias"});
  CHECK(Elements(*mmoe) ==
        Sizes{15 * 4, 4, 15 * 4, 4, 15 * 2, 2, 15 * 2, 2, 4 * 8, 8, 8, 1, 4 * 8, 8, 8, 1});
}

// Whoever starts from a model of another depth takes no output for a hidden layer of its shape.
TEST_CASE("an output layer is no hidden one, however many there are", "[core]") {
  using Names = std::vector<std::string>;
  const auto outputs = [](const JobSpec& spec) {
    const auto model = MakeModelTables(spec, 10, 3);
    INFO(model.status());
    REQUIRE(model.ok());
    Names names;
    for (const std::string& name : model->tensor_names) {
      if (name.find("output") != std::string::npos) names.push_back(name);
    }
    return names;
  };
  for (const char* type : {"wide_deep", "deepfm", "dcn_v2", "dlrm", "shared_bottom"}) {
    INFO(type);
    JobSpec spec = MakeSpec(type, 4096);
    ModelSpec& model = *spec.mutable_model();
    const std::string name(type);
    if (name == "dcn_v2") model.set_cross_layers(1);
    if (name == "dlrm") model.add_bottom_hidden(8);
    if (name == "shared_bottom") model.add_tower_hidden(8);
    const Names one = outputs(spec);
    CHECK(one.size() == (name == "dlrm" ? size_t{4} : size_t{2}));
    model.add_hidden(100);
    if (name == "dlrm") model.add_bottom_hidden(8);
    if (name == "shared_bottom") model.add_tower_hidden(8);
    CHECK(outputs(spec) == one);
  }
}

TEST_CASE("tensors never overlap and stay within one partition", "[core]") {
  for (uint32_t partitions : {1u, 2u, 4u, 64u, 4096u, Partitioning::kMaxPartitions}) {
    const auto m = MakeModelTables(MakeSpec("deepfm", partitions), 26, 13);
    REQUIRE(m.ok());
    const Partitioning p(partitions);
    const auto& tensors = m->tables[1].tensors;
    REQUIRE(tensors.size() == m->tensor_count());
    for (size_t i = 0; i < tensors.size(); ++i) {
      const uint64_t first = tensors[i].first.value;
      const uint64_t last = first + tensors[i].Rows(ModelTables::kDenseRowDim) - 1;
      REQUIRE(last >= first);
      REQUIRE(p.Of(Position(first)) == p.Of(Position(last)));
      if (i > 0) {
        REQUIRE(tensors[i - 1].first.value + tensors[i - 1].Rows(ModelTables::kDenseRowDim) <=
                first);
      }
    }
    for (size_t k = 0; k < m->tensor_count(); ++k) {
      REQUIRE(m->tensor(k).name == m->tensor_names[k]);
    }
  }
}

TEST_CASE("tensors spread over partitions, the same way each time", "[core]") {
  const auto a = MakeModelTables(MakeSpec("deepfm", 4096), 26, 13);
  const auto b = MakeModelTables(MakeSpec("deepfm", 4096), 26, 13);
  REQUIRE(a.ok());
  REQUIRE(b.ok());
  REQUIRE(a->tables == b->tables);
  // Recorded jobs depend on these places.
  REQUIRE(a->tensor(0).first.value >> 52 == 0x076);
  REQUIRE(a->tensor(2).first.value >> 52 == 0xb5e);
  REQUIRE(a->tensor(0).first.value >> 63 != a->tensor(2).first.value >> 63);
}

TEST_CASE("what cannot be built is refused by field", "[core]") {
  const auto message = [](const JobSpec& spec, uint32_t fields, uint32_t numeric) {
    const auto m = MakeModelTables(spec, fields, numeric);
    REQUIRE(!m.ok());
    REQUIRE(absl::IsInvalidArgument(m.status()));
    return std::string(m.status().message());
  };
  REQUIRE_THAT(message(MakeSpec("wide", 4096), 26, 13), Catch::Contains("spec.model.type"));
  REQUIRE_THAT(message(MakeSpec("fm", 100), 26, 13), Catch::Contains("spec.storage.partitions"));
  JobSpec spec = MakeSpec("fm", 16);
  spec.mutable_model()->set_embedding_dim(0);
  REQUIRE_THAT(message(spec, 26, 13), Catch::Contains("spec.model.embeddingDim"));
  spec = MakeSpec("deepfm", 16);
  spec.mutable_model()->set_hidden(1, 0);
  REQUIRE_THAT(message(spec, 26, 13), Catch::Contains("spec.model.hidden[1]"));
  spec.mutable_model()->set_hidden(1, 4000000000u);
  spec.mutable_model()->set_hidden(0, 4000000000u);
  REQUIRE_THAT(message(spec, 26, 13), Catch::Contains("spec.model.hidden[1]"));
  REQUIRE_THAT(message(MakeSpec("deepfm", 16), 0, 0), Catch::Contains("at least one field"));
  REQUIRE_THAT(message(MakeSpec("wide_deep", 16), 0, 0), Catch::Contains("at least one field"));
  REQUIRE_THAT(message(MakeSpec("dlrm", 16), 1, 0), Catch::Contains("at least two fields"));
  REQUIRE_THAT(message(MakeSpec("dlrm", 16), 1024, 1), Catch::Contains("every pair of fields"));
  spec = MakeSpec("dcn_v2", 16);
  spec.mutable_model()->clear_hidden();
  REQUIRE_THAT(message(spec, 3, 0), Catch::Contains("spec.model.hidden"));
  spec = MakeSpec("lr", 16);
  spec.mutable_optimizer()->mutable_dense()->set_type("rmsprop");
  REQUIRE_THAT(message(spec, 1, 0), Catch::Contains("spec.optimizer.dense.type"));
}

}  // namespace
}  // namespace strata
