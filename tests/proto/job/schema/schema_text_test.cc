#include "proto/job/schema/schema_text.h"

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/match.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"

namespace strata {
namespace {

Schema OfTransform(const TransformConfig& transform) {
  Schema schema;
  SchemaField& field = *schema.add_fields();
  field.set_name("price");
  field.set_column("price");
  field.set_kind("numeric");
  *field.mutable_transform() = transform;
  return schema;
}

std::string TransformText(const TransformConfig& transform) {
  return SchemaText(OfTransform(transform));
}

TEST_CASE("a transform is shown with its zeros, and with all digits", "[schema]") {
  TransformConfig clip;
  clip.set_type("clip");
  clip.set_min(0);
  clip.set_max(2);
  CHECK(absl::StrContains(TransformText(clip), "  transform clip(min 0, max 2)\n"));
  TransformConfig standardise;
  standardise.set_type("standardise");
  standardise.set_mean(0);
  standardise.set_deviation(1234567.1);
  CHECK(absl::StrContains(TransformText(standardise),
                          "  transform standardise(mean 0, deviation 1234567.1)\n"));
  TransformConfig buckets;
  buckets.set_type("bucketise");
  for (const double bound : {0.0, 0.5, 1700000100.0}) buckets.add_bounds(bound);
  CHECK(absl::StrContains(TransformText(buckets),
                          "  transform bucketise(bounds [0, 0.5, 1700000100])\n"));
}

TEST_CASE("an optimizer is shown with the zeros that change what it does", "[schema]") {
  Schema schema;
  SchemaTensor& tensor = *schema.add_tensors();
  tensor.set_name("bias");
  OptimizerConfig& adam = *tensor.mutable_optimizer();
  adam.set_type("adam");
  adam.set_learning_rate(0.0012345678f);
  adam.set_beta1(0);
  adam.set_weight_decay(0);
  adam.set_clip_norm(0);
  CHECK(absl::StrContains(SchemaText(schema), "  adam(learningRate 0.0012345678, beta1 0)  "));
}

TEST_CASE("separators and defaults are shown in one line", "[schema]") {
  Schema schema;
  SchemaField& field = *schema.add_fields();
  field.set_name("tags");
  field.set_column("tags");
  field.set_separator(" ");
  field.set_weight_separator("\t");
  field.set_default_value("a\nb");
  CHECK(absl::StrContains(SchemaText(schema),
                          "  separator ' '  weightSeparator \\t  default 'a\\nb'\n"));
}

TEST_CASE("a name that holds a line end breaks no line", "[schema]") {
  Schema schema;
  schema.set_model("l\nr");
  schema.set_data_fingerprint("\x1b");
  SchemaTable& table = *schema.add_tables();
  table.set_name("ta\nble");
  SchemaSegment& segment = *table.add_segments();
  segment.set_name("we\night");
  segment.set_initializer("ze\nro");
  segment.mutable_optimizer()->set_type("a\ndam");
  segment.add_state("m\nv");
  SchemaTensor& tensor = *schema.add_tensors();
  tensor.set_name("attention_a\nb_0_bias");
  SchemaField& field = *schema.add_fields();
  field.set_name("a\r\nb");
  field.set_column("a\tb");
  field.set_kind("numeric");
  SchemaLabel& label = *schema.add_labels();
  label.set_name("cli\nck");
  label.set_column("y\n");
  label.set_kind("binary");
  JobSpec spec;
  spec.set_sample_weight("w\n");
  spec.mutable_training()->set_pull_codec("b\nf16");
  CHECK(SchemaText(schema, spec) ==
        "model l\\nr\n"
        "table ta\\nble  number 0\n"
        "  we\\night(0)  ze\\nro  a\\ndam  state m\\nv\n"
        "  pullCodec b\\nf16\n"
        "tensor attention_a\\nb_0_bias()  0 rows from 0      no state\n"
        "field a\\r\\nb  numeric  column a\\tb\n"
        "label cli\\nck  binary  column y\\n  weight 0\n"
        "sampleWeight w\\n\n"
        "data \\x1b\n");
}

TEST_CASE("what the job says of rows and lines beside the schema is shown", "[schema]") {
  Schema schema;
  for (const char* name : {"item", "user"}) schema.add_tables()->set_name(name);
  JobSpec spec;
  spec.set_sample_weight("w");
  TableConfig &item = *spec.add_tables(), &user = *spec.add_tables();
  item.set_name("item");
  item.set_pull_codec("float32");
  AdmissionSpec& admission = *item.mutable_life_cycle()->mutable_admission();
  admission.set_type("counting");
  admission.set_min_steps(3);
  RemovalSpec& removal = *item.mutable_life_cycle()->mutable_removal();
  removal.set_every_steps(1000);
  removal.set_ttl_steps(0);
  removal.mutable_count()->set_below(2);
  removal.mutable_count()->set_idle_steps(0);
  user.set_name("user");
  user.set_pull_codec("bf16");
  CHECK(SchemaText(schema, spec) ==
        "model \n"
        "table item  number 0\n"
        "  lifeCycle(admission counting(minSteps 3), removal(everySteps 1000, count(below 2, "
        "idleSteps 0)))\n"
        "table user  number 0\n"
        "  pullCodec bf16\n"
        "sampleWeight w\n");
  const std::string json = SchemaJson(schema, spec);
  CHECK(absl::StrContains(json, "\"sampleWeight\":\"w\""));
  CHECK(absl::StrContains(json, "{\"name\":\"user\",\"pullCodec\":\"bf16\"}"));
  CHECK(absl::StrContains(json, "\"minSteps\":3"));
  // Where a vocabulary lies, whether it could be read or not.
  for (const char* name : {"user", "item"}) {
    SchemaField& field = *schema.add_fields();
    field.set_name(name);
    field.set_kind("categorical");
    if (schema.fields_size() > 1) field.set_out_of_vocabulary(3);
    spec.add_fields()->set_name(name);
  }
  spec.mutable_fields(1)->mutable_vocabulary()->set_file("/d/it\nems.txt");
  CHECK(absl::StrContains(SchemaText(schema, spec),
                          "\nfield user  categorical\n"
                          "field item  categorical  outOfVocabulary 3  vocabularyFile "
                          "/d/it\\nems.txt\n"));
  CHECK(absl::StrContains(SchemaJson(schema, spec),
                          "\"fields\":[{\"name\":\"item\",\"vocabulary\":{\"file\":"
                          "\"/d/it\\nems.txt\"}}]"));
  schema.clear_fields();
  CHECK(SchemaJson(schema, JobSpec()) == SchemaJson(schema));
  CHECK_FALSE(absl::StrContains(SchemaJson(schema), "\"spec\""));
  // The one table of a job without spec.tables.
  schema.mutable_tables()->DeleteSubrange(1, 1);
  spec.clear_tables();
  spec.clear_sample_weight();
  spec.mutable_training()->set_pull_codec("int8");
  spec.mutable_life_cycle()->mutable_admission()->set_type("always");
  CHECK(SchemaText(schema, spec) ==
        "model \ntable item  number 0\n  lifeCycle(admission always)\n  pullCodec int8\n");
}

}  // namespace
}  // namespace strata
