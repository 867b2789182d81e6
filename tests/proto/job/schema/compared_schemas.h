// A job and its changes, and what is said of their schemas.
#ifndef STRATA_TESTS_PROTO_JOB_SCHEMA_COMPARED_SCHEMAS_H_
#define STRATA_TESTS_PROTO_JOB_SCHEMA_COMPARED_SCHEMAS_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "proto/job/schema/schema_mapping.h"
#include "proto/job/schema/schema_start.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/proto/job/schema/made_schema.h"

namespace strata {

// A job over two categories and a number, defaults resolved.
inline JobSpec CsvJob(const std::string& type) {
  JobSpec spec;
  ColumnsSpec& columns = *spec.mutable_data()->mutable_columns();
  columns.set_label("y");
  columns.add_categorical("user");
  columns.add_categorical("item");
  columns.add_numeric("price");
  spec.mutable_model()->set_type(type);
  spec.mutable_model()->set_embedding_dim(4);
  if (std::string(type) != "mmoe") spec.mutable_model()->add_hidden(8);
  return Resolved(std::move(spec));
}

template <typename Change>
Schema Changed(const JobSpec& spec, const Change& change) {
  JobSpec other = spec;
  change(other);
  return SchemaOf(other);
}

inline std::string Lines(const absl::Status& status) {
  return status.ok() ? "OK" : std::string(status.message());
}

inline std::string ResumeProblem(const Schema& saved, const Schema& now) {
  return Lines(CheckResume(MapSchemas(saved, now)));
}

inline std::string InitProblem(const Schema& saved, const Schema& now,
                               const InitFromSpec& init = {}) {
  return Lines(CheckInitFrom(MapSchemas(saved, now, RenamesOf(init)), saved, now, init));
}

inline InitFromSpec Allow(bool new_tensors, bool dropped_tensors) {
  InitFromSpec init;
  init.set_new_tensors(new_tensors ? "allow" : "refuse");
  init.set_dropped_tensors(dropped_tensors ? "allow" : "refuse");
  return init;
}

}  // namespace strata

#endif  // STRATA_TESTS_PROTO_JOB_SCHEMA_COMPARED_SCHEMAS_H_
