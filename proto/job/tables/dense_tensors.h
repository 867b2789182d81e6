// The tensors of a model's dense part: names, shapes, initial values and where their rows lie.
// Tested by tests/proto/job/tables/model_tables_test.cc
#ifndef STRATA_PROTO_JOB_TABLES_DENSE_TENSORS_H_
#define STRATA_PROTO_JOB_TABLES_DENSE_TENSORS_H_

#include "absl/status/status.h"
#include "proto/job/tables/model_tables.h"
#include "proto/strata/job.pb.h"

namespace strata {

// Fills tables[1].tensors, tensor_order and tensor_names by the model's shape, which `tables` has.
// INVALID_ARGUMENT names the field of a tensor that is too large.
absl::Status AddTensors(const JobSpec& spec, ModelTables* tables);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_TABLES_DENSE_TENSORS_H_
