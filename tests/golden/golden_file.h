// Expected values in a committed text file: entries "== NAME" and lines of text.
#ifndef STRATA_TESTS_GOLDEN_GOLDEN_FILE_H_
#define STRATA_TESTS_GOLDEN_GOLDEN_FILE_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace strata::golden {

// Path of a committed file of this folder.
std::string SourcePath(const std::string& name);

std::string ReadWhole(const std::string& path);

// FNV-1a of 64 bits, as 16 hexadecimal digits.
std::string Fingerprint(const std::string& bytes);

// A test compares what it gets with expected/NAME.txt:
//   GoldenFile golden("jobs");
//   golden.Check("lr", got);   // for each
//   golden.Finish();
// Where the variable STRATA_WRITE_GOLDENS names this folder in a source tree, Finish writes the
// file anew instead (tests/golden/write). One thread.
class GoldenFile {
 public:
  explicit GoldenFile(const std::string& name);

  // A failed check names the entry, and says what was expected and what came. Each name once.
  void Check(const std::string& name, const std::string& got);

  // Fails for each expected entry that was not checked. Last call.
  void Finish();

 private:
  const std::string file_;
  std::map<std::string, std::string> expected_;
  std::vector<std::pair<std::string, std::string>> got_;
  std::set<std::string> checked_;
};

}  // namespace strata::golden

#endif  // STRATA_TESTS_GOLDEN_GOLDEN_FILE_H_
