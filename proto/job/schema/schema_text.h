// A schema for people.
#ifndef STRATA_PROTO_JOB_SCHEMA_SCHEMA_TEXT_H_
#define STRATA_PROTO_JOB_SCHEMA_SCHEMA_TEXT_H_

#include <google/protobuf/message.h>

#include <string>

#include "absl/strings/string_view.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"

namespace strata {

// "adam(learningRate 0.001, beta1 0.9)": an optimizer, a transform, a life cycle, but for schedules
// that change nothing and limits that are not there.
std::string ConfigText(const google::protobuf::Message& config);

// What a job says of the rows of a table: "(admission counting(minSteps 3))", "bf16"; empty:
// nothing, or what is the default.
struct RowsText {
  std::string life_cycle, pull_codec;
};
RowsText RowsTextOf(const JobSpec& spec, absl::string_view table);

// Every table, tensor, field and label, a line each, with what is not a default; and what `spec`,
// the job that the schema is of, says of their rows beside: life cycles, codecs, weights of lines,
// files of vocabularies.
std::string SchemaText(const Schema& schema, const JobSpec& spec = {});

// The message in one line of JSON, with what has its default value; as member `spec` what of the
// job SchemaText says beside, where there is any.
std::string SchemaJson(const Schema& schema, const JobSpec& spec = {});

}  // namespace strata

#endif  // STRATA_PROTO_JOB_SCHEMA_SCHEMA_TEXT_H_
