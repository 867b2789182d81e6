#include "tests/proto/job/schema/made_schema.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "proto/job/job_spec.h"
#include "proto/job/schema/schema.h"
#include "proto/job/schema/schema_mapping.h"
#include "proto/job/schema/schema_start.h"
#include "proto/job/schema/schema_vocabulary.h"
#include "proto/job/tables/model_tables.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"

namespace strata {

JobSpec Resolved(JobSpec spec) {
  TrainingJob job;
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name("j");
  *job.mutable_spec() = std::move(spec);
  job.mutable_spec()->mutable_training()->set_mode("bsp");
  job.mutable_spec()->mutable_data()->set_format("csv");
  job.mutable_spec()->mutable_data()->add_train("a.csv");
  const absl::Status resolved = ResolveJob(job);
  INFO(resolved);
  REQUIRE(resolved.ok());
  return job.spec();
}

JobSpec CsvJob(const std::string& model, const std::vector<std::string>& categories,
               const std::vector<std::string>& numbers) {
  JobSpec spec;
  ColumnsSpec& columns = *spec.mutable_data()->mutable_columns();
  columns.set_label("y");
  for (const std::string& name : categories) columns.add_categorical(name);
  for (const std::string& name : numbers) columns.add_numeric(name);
  spec.mutable_model()->set_type(model);
  spec.mutable_model()->set_embedding_dim(4);
  if (model != "mmoe") spec.mutable_model()->add_hidden(8);
  if (model == "dlrm") spec.mutable_model()->add_bottom_hidden(8);
  return Resolved(std::move(spec));
}

JobSpec OfLabels(const std::string& model, const std::vector<std::string>& labels,
                 const std::vector<std::string>& numbers) {
  JobSpec spec = CsvJob(model, {"user", "item"}, numbers);
  spec.mutable_data()->mutable_columns()->clear_label();
  for (const std::string& name : labels) spec.add_labels()->set_name(name);
  return spec;
}

JobSpec OfTables(const std::string& first, const std::string& second) {
  JobSpec spec;
  for (const std::string& name : {first, second}) {
    TableConfig& table = *spec.add_tables();
    table.set_name(name);
    table.set_dim(4);
  }
  for (const auto& [name, table] : std::vector<std::pair<std::string, std::string>>{
           {"item", first}, {"seen", first}, {"user", second}}) {
    FieldConfig& field = *spec.add_fields();
    field.set_name(name);
    field.set_kind("categorical");
    field.set_table(table);
  }
  FieldConfig& price = *spec.add_fields();
  price.set_name("price");
  price.set_kind("numeric");
  spec.add_labels()->set_name("click");
  spec.mutable_model()->set_type("deepfm");
  spec.mutable_model()->add_hidden(8);
  return Resolved(std::move(spec));
}

Schema SchemaOf(const JobSpec& spec) {
  const auto counts = CountFields(spec);
  REQUIRE(counts.has_value());
  const auto model = MakeModelTables(spec, counts->fields, counts->numeric);
  INFO(model.status());
  REQUIRE(model.ok());
  return MakeSchema(spec, *model);
}

InitFromSpec Allow(bool new_tensors, bool dropped_tensors, const Renames& rename) {
  InitFromSpec init;
  init.set_new_tensors(new_tensors ? "allow" : "refuse");
  init.set_dropped_tensors(dropped_tensors ? "allow" : "refuse");
  for (const auto& [from, to] : rename) (*init.mutable_rename())[from] = to;
  return init;
}

InitFromSpec AllowAll() { return Allow(true, true); }

InitFromSpec Init(const Renames& rename, bool allow) { return Allow(allow, allow, rename); }

std::string Lines(const absl::Status& status) {
  return status.ok() ? "OK" : std::string(status.message());
}

std::string ResumeProblem(const Schema& saved, const Schema& now, const VocabularyContents& files) {
  return Lines(CheckResume(MapSchemas(saved, now, {}, files)));
}

std::string InitProblem(const Schema& saved, const Schema& now, const InitFromSpec& init,
                        const VocabularyContents& files) {
  return Lines(CheckInitFrom(MapSchemas(saved, now, RenamesOf(init), files), saved, now, init));
}

std::string Text(const Schema& saved, const Schema& now, const Renames& rename) {
  return MappingText(MapSchemas(saved, now, rename));
}

}  // namespace strata
