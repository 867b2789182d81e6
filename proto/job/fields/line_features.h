// How many features a line has, as far as a job and the size of its text tell. A pure function.
// Tested by tests/proto/job/memory_need_test.cc
#ifndef STRATA_PROTO_JOB_FIELDS_LINE_FEATURES_H_
#define STRATA_PROTO_JOB_FIELDS_LINE_FEATURES_H_

#include <cstdint>
#include <vector>

#include "proto/strata/job.pb.h"

namespace strata {

// By field, at least 1 each. How many values a line has nobody counts before training.
struct LineFeatures {
  std::vector<uint64_t> most;    // sequences: what the text has room for, however short values are
  std::vector<uint64_t> likely;  // sequences: values as long as other fields' are thought to be
};

// Of a resolved job over `fields` fields (DataShape) and lines of `line_bytes` bytes on average (0:
// not known):
//   categorical, bucketised   1
//   libfm, libsvm             1, as a field is a feature there: the most that a line has
//   sequence, multiValued     they have the text that one value of each other field and label
//                             leaves, 8 bytes each with what parts it from the next, in equal
//                             shares, and so many values of 8 bytes; sequences at most maxLength,
//                             and what they do not need the others share. `most`: sequences have
//                             all of the text, by 2 bytes a value.
//   libffm                    the fields share the text, 12 bytes a value
// Where the text is not known: a sequence maxLength, others 1.
LineFeatures FeaturesOfFields(const JobSpec& spec, uint32_t fields, uint64_t line_bytes);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_FIELDS_LINE_FEATURES_H_
