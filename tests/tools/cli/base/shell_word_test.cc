#include "tools/cli/base/shell_word.h"

#include <catch2/catch.hpp>
#include <cstdio>
#include <string>
#include <vector>

namespace strata {
namespace {

// What a shell makes of a command's words, each with a line end behind it.
std::string ShellReads(const std::string& words) {
  std::FILE* pipe = popen(("printf '%s\\n' " + words).c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  for (int c; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
  CHECK(pclose(pipe) == 0);
  return text;
}

TEST_CASE("words that need no quotes have none", "[shell_word]") {
  for (const char* word : {"job.yaml", "spec.training.epochs=50", "/a/b-c_d", "127.0.0.1:0", "-"}) {
    CHECK(ShellWord(word) == word);
  }
}

TEST_CASE("a shell reads any text as the one word that it was", "[shell_word]") {
  const std::vector<std::string> words = {"",    "a b",  " ",        "it's",  "'",        "''",
                                          "\\",  "\\'",  "\"",       "$HOME", "`ls`",     "$(ls)",
                                          "a;b", "*",    "~",        "a\tb",  "a\nb",     "!",
                                          "#x",  "a&&b", "[64, 32]", "{a,b}", "\xc3\xa9", "\xff"};
  for (const std::string& word : words) {
    INFO(word);
    CHECK(ShellReads(ShellWord(word) + " end") == word + "\nend\n");
  }
}

}  // namespace
}  // namespace strata
