// What each command of `strata` that needs no cluster prints with --json: keys, their order, and
// all that is not of the moment.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <set>
#include <string>

#include "tests/bad_input/user.h"
#include "tests/golden/golden_commands.h"

namespace strata::golden {
namespace {

TEST_CASE("commands without a cluster print the JSON that they always printed", "[golden]") {
  CheckCommands("commands");
}

// The name of its manual page: "strata-checkpoint-list" for "checkpoint list ck --top 2".
std::string PageOf(const std::string& typed, const std::set<std::string>& pages) {
  std::string page = "strata-" + typed;
  std::replace(page.begin(), page.end(), ' ', '-');
  std::string longest;
  for (const std::string& name : pages) {
    if ((page + "-").starts_with(name + "-") && name.size() > longest.size()) longest = name;
  }
  return longest;
}

TEST_CASE("every command that has --json is in a table", "[golden]") {
  User user;
  REQUIRE(user.Strata("man --output pages").exit_code == 0);
  std::set<std::string> pages, with_json, typed;
  for (const auto& entry : std::filesystem::directory_iterator(user.Path("pages"))) {
    const std::string name = entry.path().stem().string();
    pages.insert(name);
    if (user.Read("pages/" + entry.path().filename().string()).find("json\\fR") !=
        std::string::npos) {
      with_json.insert(name);
    }
  }
  REQUIRE(with_json.size() > 20);
  for (const std::string& command : TypedCommands()) typed.insert(PageOf(command, pages));
  for (const std::string& name : with_json) {
    INFO(name);
    CHECK(typed.contains(name));
  }
}

}  // namespace
}  // namespace strata::golden
