// Layers that a job takes over from above another number of hidden layers: a tensor is loaded by
// its name, and an output layer has the same one whatever lies below it. Pure.
#ifndef STRATA_PROTO_JOB_SCHEMA_SCHEMA_DEPTHS_H_
#define STRATA_PROTO_JOB_SCHEMA_SCHEMA_DEPTHS_H_

#include <string>

#include "proto/job/schema/schema_entries.h"
#include "proto/strata/checkpoint.pb.h"

namespace strata {

// Names the tensors that `mapping` of both loads so, with both numbers and the rename that begins
// them anew; "": there are none. One line, whatever names hold.
std::string DepthWarning(const SchemaMapping& mapping, const Schema& saved, const Schema& now);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_SCHEMA_SCHEMA_DEPTHS_H_
