// The vocabulary files that a job's fields name.
// Tested by tests/worker/data/index/index_test.cc
#ifndef STRATA_WORKER_DATA_INDEX_VOCABULARIES_H_
#define STRATA_WORKER_DATA_INDEX_VOCABULARIES_H_

#include "absl/status/statusor.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "worker/data/files/text_files.h"
#include "worker/data/formats/vocabulary.h"

namespace strata {

// Reads each file once, whole. Errors: those of TextFiles::Open and Vocabulary::Parse, with the
// field of the job file. Where `index` is given, the files are added to its vocabularies.
absl::StatusOr<Vocabularies> LoadVocabularies(const JobSpec& spec, TextFiles* files,
                                              InputIndex* index = nullptr,
                                              const Cancelled& cancelled = nullptr);

}  // namespace strata

#endif  // STRATA_WORKER_DATA_INDEX_VOCABULARIES_H_
