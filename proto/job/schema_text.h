// A schema for people.
// Tested by tests/proto/job/schema_test.cc
#ifndef STRATA_PROTO_JOB_SCHEMA_TEXT_H_
#define STRATA_PROTO_JOB_SCHEMA_TEXT_H_

#include <string>

#include "proto/strata/checkpoint.pb.h"

namespace strata {

// Every table, tensor, field and label, a line each, with what is not a default.
std::string SchemaText(const Schema& schema);

// The message in one line of JSON, with what has its default value.
std::string SchemaJson(const Schema& schema);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_SCHEMA_TEXT_H_
