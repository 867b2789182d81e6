// A cluster of `strata up` with certificates: who is let in, what the user sees, and that processes
// that end come back as who they were.
#include <signal.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/bad_input/user.h"
#include "tests/e2e/cluster/process_cluster.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

Json Ask(const User& user, const std::string& command) {
  const ProgramResult r = user.Strata(absl::StrCat(command, " --json"));
  INFO(command << "\n" << r.err);
  REQUIRE(r.exit_code == 0);
  return Json::parse(r.out);
}

// The folder of the user's certificate, as the context has it.
std::string Mine(const User& user) { return Ask(user, "context list")["contexts"][0]["certs"]; }

// Process ids of nodes that are up, by name.
std::map<std::string, int> Pids(const User& user) {
  std::map<std::string, int> pids;
  const Json status = Ask(user, "status");
  for (const Json& node : status["cluster"]["nodes"]) {
    if (node["alive"]) pids[node["name"]] = node["pid"];
  }
  return pids;
}

TEST_CASE("up makes certificates and a context, and lets in its own alone", "[up]") {
  User user;
  user.Up("--servers 1 --workers 1");
  const Json context = Ask(user, "context list")["contexts"].at(0);
  CHECK(context["name"] == "run");
  CHECK(context["current"] == true);
  CHECK(context["insecure"] == false);
  CHECK(context["folder"] == user.Path("run"));
  CHECK(context["daysLeft"] == 90);
  const Json certificates = Ask(user, "certs show --dir run/certs");
  CHECK(certificates["certificates"].size() == 4);
  CHECK(Ask(user, "status")["cluster"]["insecure"] == false);
  CHECK_FALSE(absl::StrContains(user.Strata("status").out, "insecure"));
  // Metrics and rows go by the same certificates.
  const Json top = Ask(user, "top --once --interval 0.1");
  CHECK(top["processes"].size() == 2);
  for (const Json& process : top["processes"]) CHECK(process["memoryBytes"].is_number());
  const std::string address = absl::StrCat("list --scheduler ", user.Scheduler());
  CHECK(user.Strata(absl::StrCat(address, " --certs ", Mine(user))).exit_code == 0);
  CheckSays(user.Strata(address), 4, {"asks who calls; show your certificate", "(--scheduler"});
  REQUIRE(user.Strata("certs init --dir other").exit_code == 0);
  REQUIRE(user.Strata("certs issue operator eve --dir other").exit_code == 0);
  CheckSays(user.Strata(absl::StrCat(address, " --certs other/operator/eve/current")), 4,
            {"the scheduler at ", "O=strata,OU=scheduler,CN=scheduler", "expires",
             "O=strata,OU=operator,CN=eve", "/tls.crt"});
  CheckSays(user.Strata(absl::StrCat(address, " --certs none")), 4, {"none/tls.crt"});
  // A scheduler that is stopped speaks TLS, and says nothing.
  REQUIRE(kill(user.PidOf("scheduler"), SIGSTOP) == 0);
  CheckSays(user.Strata("list"), 3, {"takes connections and has said nothing", "it is stopped"});
  REQUIRE(kill(user.PidOf("scheduler"), SIGCONT) == 0);
  REQUIRE(user.Strata("down").exit_code == 0);
  CHECK(Ask(user, "context list")["contexts"].empty());
}

TEST_CASE("a process that is killed comes back under its identity, and jobs go on", "[up]") {
  User user;
  user.Up("--servers 1 --workers 1");
  const auto before = Pids(user);
  REQUIRE(before.size() == 2);
  for (const auto& [name, pid] : before) REQUIRE(kill(pid, SIGKILL) == 0);
  REQUIRE(kill(user.PidOf("scheduler"), SIGKILL) == 0);
  testing::AwaitThat("all are back", [&] {
    const ProgramResult r = user.Strata("status --json");
    if (r.exit_code != 0) return false;
    int back = 0;
    const Json status = Json::parse(r.out);
    for (const Json& node : status["cluster"]["nodes"]) {
      back += node["alive"] && before.at(node["name"]) != node["pid"] ? 1 : 0;
    }
    return back == 2;
  });
  user.Write("train.libfm", GoodLines(50));
  user.WriteJob();
  CHECK(user.Strata("submit -f job.yaml --wait").exit_code == 0);
}

TEST_CASE("servers of up are in the zones that are named, one for each", "[up]") {
  User user;
  user.Up("--servers 2 --workers 1 --zones rack1,rack2");
  const auto zones = [&user] {
    std::map<std::string, std::string> found;
    const Json status = Ask(user, "nodes");
    for (const Json& node : status["nodes"]) {
      if (node["zone"].is_string()) found[node["name"]] = node["zone"];
    }
    return found;
  };
  const std::map<std::string, std::string> named = {{"server-0", "rack1"}, {"server-1", "rack2"}};
  CHECK(zones() == named);
  // What dies comes back where it was.
  const int pid = user.PidOf("server-1");
  REQUIRE(kill(pid, SIGKILL) == 0);
  testing::AwaitThat("server-1 is back", [&] { return Pids(user)["server-1"] != pid; });
  CHECK(zones() == named);
  CheckSays(user.Strata("up --dir more --servers 2 --zones rack1"), 2,
            {"--zones: 1 for 2 servers; name one for each, or no list"});
  CheckSays(user.Strata("up --dir more --servers 2 --zones rack1,,"), 2, {"--zones"});
}

TEST_CASE("--insecure does without, and says so", "[up]") {
  User user;
  const ProgramResult up = user.Up("--servers 1 --workers 1 --insecure");
  CHECK(absl::StrContains(up.out, "This cluster is insecure"));
  CHECK_FALSE(fs::exists(user.Path("run/certs")));
  CheckSays(user.Strata("status"), 0, {"This cluster is insecure"});
  CHECK(Ask(user, "status")["cluster"]["insecure"] == true);
  CHECK(Ask(user, "context list")["contexts"][0]["insecure"] == true);
  REQUIRE(user.Strata("certs init --dir c").exit_code == 0);
  REQUIRE(user.Strata("certs issue operator eve --dir c").exit_code == 0);
  CheckSays(user.Strata(absl::StrCat("list --certs c/operator/eve/current")), 4,
            {"speaks no TLS", "context 'run' of ",
             absl::StrCat("give the command --scheduler ", user.Scheduler(), " --insecure")});
  CHECK(user.Strata("list --insecure").exit_code == 0);
  CHECK(user.Strata(absl::StrCat("list --scheduler ", user.Scheduler(), " --insecure")).exit_code ==
        0);
  REQUIRE(user.Strata("down").exit_code == 0);
  // The same folder with certificates: its nodes remember their cluster.
  CHECK(user.Strata("up --dir run --servers 1 --workers 1 --bin-dir bin").exit_code == 0);
  CHECK(Ask(user, "status")["cluster"]["insecure"] == false);
}

TEST_CASE("of several that start one cluster at once, one does, and the others say so", "[up]") {
  User user;
  user.LinkPrograms();
  const std::string up =
      absl::StrCat("HOME='", user.folder(), "' XDG_CONFIG_HOME= '", ProgramPath("tools/cli/strata"),
                   "' up --dir run --servers 1 --workers 1 --bin-dir bin");
  const std::string each = absl::StrCat("(", up, " >out.$i 2>err.$i; echo $? >code.$i) & ");
  const int status = std::system(
      absl::StrCat("cd '", user.folder(), "' && for i in 1 2 3 4; do ", each, "done; wait")
          .c_str());
  REQUIRE(status == 0);
  int started = 0;
  for (int i = 1; i <= 4; ++i) {
    const std::string code = user.Read(absl::StrCat("code.", i));
    const std::string err = user.Read(absl::StrCat("err.", i));
    INFO(err);
    started += code == "0\n";
    if (code == "0\n") continue;
    CHECK(code == "2\n");
    CHECK((absl::StrContains(err, "a cluster is starting in " + user.Path("run")) ||
           absl::StrContains(err, "a cluster is running in " + user.Path("run"))));
  }
  CHECK(started == 1);
  CHECK(Pids(user).size() == 2);
  CHECK(user.Strata("down").exit_code == 0);
}

TEST_CASE("down stops the cluster that is here, and gives the context before it back", "[up]") {
  User user;
  REQUIRE(user.Strata("context add prod --scheduler 127.0.0.1:9 --insecure").exit_code == 0);
  const auto current = [&user] { return Ask(user, "context list")["current"]; };
  user.Up("--servers 1 --workers 1");
  CHECK(current() == "run");
  const ProgramResult here = user.Strata("up --servers 1 --workers 1 --bin-dir bin");
  CheckSays(here, 0, {"Stop: strata down\n"});
  CHECK(current() == "strata-run");
  // The other one is the last of `up` again.
  REQUIRE(user.Strata("context use run").exit_code == 0);
  const Json first = Ask(user, "down");
  CHECK(first["dir"] == user.Path("strata-run"));
  CHECK(current() == "run");
  const Json second = Ask(user, "down");
  CHECK(second["dir"] == user.Path("run"));
  CHECK(current() == "prod");
  const ProgramResult again = user.Strata("up --dir run --servers 1 --workers 1 --bin-dir bin");
  CheckSays(again, 0, {absl::StrCat("Stop: strata down --dir ", user.Path("run"), "\n")});
  CHECK(user.Strata("down").exit_code == 0);
  CHECK(current() == "prod");
}

TEST_CASE("a scheduler whose folder is removed acknowledges nothing, and goes on when it is back",
          "[up]") {
  User user;
  user.Up("--servers 1 --workers 1");
  user.Write("train.libfm", GoodLines(50));
  user.WriteJob();
  fs::rename(user.Path("run/scheduler"), user.Path("away"));
  CheckSays(user.Strata("submit -f job.yaml"), 3,
            {"cannot record its state", user.Path("run/scheduler/metadata"), "removed or moved",
             "--restored"});
  // What it was asked for and has not told as done goes on then.
  fs::rename(user.Path("away"), user.Path("run/scheduler"));
  CheckSays(user.Strata("status job --watch"), 0, {"succeeded"});
}

TEST_CASE("a folder of an earlier version is refused with the command that mends it", "[up]") {
  User user;
  user.Up("--servers 1 --workers 1 --insecure");
  REQUIRE(user.Strata("down").exit_code == 0);
  // So were folders of metadata made once.
  fs::permissions(user.Path("run/scheduler/metadata"), fs::perms(0755));
  const std::string up = "up --dir run --servers 1 --workers 1 --bin-dir bin";
  const ProgramResult refused = user.Strata(up);
  const std::string mend = absl::StrCat("chmod 700 ", user.Path("run/scheduler/metadata"));
  CheckSays(refused, refused.exit_code,
            {"is open to others, and holds the key that signs session credentials", mend});
  CHECK(refused.exit_code != 0);
  REQUIRE(std::system(mend.c_str()) == 0);
  CHECK(user.Strata(up).exit_code == 0);
  CHECK(Ask(user, "status")["cluster"]["nodes"].size() == 2);
}

}  // namespace
}  // namespace strata
