// Shapes and optimizers of tables and dense tensors, compared between a checkpoint and a job. Pure.
// Tested by tests/proto/job/schema/schema_differences_test.cc
#ifndef STRATA_PROTO_JOB_SCHEMA_SCHEMA_SHAPES_H_
#define STRATA_PROTO_JOB_SCHEMA_SCHEMA_SHAPES_H_

#include <string>

#include "proto/strata/checkpoint.pb.h"

namespace strata {

// "(9, 8)".
std::string ShapeText(const SchemaTensor& tensor);
// "embedding(16) + weight(1)".
std::string ShapeText(const SchemaTable& table);

bool SameShape(const SchemaTensor& a, const SchemaTensor& b);
bool SameShape(const SchemaTable& a, const SchemaTable& b);

// "the optimizer was adam, is ftrl", of a table by segment; empty: the state can be taken.
std::string OptimizerChange(const SchemaTensor& saved, const SchemaTensor& now);
// REQUIRES: SameShape.
std::string OptimizerChange(const SchemaTable& saved, const SchemaTable& now);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_SCHEMA_SCHEMA_SHAPES_H_
