// `strata context ...` as a user types it, and commands that find the cluster by it.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/bad_input/user.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

Json Ask(const User& user, const std::string& arguments) {
  const ProgramResult r = user.Strata(absl::StrCat("context ", arguments, " --json"));
  INFO(arguments << "\n" << r.err);
  REQUIRE(r.exit_code == 0);
  CHECK(r.out.find('\n') == r.out.size() - 1);
  return Json::parse(r.out);
}

// One line on stderr, nothing on stdout.
void CheckError(const User& user, const std::string& arguments, int exit_code,
                const std::vector<std::string>& says) {
  INFO(arguments);
  const ProgramResult r = user.Strata(arguments);
  CHECK(r.out.empty());
  CHECK(r.err.find('\n') == r.err.size() - 1);
  CheckSays(r, exit_code, says);
}

// A user with the certificate of an operator.
void MakeCertificates(const User& user) {
  REQUIRE(user.Strata("certs init").exit_code == 0);
  REQUIRE(user.Strata("certs issue operator ann").exit_code == 0);
}
constexpr char kAnn[] = "strata-certs/operator/ann/current";

TEST_CASE("contexts, from add to remove", "[context]") {
  const User user;
  MakeCertificates(user);
  CHECK(Ask(user, "list")["contexts"].empty());
  const Json prod = Ask(user, absl::StrCat("add prod --scheduler 10.0.0.5:7400 --certs ", kAnn));
  CHECK(prod["current"] == true);
  // The link, so that a renewal is followed; from wherever a command is typed.
  CHECK(prod["certs"] == user.Path(kAnn));
  CHECK(prod["subject"] == "O=strata,OU=operator,CN=ann");
  CHECK(prod["daysLeft"] == 90);
  CHECK(Ask(user, "add lab --scheduler lab:7400 --insecure")["current"] == false);
  CHECK(Ask(user, "list")["current"] == "prod");
  CHECK(Ask(user, "use lab")["current"] == true);
  const Json list = Ask(user, "list");
  CHECK(list["current"] == "lab");
  CHECK(list["contexts"].size() == 2);
  CheckSays(user.Strata("context list"), 0,
            {"DAYS LEFT", "prod", "10.0.0.5:7400", "O=strata,OU=operator,CN=ann", "insecure"});
  struct stat info;
  REQUIRE(stat(user.Path(".config/strata/contexts.yaml").c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0600);
  CHECK(Ask(user, "remove lab")["name"] == "lab");
  CHECK(Ask(user, "list")["current"].is_null());
  CheckSays(user.Strata("context use prod"), 0, {"context 'prod' is the current one"});
  CheckSays(user.Strata("context remove prod"), 0, {"no context is the current one now"});
  CHECK_FALSE(absl::StrContains(user.Read(".config/strata/contexts.yaml"), "prod"));
}

TEST_CASE("what cannot be a context is refused, and none is made", "[context]") {
  const User user;
  MakeCertificates(user);
  const auto add = [](const std::string& rest) { return absl::StrCat("context add ", rest); };
  CheckError(user, add("a/b --scheduler h:1 --insecure"), 2, {"has '/' at byte 2"});
  CheckError(user, add("a --scheduler h --insecure"), 2, {"\"h\" has no port"});
  CheckError(user, add("a --scheduler h:1"), 2, {"--certs DIR", "--insecure"});
  CheckError(user, add("a --scheduler h:1 --certs none"), 4, {user.Path("none/tls.crt")});
  CheckError(user, add("a --scheduler h:1 --certs strata-certs/operator/ann"), 4,
             {"did you mean", kAnn});
  REQUIRE(chmod(user.Path(absl::StrCat(kAnn, "/tls.key")).c_str(), 0644) == 0);
  CheckError(user, add(absl::StrCat("a --scheduler h:1 --certs ", kAnn)), 4, {"chmod 600"});
  CHECK_FALSE(fs::exists(user.Path(".config/strata/contexts.yaml")));
  CheckError(user, "context use a", 2, {"there is no context 'a'; there are: none"});
  CheckError(user, "context remove a", 2, {"there is no context 'a'"});
  const ProgramResult both =
      user.Strata(add(absl::StrCat("a --scheduler h:1 --insecure --certs ", kAnn)));
  CheckSays(both, 2, {"excludes"});
}

TEST_CASE("a certificate that is gone is told in the list, which is shown", "[context]") {
  const User user;
  MakeCertificates(user);
  Ask(user, absl::StrCat("add prod --scheduler h:1 --certs ", kAnn));
  Ask(user, "add lab --scheduler lab:7400 --insecure");
  fs::remove_all(user.Path("strata-certs"));
  const ProgramResult list = user.Strata("context list");
  CheckSays(list, 0, {"unusable", "lab"});
  CHECK(absl::StrContains(list.err, absl::StrCat("context 'prod': ", user.Path(kAnn))));
  CHECK(absl::StrContains(std::string(Ask(user, "list")["contexts"][0]["problem"]), "tls.crt"));
}

TEST_CASE("two that add at once both have their context", "[context]") {
  const User user;
  // Not the first and not after another: what they print lies in files of their own.
  const auto add = [&](const char* name) {
    const std::string command =
        absl::StrCat("cd '", user.folder(), "' && HOME='", user.folder(), "' XDG_CONFIG_HOME= '",
                     ProgramPath("tools/cli/strata"), "' context add ", name,
                     " --scheduler h:1 --insecure >", name, ".out 2>&1");
    return std::system(command.c_str());
  };
  int one = -1, two = -1;
  std::thread other([&] { one = add("one"); });
  two = add("two");
  other.join();
  CHECK(one == 0);
  CHECK(two == 0);
  CHECK(Ask(user, "list")["contexts"].size() == 2);
}

TEST_CASE("commands say which choice was wrong", "[context]") {
  const User user;
  const std::string file = user.Path(".config/strata/contexts.yaml");
  CheckError(user, "list", 2, {"no cluster is known here"});
  Ask(user, "add gone --scheduler 127.0.0.1:1 --insecure");
  Ask(user, "add far --scheduler 127.0.0.1:2 --insecure");
  CheckError(user, "list", 3,
             {"no scheduler answers at 127.0.0.1:1", absl::StrCat("context 'gone' of ", file)});
  CheckError(user, "nodes --scheduler 127.0.0.1:3", 3, {"at 127.0.0.1:3", "(--scheduler"});
  CheckError(user, "events --context near", 2, {"--context near", "there are: gone, far"});
  CheckSays(user.Strata("list --context far --scheduler h:1"), 2, {"excludes"});
  user.Write(".config/strata/contexts.yaml", "contexts: [{name: a, adress: h:1}]\n");
  REQUIRE(chmod(file.c_str(), 0600) == 0);
  CheckError(user, "list", 2, {file, ":1:22: contexts[0]: has no field 'adress'"});
  REQUIRE(chmod(file.c_str(), 0644) == 0);
  CheckError(user, "list", 4, {file, "open to others (mode 0644)", "chmod 600"});
}

}  // namespace
}  // namespace strata
