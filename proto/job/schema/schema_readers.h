// Fields and labels of a job, which read columns of its data, compared with those of a checkpoint.
// Pure.
#ifndef STRATA_PROTO_JOB_SCHEMA_SCHEMA_READERS_H_
#define STRATA_PROTO_JOB_SCHEMA_SCHEMA_READERS_H_

#include <map>
#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/job/schema/schema_entries.h"
#include "proto/job/schema/schema_vocabulary.h"
#include "proto/strata/checkpoint.pb.h"

namespace strata {

// Adds the entries of fields to `out`. `loaded_tables`: the checkpoint's tables whose rows are
// loaded, which outlive the call. Others: as MapSchemas (schema_mapping.h) has them.
void MapFields(const Schema& saved, const Schema& now,
               const std::map<std::string, std::string>& rename, const VocabularyContents& files,
               const std::set<absl::string_view>& loaded_tables, SchemaMapping& out);

// The same of labels. `new_outputs`: their outputs that begin anew, as text, or empty.
void MapLabels(const Schema& saved, const Schema& now,
               const std::map<std::string, std::string>& rename, const std::string& new_outputs,
               SchemaMapping& out);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_SCHEMA_SCHEMA_READERS_H_
