// Two schemas compared by name: what a job finds in a checkpoint. Pure.
#ifndef STRATA_PROTO_JOB_SCHEMA_SCHEMA_MAPPING_H_
#define STRATA_PROTO_JOB_SCHEMA_SCHEMA_MAPPING_H_

#include <map>
#include <optional>
#include <string>

#include "proto/job/schema/schema_entries.h"
#include "proto/job/schema/schema_vocabulary.h"
#include "proto/strata/checkpoint.pb.h"

namespace strata {

// `rename`: name in `saved` -> name in `now`, as Renaming has it (schema_renaming.h). `files`: what
// the vocabularies of `now` have, which may go on behind what `saved` knows. Data fingerprints are
// not compared.
SchemaMapping MapSchemas(const Schema& saved, const Schema& now,
                         const std::map<std::string, std::string>& rename = {},
                         const VocabularyContents& files = {});

// A job's schema by what each part says of itself: what follows from other parts is as it follows
// from those of the checkpoint.
struct SchemaByParts {
  Schema own;                     // as the job has it; its fields and labels are compared
  Schema tables;                  // those with the checkpoint's labels
  std::optional<Schema> tensors;  // those with its labels and tables; nothing: there are none
};

// The entries of a comparison that tells a difference once, each part as if those that it follows
// from were the same: fields with all that they have, whatever has become of their tables.
SchemaMapping MapByParts(const Schema& saved, const SchemaByParts& now);

// Adds that lines have other weights than they had, which no schema says: `saved` and `now` are
// what spec.sampleWeight is in either job, or empty. `rename`: as MapSchemas's; it may name that
// column.
void MapSampleWeight(const std::string& saved, const std::string& now,
                     const std::map<std::string, std::string>& rename, SchemaMapping& mapping);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_SCHEMA_SCHEMA_MAPPING_H_
