// The parser that a job's data need.
// Tested by tests/worker/data/reading/file_batch_source_test.cc
// Tested by tests/worker/data/formats/scoring_test.cc
// Tested by tests/worker/data/index/index_test.cc
#ifndef STRATA_WORKER_DATA_FORMATS_PARSER_FACTORY_H_
#define STRATA_WORKER_DATA_FORMATS_PARSER_FACTORY_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "worker/data/formats/line_parser.h"
#include "worker/data/formats/vocabulary.h"

namespace strata {

// `first_line`: where NeedsFirstLine, the first physical line of the first file. `shape` is that of
// the train files, for evaluation too. `vocabularies` has every file that spec.fields names.
// INVALID_ARGUMENT names the field of the job file.
absl::StatusOr<std::unique_ptr<LineParser>> MakeLineParser(const JobSpec& spec,
                                                           const DataShape& shape,
                                                           absl::string_view first_line,
                                                           const Vocabularies& vocabularies = {});

// The same for lines to score, whose labels are optional; of criteo, too, `first_line` counts.
absl::StatusOr<std::unique_ptr<LineParser>> MakeScoringParser(const JobSpec& spec,
                                                              const DataShape& shape,
                                                              absl::string_view first_line,
                                                              const Vocabularies& vocabularies);

// The shape that a format has, whatever lines hold. None: libfm, libsvm and libffm.
std::optional<DataShape> FixedShape(const JobSpec& spec);

// criteo or criteo_csv.
bool IsCriteo(const DataSpec& data);

// True when a parser needs to see the first line of a file (csv, criteo_csv).
bool NeedsFirstLine(const DataSpec& data);

// criteo, criteo_csv: dense unless spec.data.integerFeatures says bucket.
bool HasBuckets(const DataSpec& data);

// True when the first line of every file is not data (criteo_csv, csv with a header).
bool HasHeader(const DataSpec& data);

// Between two columns of csv and criteo_csv.
char ColumnDelimiter(const DataSpec& data);

}  // namespace strata

#endif  // STRATA_WORKER_DATA_FORMATS_PARSER_FACTORY_H_
