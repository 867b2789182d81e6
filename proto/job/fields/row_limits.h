// How many rows the values of a field can have, where the job and its vocabularies tell. A pure
// function.
// Tested by tests/proto/job/memory_need_test.cc
#ifndef STRATA_PROTO_JOB_FIELDS_ROW_LIMITS_H_
#define STRATA_PROTO_JOB_FIELDS_ROW_LIMITS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "proto/strata/job.pb.h"

namespace strata {

struct RowLimit {
  static constexpr uint64_t kNone = ~uint64_t{0};
  uint64_t rows = kNone;
  // The first field whose values have the same rows; where there is none before, the field itself.
  uint32_t shared_with = 0;
};

// Values of each vocabulary, by the file's name in the job.
using VocabularySizes = std::map<std::string, uint64_t>;

// By field, of a resolved job over `fields` fields (DataShape):
//   vocabulary   its values, outOfVocabulary and one for a missing value; fields of one table, file
//                and seed share them. None: `vocabularies` does not have the file.
//   bucketised   the buckets between its bounds and one for a missing value
//   any other    none: its values are hashed
std::vector<RowLimit> RowLimitsOfFields(const JobSpec& spec, uint32_t fields,
                                        const VocabularySizes& vocabularies);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_FIELDS_ROW_LIMITS_H_
