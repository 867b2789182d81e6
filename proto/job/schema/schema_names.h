// What earlier versions called dense tensors whose name another tensor could have as well. Pure.
#ifndef STRATA_PROTO_JOB_SCHEMA_SCHEMA_NAMES_H_
#define STRATA_PROTO_JOB_SCHEMA_SCHEMA_NAMES_H_

#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"

namespace strata {

// Gives the tensors of a checkpoint the names that they have today; `model` is its job's, with
// defaults resolved. Versions before numbered an output layer behind the hidden ones: layer_N with
// N layers of hidden is output, and bottom_N, tower_T_N and attention_NAME_N are bottom_output and
// so on. They called the second matrix of a cross layer of low rank as they called the one of full
// rank: cross_L_weight is cross_L_u. Names of today stay as they are.
void RenameTensors(const ModelSpec& model, Schema& saved);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_SCHEMA_SCHEMA_NAMES_H_
