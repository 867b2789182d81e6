// Files read as a job reads them: indexed, and opened as a source of batches.
#ifndef STRATA_TESTS_WORKER_DATA_READING_OPENED_SOURCE_H_
#define STRATA_TESTS_WORKER_DATA_READING_OPENED_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "worker/data/files/text_files.h"
#include "worker/data/reading/batch_source.h"

namespace strata {

// One for all tests of a process.
std::shared_ptr<TextFiles> TextFilesOfTest();

// Of libsvm.
JobSpec Spec(uint32_t lanes, uint32_t batch, uint32_t buffer);

InputIndex Index(const JobSpec& spec, const std::vector<std::string>& files);
std::unique_ptr<BatchSource> Open(const JobSpec& spec, const InputIndex& index);

// Of a batch whose lines have one key each.
std::vector<uint64_t> Keys(BatchSource& source, uint64_t step, uint32_t lane);

}  // namespace strata

#endif  // STRATA_TESTS_WORKER_DATA_READING_OPENED_SOURCE_H_
