// How many features a line has, as far as a job and the size of its text tell. A pure function.
// Tested by tests/proto/job/memory_need_test.cc
#ifndef STRATA_PROTO_JOB_FIELDS_LINE_FEATURES_H_
#define STRATA_PROTO_JOB_FIELDS_LINE_FEATURES_H_

#include <cstdint>
#include <vector>

#include "proto/strata/job.pb.h"

namespace strata {

// By field, of a resolved job over `fields` fields (DataShape) and lines of `line_bytes` bytes on
// average (0: not known):
//   categorical, bucketised   1
//   libfm, libsvm             1, as a field is a feature there: the most that a line has
//   sequence                  maxLength, at most what the text has room for: 2 bytes a value
//   multiValued, libffm       at least 1. How many values a line has nobody counts before training:
//                             those fields have the text in equal shares, 8 bytes a value and 12 of
//                             libffm. Shorter values are more.
std::vector<uint64_t> FeaturesOfFields(const JobSpec& spec, uint32_t fields, uint64_t line_bytes);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_FIELDS_LINE_FEATURES_H_
