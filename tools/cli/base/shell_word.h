// Words of commands that a user is told to type.
#ifndef STRATA_TOOLS_CLI_BASE_SHELL_WORD_H_
#define STRATA_TOOLS_CLI_BASE_SHELL_WORD_H_

#include <string>

#include "absl/strings/string_view.h"

namespace strata {

// `text` as one word of a POSIX shell: as it is where that needs no quotes, else within single
// quotes. REQUIRES: no NUL, which no argument holds.
std::string ShellWord(absl::string_view text);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_BASE_SHELL_WORD_H_
