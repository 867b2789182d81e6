#include "tests/proto/job/din_job.h"

#include <cstdint>
#include <initializer_list>

#include "proto/strata/job.pb.h"

namespace strata {

TrainingJob DinJob(std::initializer_list<const char*> tables,
                   std::initializer_list<DinField> fields, uint32_t max_length) {
  TrainingJob job;
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name("j");
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->set_format("csv");
  spec.mutable_data()->add_train("/train.csv");
  spec.mutable_data()->mutable_columns()->set_label("y");
  spec.mutable_model()->set_type("din");
  for (const char* name : tables) spec.add_tables()->set_name(name);
  for (const DinField& f : fields) {
    FieldConfig& field = *spec.add_fields();
    field.set_name(f.name);
    field.set_kind(f.kind);
    field.set_table(f.table);
    if (field.kind() == "sequence") field.set_max_length(max_length);
  }
  return job;
}

}  // namespace strata
