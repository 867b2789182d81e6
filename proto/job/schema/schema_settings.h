// What of tables and tensors may change where a job resumes, and so is no difference of schemas:
// initializers, numbers of optimizers, life cycles and codecs of rows. Pure.
#ifndef STRATA_PROTO_JOB_SCHEMA_SCHEMA_SETTINGS_H_
#define STRATA_PROTO_JOB_SCHEMA_SCHEMA_SETTINGS_H_

#include "proto/job/schema/schema_entries.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"

namespace strata {

// Adds what differs in it of the tables and tensors that `mapping`, a comparison of `saved` and
// `now`, finds in both. The jobs are those that the schemas are of.
void MapSettings(const Schema& saved, const JobSpec& saved_job, const Schema& now,
                 const JobSpec& job, SchemaMapping& mapping);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_SCHEMA_SCHEMA_SETTINGS_H_
