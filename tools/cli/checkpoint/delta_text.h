// How deltas and removed keys are shown: JSON for programs, text for people.
// Tested by tests/tools/cli/checkpoint/delta_command_test.cc
#ifndef STRATA_TOOLS_CLI_CHECKPOINT_DELTA_TEXT_H_
#define STRATA_TOOLS_CLI_CHECKPOINT_DELTA_TEXT_H_

#include <string>
#include <vector>

#include "tools/cli/checkpoint/delta_report.h"

namespace strata {

// A paragraph for each file.
std::string DeltaText(const std::vector<DeltaFileReport>& reports);
// One line: {"files": [...]}, without its end. Sums of row hashes are text, as model hashes are.
std::string DeltaJson(const std::vector<DeltaFileReport>& reports);

// One line, parted by tabs, with its end: "put", table, key, weights and, where the delta has them,
// state, last step and updates; floats are parted by blanks and have all their bits. Or "remove",
// table, key and, of a stream, the step.
std::string DeltaRowText(const DeltaRow& row);
// The same as a line of JSON with its end; the key is text, since many readers round large numbers.
std::string DeltaRowJson(const DeltaRow& row);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_CHECKPOINT_DELTA_TEXT_H_
