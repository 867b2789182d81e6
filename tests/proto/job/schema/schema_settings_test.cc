#include "proto/job/schema/schema_settings.h"

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/job/schema/schema_mapping.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"

namespace strata {
namespace {

// Of a table and a tensor.
Schema SchemaOf(const std::string& type) {
  Schema schema;
  SchemaTable& table = *schema.add_tables();
  table.set_name("item");
  for (const char* name : {"embedding", "weight"}) {
    SchemaSegment& segment = *table.add_segments();
    segment.set_name(name);
    segment.set_dim(4);
    segment.set_initializer("zero");
    segment.mutable_optimizer()->set_type(type);
    segment.mutable_optimizer()->set_learning_rate(0.5f);
    if (type != "sgd") segment.add_state("accumulator");
  }
  SchemaTensor& tensor = *schema.add_tensors();
  tensor.set_name("bias");
  tensor.add_shape(1);
  tensor.set_initializer("zero");
  *tensor.mutable_optimizer() = table.segments(0).optimizer();
  *tensor.mutable_state() = table.segments(0).state();
  return schema;
}

// Each entry in a line, but for those of what is the same.
std::string Lines(const Schema& saved, const JobSpec& saved_job, const Schema& now,
                  const JobSpec& job) {
  SchemaMapping mapping = MapSchemas(saved, now);
  MapSettings(saved, saved_job, now, job, mapping);
  std::string lines;
  for (const SchemaEntry& e : mapping.entries) {
    if (e.change == SchemaChange::kLoaded) continue;
    absl::StrAppend(&lines, ChangeName(e.change), ": ", EntryText(e), "\n");
  }
  return lines;
}

TEST_CASE("rates and initializers are compared by table and tensor", "[schema_settings]") {
  const Schema saved = SchemaOf("adagrad");
  CHECK(Lines(saved, {}, saved, {}) == "");
  Schema now = saved;
  now.mutable_tables(0)->mutable_segments(1)->mutable_optimizer()->set_learning_rate(0.5000001f);
  now.mutable_tables(0)->mutable_segments(1)->set_initializer("normal(0, 0.01)");
  now.mutable_tensors(0)->mutable_optimizer()->set_clip_norm(2);
  CHECK(Lines(saved, {}, now, {}) ==
        "other settings: table item: weight: initializer was zero, is normal(0, 0.01); weight: "
        "optimizer was adagrad(learningRate 0.5), is adagrad(learningRate 0.5000001)\n"
        "other settings: tensor bias: optimizer was adagrad(learningRate 0.5), is "
        "adagrad(learningRate 0.5, clipNorm 2)\n");
}

TEST_CASE("another optimizer is told once", "[schema_settings]") {
  CHECK(Lines(SchemaOf("adagrad"), {}, SchemaOf("ftrl"), {}) ==
        "other optimizer: table item: embedding: the optimizer was adagrad, is ftrl; weight: the "
        "optimizer was adagrad, is ftrl\n"
        "other optimizer: tensor bias: the optimizer was adagrad, is ftrl\n");
  Schema plain = SchemaOf("sgd");
  plain.mutable_tensors(0)->mutable_optimizer()->set_type("add");
  CHECK(Lines(SchemaOf("sgd"), {}, plain, {}) ==
        "other settings: tensor bias: optimizer was sgd(learningRate 0.5), is "
        "add(learningRate 0.5)\n");
}

TEST_CASE("life cycles and codecs of rows are compared", "[schema_settings]") {
  const Schema schema = SchemaOf("sgd");
  JobSpec saved, now;
  saved.mutable_training()->set_pull_codec("float32");
  CHECK(Lines(schema, saved, schema, now) == "");
  now.mutable_life_cycle()->mutable_removal()->set_ttl_steps(7);
  now.mutable_training()->set_pull_codec("bf16");
  CHECK(Lines(schema, saved, schema, now) ==
        "other settings: table item: lifeCycle was none, is (removal(ttlSteps 7)); pullCodec was "
        "none, is bf16\n");
  // Each table has its own.
  JobSpec tables;
  tables.add_tables()->set_name("user");
  tables.mutable_tables(0)->set_pull_codec("int8");
  CHECK(Lines(schema, saved, schema, tables) == "");
  tables.mutable_tables(0)->set_name("item");
  CHECK(Lines(schema, now, schema, tables) ==
        "other settings: table item: lifeCycle was (removal(ttlSteps 7)), is none; pullCodec was "
        "bf16, is int8\n");
}

TEST_CASE("what a table has of DRAM is no setting of its rows", "[schema_settings]") {
  const Schema schema = SchemaOf("sgd");
  JobSpec saved;
  saved.add_tables()->set_name("item");
  JobSpec now = saved;
  now.mutable_tables(0)->set_dram_share(9);
  CHECK(Lines(schema, saved, schema, now) == "");
  CHECK(Lines(schema, now, schema, saved) == "");
}

}  // namespace
}  // namespace strata
