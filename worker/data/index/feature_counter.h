// How many fields a job's examples have, where only the lines say it: libfm, libsvm, libffm.
//
//   FeatureCounter counter(spec.data());
//   while (Next(&line)) counter.Add(line);
//   return counter.Fields(files[0]);
//
// Tested by tests/worker/data/index/index_test.cc, tests/worker/data/reading/field_count_test.cc
#ifndef STRATA_WORKER_DATA_INDEX_FEATURE_COUNTER_H_
#define STRATA_WORKER_DATA_INDEX_FEATURE_COUNTER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/strata/job.pb.h"
#include "worker/data/formats/line_parser.h"
#include "worker/step/batch.h"

namespace strata {

// One thread at a time.
class FeatureCounter {
 public:
  explicit FeatureCounter(const DataSpec& data);

  // Looks at a line without its newline; bad ones do not count. Of libfm and libsvm only a line
  // with more colons than any good one before is parsed.
  void Add(absl::string_view line);

  // DataShape.fields: the most features on a good line of libfm and libsvm, or the highest field of
  // libffm and one. INVALID_ARGUMENT: no good line has a feature; the message names `first_file`.
  absl::StatusOr<uint32_t> Fields(const std::string& first_file) const;

 private:
  const std::unique_ptr<LineParser> parser_;
  const std::string format_;
  const bool libffm_;
  Batch batch_;
  uint64_t most_ = 0;
};

}  // namespace strata

#endif  // STRATA_WORKER_DATA_INDEX_FEATURE_COUNTER_H_
