// Fields and labels of a job, which read columns of its data, compared with those of a checkpoint.
// Pure.
#ifndef STRATA_PROTO_JOB_SCHEMA_SCHEMA_READERS_H_
#define STRATA_PROTO_JOB_SCHEMA_SCHEMA_READERS_H_

#include <map>
#include <string>

#include "proto/job/schema/schema_entries.h"
#include "proto/job/schema/schema_vocabulary.h"
#include "proto/strata/checkpoint.pb.h"

namespace strata {

// Adds the entries of fields, then of labels, to `out`, which has the tables and tensors.
// `new_outputs`: the outputs of labels that begin anew, as text, or empty. Others: as MapSchemas
// (schema_mapping.h) has them.
void MapReaders(const Schema& saved, const Schema& now,
                const std::map<std::string, std::string>& rename, const VocabularyContents& files,
                const std::string& new_outputs, SchemaMapping& out);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_SCHEMA_SCHEMA_READERS_H_
