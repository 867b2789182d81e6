// The index pass: cuts input files into tasks and finds what fixes the model's tables.
#ifndef STRATA_WORKER_DATA_INDEX_INDEX_H_
#define STRATA_WORKER_DATA_INDEX_INDEX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "worker/data/files/text_files.h"
#include "worker/data/formats/line_parser.h"

namespace strata {

// Most physical lines of a task.
inline constexpr uint32_t kTaskLines = 8192;

struct IndexOptions {
  // Of vocabularies (VocabularyOptions::beginnings).
  std::vector<uint64_t> beginnings = {};
  // Whether lines are learnt from: kRequired wants a line of each label (TargetSearch).
  Labels labels = Labels::kRequired;
  // Of held-out files: the shape of the training files, whose columns they have.
  DataShape training = {};
  // Asked before each read; empty: the pass is wanted to its end.
  Cancelled cancelled = nullptr;
};

// Reads every file once, in order. Memory: one read of 4 MiB and at most one line (kMaxLineBytes).
// Tasks are runs of whole physical lines of one file, blank ones included; header lines of csv and
// criteo_csv belong to none, must be the same in all files, and a UTF-8 byte order mark is skipped.
// shape: criteo and criteo_csv by spec.data.integerFeatures; csv by spec.fields or
// spec.data.columns, and without a header the columns of the first line, with one the names of
// those that the job gives as numbers; libfm and libsvm: the most features on one good line;
// libffm: the highest field on a good line, and one. Compressed files: `text_files` decompresses;
// tasks are places in the text, sizes and fingerprints those of the files themselves. Vocabulary
// files of spec.fields are read, and listed with fingerprints of their values. Errors: those of
// TextFiles::Open; INVALID_ARGUMENT with the file's name: no lines, a line over kMaxLineBytes,
// columns that are not there, or in places where the training files have others, headers that
// differ, no line to learn from (TargetSearch). CANCELLED: options.cancelled said so.
absl::StatusOr<InputIndex> BuildIndex(const JobSpec& spec, const std::vector<std::string>& files,
                                      TextFiles* text_files, const IndexOptions& options = {});

// FAILED_PRECONDITION names the first file that is not what was indexed, by its size, its first and
// its last 64 KiB.
absl::Status CheckFingerprints(const InputIndex& index, const TextFiles& text_files);

}  // namespace strata

#endif  // STRATA_WORKER_DATA_INDEX_INDEX_H_
