// Tables of `strata` commands whose --json output is compared.
#ifndef STRATA_TESTS_GOLDEN_GOLDEN_COMMANDS_H_
#define STRATA_TESTS_GOLDEN_GOLDEN_COMMANDS_H_

#include <string>
#include <vector>

namespace strata::golden {

// Runs the commands of TABLE.txt (its first lines say how it reads) one after the other in a folder
// of their own, and compares what each prints with expected/TABLE.txt.
void CheckCommands(const std::string& table);

// What is typed after `strata` in both tables: "train {increments}".
std::vector<std::string> TypedCommands();

}  // namespace strata::golden

#endif  // STRATA_TESTS_GOLDEN_GOLDEN_COMMANDS_H_
