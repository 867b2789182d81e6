// What earlier versions called dense tensors whose name another tensor could have as well. Pure.
#ifndef STRATA_PROTO_JOB_SCHEMA_SCHEMA_NAMES_H_
#define STRATA_PROTO_JOB_SCHEMA_SCHEMA_NAMES_H_

#include "proto/strata/checkpoint.pb.h"

namespace strata {

// Gives the tensors of a schema that was written down the names that they have today. Versions
// before numbered an output layer behind the hidden ones: the last of layer_0, layer_1 ... is
// output, and the last of bottom_N, tower_T_N and attention_NAME_N is bottom_output and so on. They
// called the second matrix of a cross layer of low rank as they called the one of full rank:
// cross_L_weight beside cross_L_v is cross_L_u. Names of today stay as they are: where a perceptron
// has an output by name, its layers with numbers are hidden ones.
void RenameTensors(Schema& saved);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_SCHEMA_SCHEMA_NAMES_H_
