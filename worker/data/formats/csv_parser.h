// csv lines with named or numbered columns.
// Tested by tests/worker/data/formats/formats_test.cc
// Tested by tests/worker/data/formats/parsers_test.cc
#ifndef STRATA_WORKER_DATA_FORMATS_CSV_PARSER_H_
#define STRATA_WORKER_DATA_FORMATS_CSV_PARSER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "worker/data/formats/line_parser.h"

namespace strata {

// Fields may be quoted (csv_cursor.h). Numbers may have spaces around them; missing is 0. A
// category is its bytes, hashed as PlanFields and SeedOf say; missing is the empty string. A
// multi-valued column is split at its separator, empty parts are left out, and each value is hashed
// as a category; without any value it is missing. With mean pooling its features have the value
// 1 / count, else 1; Batch.fields tells which features belong together. Every line must have
// as many columns as `first_line` (without newline): the header, or with columns.header false the
// first line of data, or what `known` says of the training data (ReadCsvColumns). INVALID_ARGUMENT
// names the column and the field of the job file: a column that is not in the file, or another one
// than in the training data, in two lists, or in none (unless columns.ignored is ["*"]). Where
// labels are optional, columns of labels and weights need not be in the file. Labels and weights:
// target_columns.h. Of the job, whose labels are resolved, data.columns, labels, sampleWeight and
// model.hashSeed count. REQUIRES: it is of csv, and has no spec.fields.
absl::StatusOr<std::unique_ptr<LineParser>> MakeCsvParser(const JobSpec& spec,
                                                          absl::string_view first_line,
                                                          Labels labels = Labels::kRequired,
                                                          const DataShape& known = {});

}  // namespace strata

#endif  // STRATA_WORKER_DATA_FORMATS_CSV_PARSER_H_
