// What a field or a label means, compared between a checkpoint and a job. Pure.
#ifndef STRATA_PROTO_JOB_SCHEMA_SCHEMA_MEANING_H_
#define STRATA_PROTO_JOB_SCHEMA_SCHEMA_MEANING_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/job/schema/schema_renaming.h"
#include "proto/job/schema/schema_vocabulary.h"
#include "proto/strata/checkpoint.pb.h"

namespace strata {

// "hashSeed was 0, is 9; pooling was sum, is mean"; empty: nothing differs. `table`: what that of
// the checkpoint's field is called in the job; nothing: its rows are not loaded, and so may have
// other keys. Columns that `columns` renames are the same, but for keys that hash their names.
// `files`: what the job's vocabularies have.
std::string MeaningChange(const SchemaField& saved, const SchemaField& now,
                          const std::optional<std::string>& table, const ColumnRenaming& columns,
                          const VocabularyContents& files);
std::string MeaningChange(const SchemaLabel& saved, const SchemaLabel& now,
                          const ColumnRenaming& columns);

// Whether its keys hash its column's name: not those of numbers, nor of fields that go by a table.
bool HashesColumn(const SchemaField& field);

// "field item", "fields item, clicks": of more than 20 the first 20, and how many more there are.
// REQUIRES: there is one.
std::string FieldsText(const std::vector<absl::string_view>& names);

// The fields whose keys hash the name of a table: "fields item, clicks", or empty.
std::string FieldsHashing(const Schema& schema, absl::string_view table);

// Equal: equal values of the two fields have the same key in one table. Other: no value of one has
// a key that a value of the other has. "": the field has no rows. `table`: what that of the field
// is called in the job.
std::string RowSpace(const SchemaField& field, absl::string_view table);

// The same, but for keys that hash no column the two fields read the same one as well. "": the
// field has no rows, or keys that go by no field. `column`: what the field's is called in the job.
std::string KeySpace(const SchemaField& field, absl::string_view table, absl::string_view column);

// Equal: lines of the vocabularies of the two fields are the same keys in one table. "": the keys
// are no lines. `table`: as RowSpace's.
std::string LineSpace(const SchemaField& field, absl::string_view table);

// What makes a line of the vocabulary of `now` another value than that of `saved`, whose rows it
// would have, or a bucket others: "" if they are the same, or the job's values are not known yet.
std::string LinesChange(const SchemaField& saved, const SchemaField& now,
                        const VocabularyContents& files);

// What schemas call the label of spec.data.columns, or of a format that has one.
inline constexpr char kUnnamedLabel[] = "label";
// Whether both have one label, and one of these has no name: then it is the same label, whatever
// the other one is called.
bool OneUnnamedLabel(const google::protobuf::RepeatedPtrField<SchemaLabel>& a,
                     const google::protobuf::RepeatedPtrField<SchemaLabel>& b);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_SCHEMA_SCHEMA_MEANING_H_
