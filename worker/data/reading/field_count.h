// How many fields a job's examples have, where only the lines say it, without an index of them.
#ifndef STRATA_WORKER_DATA_READING_FIELD_COUNT_H_
#define STRATA_WORKER_DATA_READING_FIELD_COUNT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/strata/job.pb.h"

namespace strata {

// DataShape.fields of `files`, none of which is "-", as the index pass finds it
// (worker/data/index/index.h): of libfm, libsvm and libffm. Reads each file once, in order;
// compressed ones are decompressed on the way. Memory: that of LineStream. Errors: those of
// LineStream and of FeatureCounter; RESOURCE_EXHAUSTED: the text has more than `most_bytes` bytes,
// and no more of it is read.
absl::StatusOr<uint32_t> CountFieldsOfLines(const DataSpec& data,
                                            const std::vector<std::string>& files,
                                            uint64_t most_bytes);

}  // namespace strata

#endif  // STRATA_WORKER_DATA_READING_FIELD_COUNT_H_
