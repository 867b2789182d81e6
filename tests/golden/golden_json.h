// What `strata --json` printed, as text to compare: what is of the moment is masked by masks.txt.
#ifndef STRATA_TESTS_GOLDEN_GOLDEN_JSON_H_
#define STRATA_TESTS_GOLDEN_GOLDEN_JSON_H_

#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <utility>
#include <vector>

namespace strata::golden {

// One thread.
class Masks {
 public:
  // `folder`: where the commands run; its path is of the moment.
  explicit Masks(const std::string& folder);

  // `out` holds a line of JSON, or several. One is laid out over lines, of several each stays one.
  // Keys keep their order. Fails the test where a line is no JSON.
  std::string Apply(const std::string& command, const std::string& out) const;

 private:
  using Json = nlohmann::ordered_json;
  struct Rule {
    std::string command, key, kind;
  };

  // The kind of mask of a key, or "".
  std::string KindOf(const std::string& command, const std::string& key) const;
  Json Mask(const std::string& command, const std::string& key, const Json& value) const;
  std::string Replaced(std::string text) const;

  std::vector<std::string> folders_;  // all names of the folder
  std::vector<std::pair<std::regex, std::string>> replacements_;
  std::vector<Rule> rules_;
};

}  // namespace strata::golden

#endif  // STRATA_TESTS_GOLDEN_GOLDEN_JSON_H_
