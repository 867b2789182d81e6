// Jobs of one step over a few lines of each format, for tests of commands.
#ifndef STRATA_TESTS_TOOLS_CLI_SMALL_FORMATS_H_
#define STRATA_TESTS_TOOLS_CLI_SMALL_FORMATS_H_

#include <string>

#include "tests/bad_input/user.h"

namespace strata {

// Eight lines of each format: train.tsv (criteo), criteo.csv, train.csv (columns y, n, c, d and t,
// which has several values; a line has none of n, c and t), and of libfm and libffm a ninth that is
// bad: train.libfm, of at most five features, and train.libffm, of fields 0, 1, 2, 5 and 6.
void WriteSmallData(const User& user);

// NAME.yaml, whose checkpoints are in the folder NAME: `model` and `data` are spec.model and
// spec.data; behind that `data` may have further lines of spec, indented by two.
void WriteSmallJob(const User& user, const std::string& name, const std::string& model,
                   const std::string& data);

}  // namespace strata

#endif  // STRATA_TESTS_TOOLS_CLI_SMALL_FORMATS_H_
