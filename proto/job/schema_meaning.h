// What a field or a label means, compared between a checkpoint and a job. Pure.
// Tested by tests/proto/job/schema_test.cc
#ifndef STRATA_PROTO_JOB_SCHEMA_MEANING_H_
#define STRATA_PROTO_JOB_SCHEMA_MEANING_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/job/schema_vocabulary.h"
#include "proto/strata/checkpoint.pb.h"

namespace strata {

// "hashSeed was 0, is 9; pooling was sum, is mean"; empty: nothing differs. `table`: what that of
// the checkpoint's field is called in the job; nothing: its rows are not loaded, and so may have
// other keys. `files`: what the job's vocabularies have.
std::string MeaningChange(const SchemaField& saved, const SchemaField& now,
                          const std::optional<std::string>& table, const VocabularyContents& files);
std::string MeaningChange(const SchemaLabel& saved, const SchemaLabel& now);

// Equal: values of the two fields have the same keys in one table. "": the field has no rows, or
// keys that go by no field.
std::string KeySpace(const SchemaField& field, absl::string_view table);

// The number of the label that a tensor of towers and gates is of.
std::optional<int> LabelOf(absl::string_view tensor);

// The name of the sequence whose attention a tensor is of.
std::optional<std::string> SequenceOf(absl::string_view tensor);

// Whether a tensor has a column for each label: the outputs' (model_tables.h).
bool GoesByLabels(const Schema& schema, absl::string_view tensor);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_SCHEMA_MEANING_H_
