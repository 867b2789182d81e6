#include "tools/cli/base/shell_word.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace strata {
namespace {

// Characters that mean nothing to a shell, wherever in a word they stand.
bool IsPlain(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
         absl::string_view("_-./:,@%+=").find(c) != absl::string_view::npos;
}

}  // namespace

std::string ShellWord(absl::string_view text) {
  bool plain = !text.empty();
  for (const char c : text) plain = plain && IsPlain(c);
  if (plain) return std::string(text);
  // Nothing ends a quoted word but its quote, which therefore stands outside of it.
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

}  // namespace strata
