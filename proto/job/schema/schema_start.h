// What a job may take of a checkpoint, by the schemas of both. Pure.
#ifndef STRATA_PROTO_JOB_SCHEMA_SCHEMA_START_H_
#define STRATA_PROTO_JOB_SCHEMA_SCHEMA_START_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/job/schema/schema_mapping.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"

namespace strata {

// init.rename as MapSchemas takes it.
std::map<std::string, std::string> RenamesOf(const InitFromSpec& init);

// The differences that a job which resumes may not have, a line each: those that change what rows
// mean. It may change rates and what is no part of the schema.
std::vector<std::string> ResumeDifferences(const SchemaMapping& mapping);

// FAILED_PRECONDITION: there are such differences.
absl::Status CheckResume(const SchemaMapping& mapping);

// The lines as one text; of more than 20 the first 20, and how many more there are: a job of
// thousands of fields may have thousands of differences.
std::string FirstLines(std::vector<std::string> lines);

// FAILED_PRECONDITION: differences that `init` does not allow, a line each, with the remedy.
// INVALID_ARGUMENT: of init.rename, an old name that `saved` does not have, a new one that `now`
// does not have, or one that two parts would have.
absl::Status CheckInitFrom(const SchemaMapping& mapping, const Schema& saved, const Schema& now,
                           const InitFromSpec& init);

// DATA_LOSS: `saved` is what a manifest says of its model, `made` what the model of the manifest's
// own job is made of, and they are not the same: rows would be taken for those of other tensors, or
// none be read.
absl::Status CheckSaved(const Schema& saved, const Schema& made);

// What servers are to read. REQUIRES: CheckInitFrom is OK.
RestorePlan MakeRestorePlan(const SchemaMapping& mapping, const Schema& saved, const Schema& now,
                            const InitFromSpec& init);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_SCHEMA_SCHEMA_START_H_
