// Where a job's input comes from: files by default; benchmarks and tests may give batches from
// memory.
#ifndef STRATA_WORKER_DATA_READING_DATA_ACCESS_H_
#define STRATA_WORKER_DATA_READING_DATA_ACCESS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "worker/data/files/text_files.h"
#include "worker/data/index/index.h"
#include "worker/data/reading/batch_source.h"

namespace strata {

// Thread-safe.
class DataAccess {
 public:
  virtual ~DataAccess() = default;
  // The index pass (worker/data/index/index.h).
  virtual absl::StatusOr<InputIndex> BuildIndex(const JobSpec& spec,
                                                const std::vector<std::string>& files,
                                                const IndexOptions& options) = 0;
  // `shape` is that of the training input, also for the eval files. FAILED_PRECONDITION: a file is
  // not what was indexed.
  virtual absl::StatusOr<std::unique_ptr<BatchSource>> Open(const JobSpec& spec,
                                                            const InputIndex& index,
                                                            const DataShape& shape) = 0;

  // Files; lives for the whole process. A name of "-" is an error there.
  static DataAccess* Files();
  // Files, with a place for decompressed copies and a file that "-" stands for.
  static std::unique_ptr<DataAccess> MakeFiles(TextFiles::Options options);
};

}  // namespace strata

#endif  // STRATA_WORKER_DATA_READING_DATA_ACCESS_H_
