// csv lines whose columns spec.fields describes.
#ifndef STRATA_WORKER_DATA_FORMATS_FIELDS_PARSER_H_
#define STRATA_WORKER_DATA_FORMATS_FIELDS_PARSER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "worker/data/formats/line_parser.h"
#include "worker/data/formats/vocabulary.h"

namespace strata {

// Features of an example stand in the order of the fields that have rows, numbers in that of the
// others (proto/job/fields/field_plan.h); columns that no field names are not used. Text may be
// quoted (csv_cursor.h). `first_line`: the header, or without one the first line of data. Where
// labels are optional, columns of labels and weights need not be there. `known`: as of
// ReadCsvColumns. REQUIRES: `vocabularies` has every file of spec.fields. INVALID_ARGUMENT: a
// column that is not in the file; names the field of the job file and the columns that there are.
absl::StatusOr<std::unique_ptr<LineParser>> MakeFieldsParser(const JobSpec& spec,
                                                             absl::string_view first_line,
                                                             const Vocabularies& vocabularies,
                                                             Labels labels = Labels::kRequired,
                                                             const DataShape& known = {});

}  // namespace strata

#endif  // STRATA_WORKER_DATA_FORMATS_FIELDS_PARSER_H_
