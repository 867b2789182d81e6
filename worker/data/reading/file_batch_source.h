// Batches from indexed files.
#ifndef STRATA_WORKER_DATA_READING_FILE_BATCH_SOURCE_H_
#define STRATA_WORKER_DATA_READING_FILE_BATCH_SOURCE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "worker/data/files/text_files.h"
#include "worker/data/reading/batch_source.h"

namespace strata {

// `index` is of the train files, or of the eval files (then ReadLines is what one calls); `shape`
// is that of the train files in both cases.
//
// Memory: each lane that is read holds the raw bytes of one shuffle block, at most
// min(bufferLines x the longest line, kMaxRawBytes) plus 16 bytes a line; ReadWindow holds as much
// for at most `lanes` tasks; ReadLines about 1 MiB of lines, and a line. Only the lines of a batch
// are parsed. Compressed files are decompressed here, and stay so while the source lives
// (worker/data/files/text_files.h).
absl::StatusOr<std::unique_ptr<BatchSource>> OpenFileBatchSource(
    const JobSpec& spec, const InputIndex& index, const DataShape& shape,
    std::shared_ptr<TextFiles> text_files);

}  // namespace strata

#endif  // STRATA_WORKER_DATA_READING_FILE_BATCH_SOURCE_H_
