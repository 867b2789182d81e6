// The first rows of a job whose gradients its servers refused. Pure functions.
#ifndef STRATA_SCHEDULER_JOB_REFUSED_ROWS_H_
#define STRATA_SCHEDULER_JOB_REFUSED_ROWS_H_

#include "google/protobuf/repeated_field.h"
#include "proto/strata/job.pb.h"

namespace strata::scheduler {

// Rows that a job's status names; a server names eight.
inline constexpr int kMostRefusedRows = 16;

// Takes up what a server says: rows that are not known yet, in its order, up to kMostRefusedRows;
// counts of those known grow and never fall, since a server that began again counts anew.
void RaiseRefused(const google::protobuf::RepeatedPtrField<RefusedRow>& reported,
                  google::protobuf::RepeatedPtrField<RefusedRow>& known);

// Fields of known rows that have none, as a worker that met them tells; what is known stays.
void NameFields(const google::protobuf::RepeatedPtrField<RefusedRow>& told,
                google::protobuf::RepeatedPtrField<RefusedRow>& known);

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_JOB_REFUSED_ROWS_H_
