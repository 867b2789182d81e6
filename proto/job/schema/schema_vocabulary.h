// The values of vocabulary files in schemas: a value's key is its line, so a file keeps what it
// means while it goes on behind the values that a checkpoint knows. Pure.
#ifndef STRATA_PROTO_JOB_SCHEMA_SCHEMA_VOCABULARY_H_
#define STRATA_PROTO_JOB_SCHEMA_SCHEMA_VOCABULARY_H_

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"

namespace strata {

// What a file has: how many values, and fingerprints as SchemaField.vocabulary is one.
struct VocabularyContent {
  uint64_t values = 0;
  std::string fingerprint;                     // of all of them
  std::map<uint64_t, std::string> beginnings;  // of the first so many, fewer than all
};
// By the file's name in the job.
using VocabularyContents = std::map<std::string, VocabularyContent>;

// What the index pass saw; of an index of earlier versions nothing.
VocabularyContents VocabulariesOf(const InputIndex& index);

// Says in `schema`, made of `spec`, what values its fields know.
void DescribeVocabularies(const JobSpec& spec, const VocabularyContents& contents, Schema* schema);

// How many values each vocabulary of `saved` has: ascending, each number once.
std::vector<uint64_t> VocabularyCounts(std::initializer_list<const Schema*> saved);

// The vocabularies that `saved` knows, by the names that the files of their fields have in `spec`;
// without beginnings. Fields go by their names.
VocabularyContents KnownVocabularies(const JobSpec& spec, const Schema& saved);

// What keeps rows of `saved` from being those of the job's field, whose files have `contents`: ""
// if values have the lines that they had, or where one of the two schemas does not say.
std::string VocabularyChange(const SchemaField& saved, const SchemaField& now,
                             const VocabularyContents& contents);

// " (a vocabulary of 5 values, 7 now)" where VocabularyChange is "" and there are more than before.
std::string MoreValues(const SchemaField& saved, const SchemaField& now);

// What is wrong with a file that has `now` where `who` knows `saved`; "": it begins with that.
std::string VocabularyProblem(const VocabularyContent& saved, const VocabularyContent& now,
                              absl::string_view who = "the checkpoint");

}  // namespace strata

#endif  // STRATA_PROTO_JOB_SCHEMA_SCHEMA_VOCABULARY_H_
