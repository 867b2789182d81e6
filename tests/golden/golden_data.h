// Small data of every format for golden jobs, by integer arithmetic alone: the same bytes on every
// machine.
#ifndef STRATA_TESTS_GOLDEN_GOLDEN_DATA_H_
#define STRATA_TESTS_GOLDEN_GOLDEN_DATA_H_

#include <string>

#include "tests/bad_input/user.h"

namespace strata::golden {

// Writes data/NAME.train-0 (200 lines), data/NAME.train-1 (120) and data/NAME.eval (80) into the
// user's folder, for each NAME that DataField knows.
void WriteData(const User& user);

// "  data: {...}" of a job file in a folder beside data/. Names: criteo (of `strata generate`),
// criteo_csv (the same), libfm, libsvm, libffm, csv; csv_headless, csv_tabs and csv_semicolons (csv
// with other delimiters, and without a header), packed (libfm in gzip and zstd), wide (libfm with
// some 1500 features), bad_lines (libfm with two lines that are none), libffm_tables (libffm, and
// "  tables: ..." and "  fields: ..." of three tables behind it).
std::string DataField(const std::string& name);

}  // namespace strata::golden

#endif  // STRATA_TESTS_GOLDEN_GOLDEN_DATA_H_
