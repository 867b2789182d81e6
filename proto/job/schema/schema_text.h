// A schema for people.
#ifndef STRATA_PROTO_JOB_SCHEMA_SCHEMA_TEXT_H_
#define STRATA_PROTO_JOB_SCHEMA_SCHEMA_TEXT_H_

#include <string>

#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"

namespace strata {

// Every table, tensor, field and label, a line each, with what is not a default; and what `spec`,
// the job that the schema is of, says of their rows beside: life cycles, codecs, weights of lines.
std::string SchemaText(const Schema& schema, const JobSpec& spec = {});

// The message in one line of JSON, with what has its default value; as member `spec` what of the
// job SchemaText says beside, where there is any.
std::string SchemaJson(const Schema& schema, const JobSpec& spec = {});

}  // namespace strata

#endif  // STRATA_PROTO_JOB_SCHEMA_SCHEMA_TEXT_H_
