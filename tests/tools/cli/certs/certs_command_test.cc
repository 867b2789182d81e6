// `strata certs ...` as a user types it: what it prints, its exit codes, and what it refuses.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/runtime/credentials/authority_files.h"
#include "proto/runtime/credentials/certificate_list.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/identity_files.h"
#include "tests/bad_input/user.h"
#include "tests/skip.h"
#include "tests/small_disk.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr char kCluster[] = "0123456789abcdef0011223344556677";

Json Ask(const User& user, const std::string& arguments) {
  const ProgramResult r = user.Strata(absl::StrCat("certs ", arguments, " --json"));
  INFO(arguments << "\n" << r.err);
  REQUIRE(r.exit_code == 0);
  CHECK(r.out.find('\n') == r.out.size() - 1);
  return Json::parse(r.out);
}

// One line on stderr, nothing on stdout, nothing of a key.
void CheckError(const User& user, const std::string& arguments, int exit_code,
                const std::vector<std::string>& says) {
  INFO(arguments);
  const ProgramResult r = user.Strata(absl::StrCat("certs ", arguments));
  CHECK(r.out.empty());
  CHECK_FALSE(absl::StrContains(r.err, "PRIVATE"));
  CHECK(r.err.find('\n') == r.err.size() - 1);
  CheckSays(r, exit_code, says);
}

TEST_CASE("certificates of a cluster, from init to revoke", "[certs]") {
  const User user;
  const Json ca = Ask(user, absl::StrCat("init --cluster ", kCluster));
  CHECK(ca["clusterId"] == kCluster);
  CHECK(ca["daysLeft"] == 3650);
  CHECK(ca["file"] == "./strata-certs/ca/ca.crt");
  const Json alpha = Ask(user, "issue server alpha");
  CHECK(alpha["role"] == "server");
  CHECK(alpha["daysLeft"] == 90);
  CHECK(alpha["file"] == "./strata-certs/server/alpha/current/tls.crt");
  CHECK(Ask(user, "issue reader bob --days 7")["daysLeft"] == 7);
  CHECK(absl::StrContains(user.Read("strata-certs/server/alpha/current/tls.crt"),
                          "BEGIN CERTIFICATE"));
  struct stat info;
  REQUIRE(stat(user.Path("strata-certs/server/alpha/current/tls.key").c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0600);

  const Json renewed = Ask(user, "renew server alpha --days 30");
  CHECK(renewed["daysLeft"] == 30);
  CHECK(renewed["serial"] != alpha["serial"]);
  Ask(user, "renew server alpha");
  const Json revoked = Ask(user, "revoke server alpha");
  CHECK(revoked["revoked"].size() == 3);
  CHECK(Ask(user, "revoke server alpha")["revokedEarlier"].size() == 3);
  const std::string last = Ask(user, "renew server alpha")["serial"];
  CHECK(Ask(user, absl::StrCat("revoke server alpha --serial ", last))["revoked"] ==
        Json::array({last}));

  const Json list = Ask(user, "show");
  REQUIRE(list["certificates"].size() == 2);
  CHECK(list["certificates"][0]["name"] == "alpha");
  CHECK(list["certificates"][0]["revoked"] == true);
  CHECK(list["certificates"][1]["name"] == "bob");
  CHECK(list["certificates"][1]["revoked"] == false);
  CHECK(list["problems"].empty());
  const ProgramResult table = user.Strata("certs show");
  CheckSays(table, 0, {"DAYS LEFT", kCluster, "server", "alpha", "O=strata,OU=server,CN=alpha"});
}

TEST_CASE("for people each command says what it made, and never a key", "[certs]") {
  const User user;
  std::string all;
  for (const char* arguments :
       {"init --dir c", "issue server alpha --dir c", "renew server alpha --dir c",
        "revoke server alpha --dir c", "revoke server alpha --dir c", "show --dir c"}) {
    const ProgramResult r = user.Strata(absl::StrCat("certs ", arguments));
    INFO(arguments << "\n" << r.err);
    CHECK(r.exit_code == 0);
    CHECK(r.err.empty());
    CHECK_FALSE(r.out.empty());
    all += r.out;
  }
  for (const char* part :
       {"made the CA of cluster", "issued server/alpha: c/server/alpha/current",
        "renewed server/alpha", "revoked server/alpha: serial number", "was revoked already"}) {
    INFO(part);
    CHECK(absl::StrContains(all, part));
  }
  CHECK_FALSE(absl::StrContains(all, "PRIVATE"));
  CHECK_FALSE(absl::StrContains(all, "BEGIN"));
}

TEST_CASE("what is wrong is told in one line, with the remedy", "[certs]") {
  const User user;
  CheckError(user, "show", 2, {"./strata-certs/ca/ca.crt", "strata certs init"});
  CheckError(user, "issue server alpha --dir none", 2, {"none", "strata certs init --dir none"});
  CheckError(user, "init --cluster 12", 2, {"'12' is no cluster id", "32 hexadecimal digits"});
  CheckError(user, "init --days 99999", 2, {"99999 days", "1 to 36500"});
  CHECK_FALSE(fs::exists(user.Path("strata-certs")));
  REQUIRE(user.Strata("certs init --days 40").exit_code == 0);
  CheckError(
      user, "init", 2,
      {"./strata-certs/ca is there already", "O=strata,OU=ca", "expires", "name another folder"});
  CheckError(user, "issue server a/b", 2, {"has '/' at byte 2"});
  CheckError(user, "issue server .a", 2, {"has '.' at byte 1"});
  CheckError(user, absl::StrCat("issue server ", std::string(300, 'n')), 2,
             {"has 300 bytes; at most 253"});
  CheckError(user, "issue server alpha", 2, {"would outlive it", "--days 39 or fewer"});
  CheckError(user, "renew server alpha --days 1", 2,
             {"has no certificate", "strata certs issue server alpha"});
  CheckError(user, "revoke server alpha", 2, {"no certificate of server/alpha", "--serial"});
  CheckError(user, "revoke server alpha --serial 7", 2, {"'7' is no serial number"});
  REQUIRE(user.Strata("certs issue server alpha --days 1").exit_code == 0);
  CheckError(user, "issue server alpha --days 1", 2,
             {"has a certificate already", "expires", "strata certs renew server alpha"});
  // What the command line itself refuses.
  for (const char* wrong : {"issue root alpha", "issue server", "issue server alpha --days 0",
                            "init --dir -", "issue server alpha --days many", "frobnicate"}) {
    INFO(wrong);
    CHECK(user.Strata(absl::StrCat("certs ", wrong)).exit_code == 2);
  }
  CheckSays(user.Strata("certs issue root alpha"), 2, {"role", "root"});
}

TEST_CASE("damage is exit code 1, and named by its file", "[certs]") {
  const User user;
  REQUIRE(user.Strata("certs init").exit_code == 0);
  REQUIRE(user.Strata("certs issue server alpha").exit_code == 0);
  REQUIRE(user.Strata("certs issue server beta").exit_code == 0);
  user.Write("strata-certs/server/beta/current/tls.crt", "hello");
  const ProgramResult shown = user.Strata("certs show");
  CHECK(shown.exit_code == 1);
  CHECK(absl::StrContains(shown.out, "alpha"));
  CHECK(absl::StrContains(shown.err, "server/beta/current/tls.crt"));
  // Another's key.
  fs::copy_file(user.Path("strata-certs/server/alpha/current/tls.key"),
                user.Path("strata-certs/ca/ca.key"), fs::copy_options::overwrite_existing);
  CheckError(user, "issue server gamma", 1,
             {"ca/ca.key", "does not belong to the certificate", "O=strata,OU=ca", "expires"});
  user.Write("strata-certs/ca/revoked", "hello");
  CheckError(user, "revoke server alpha", 1, {"ca/revoked", "damaged", "put it back"});
  user.Write("strata-certs/ca/ca.crt", "hello");
  CheckError(user, "show", 1, {"ca/ca.crt", "no certificate"});
}

TEST_CASE("every command refuses a folder whose list is missing", "[certs]") {
  const User user;
  REQUIRE(user.Strata("certs init").exit_code == 0);
  REQUIRE(user.Strata("certs issue server alpha").exit_code == 0);
  for (const char* list : {"issued", "revoked"}) {
    const std::string path = user.Path(absl::StrCat("strata-certs/ca/", list));
    fs::rename(path, user.Path("away"));
    const std::vector<std::string> says = {absl::StrCat("./strata-certs/ca/", list), "is missing",
                                           "put it back from a copy"};
    for (const char* arguments : {"issue server beta", "renew server alpha", "renew --all",
                                  "revoke server alpha", "rollover begin"}) {
      CheckError(user, arguments, 1, says);
    }
    CheckSays(user.Strata("certs show"), 1, says);
    CHECK_FALSE(fs::exists(path));
    fs::rename(user.Path("away"), path);
  }
  const Json list = Ask(user, "show");
  CHECK(list["certificates"].size() == 1);
  CHECK(list["authority"]["alsoTrusted"].empty());
}

TEST_CASE("what has expired is a problem, unless it was revoked", "[certs]") {
  const User user;
  const absl::Time past = absl::Now() - absl::Hours(24 * 50);
  const std::string dir = user.Path("strata-certs");
  REQUIRE(InitAuthority(dir, *ClusterId::Parse(kCluster), 100, past).ok());
  const auto issue = [&](const char* name, int days) {
    REQUIRE(IssueIdentity(dir, {.role = Role::kServer, .name = name, .days = days}, past).ok());
  };
  issue("alpha", 40);
  issue("beta", 90);
  issue("gamma", 40);
  REQUIRE(RevokeCertificates(dir, Role::kServer, "gamma", "", past).ok());
  const ProgramResult shown = user.Strata("certs show");
  CheckSays(shown, 1,
            {"server/alpha/current/tls.crt", "it has expired", "strata certs renew server alpha"});
  CHECK(shown.err.find('\n') == shown.err.size() - 1);
  const ProgramResult json = user.Strata("certs show --json");
  CHECK(json.exit_code == 1);
  CHECK(Json::parse(json.out)["problems"].size() == 1);
  CHECK(user.Strata("certs renew server alpha --days 10").exit_code == 0);
  CHECK(Ask(user, "show")["problems"].empty());
  // The CA, and what it says to do.
  const std::string old = user.Path("old");
  REQUIRE(InitAuthority(old, *ClusterId::Parse(kCluster), 10, past).ok());
  CheckSays(user.Strata("certs show --dir old"), 1,
            {"old/ca/ca.crt", "it has expired and signs no more", "strata certs init --cluster"});
}

TEST_CASE("a key that others may read, and a folder that is closed, are denied", "[certs]") {
  const User user;
  REQUIRE(user.Strata("certs init").exit_code == 0);
  REQUIRE(chmod(user.Path("strata-certs/ca/ca.key").c_str(), 0644) == 0);
  CheckError(user, "issue server alpha", 4, {"ca/ca.key", "mode 0644", "chmod 600"});
  REQUIRE(chmod(user.Path("strata-certs/ca/ca.key").c_str(), 0640) == 0);
  CheckError(user, "issue server alpha", 4, {"mode 0640", "chmod 600 ./strata-certs/ca/ca.key"});
  REQUIRE(chmod(user.Path("strata-certs/ca/ca.key").c_str(), 0600) == 0);
  REQUIRE(chmod(user.Path("strata-certs").c_str(), 0500) == 0);
  const auto denied = user.StrataWithoutPrivileges("certs issue server alpha");
  if (!denied.has_value()) STRATA_SKIP("this test may not give up root's rights");
  CheckSays(*denied, 4, {"strata-certs/server", "right to write there"});
}

TEST_CASE("a full disk is exit code 1, and leaves what was there", "[certs]") {
  const User user;
  SmallDisk disk(user.Path("small"), 128 << 10);
  if (!disk.mounted()) STRATA_SKIP(disk.reason());
  REQUIRE(user.Strata("certs init --dir small/certs").exit_code == 0);
  const std::string serial = Ask(user, "issue server alpha --dir small/certs")["serial"];
  disk.Fill();
  CheckError(user, "renew server alpha --dir small/certs", 1, {"small/certs", "free disk space"});
  CheckError(user, "revoke server alpha --dir small/certs", 1, {"ca/revoked", "free disk space"});
  const Json list = Ask(user, "show --dir small/certs");
  CHECK(list["certificates"][0]["serial"] == serial);
  CHECK(list["certificates"][0]["revoked"] == false);
  disk.Free();
  CHECK(Ask(user, "renew server alpha --dir small/certs")["serial"] != serial);
}

// The command of `strata certs` that an error names, as a user types it; an error has one.
std::string Remedy(const std::string& err) {
  const size_t at = err.rfind("strata certs ");
  REQUIRE(at != std::string::npos);
  const std::string rest = err.substr(at + std::string("strata ").size());
  return rest.substr(0, rest.find_first_of("),;\n"));
}

TEST_CASE("the command that an error names does what it says", "[certs]") {
  const User user;
  const auto follow = [&](const std::string& arguments, const std::string& expected) {
    const ProgramResult failed = user.Strata(absl::StrCat("certs ", arguments));
    INFO(arguments << "\n" << failed.err);
    CHECK(failed.exit_code != 0);
    const std::string remedy = Remedy(failed.err);
    CHECK(remedy == expected);
    const ProgramResult done = user.Strata(remedy);
    INFO(done.err);
    CHECK(done.exit_code == 0);
  };
  follow("show --dir c", "certs init --dir c");
  follow("issue server alpha --dir none", "certs init --dir none");
  follow("init --dir c", "certs init --dir c-new");
  follow("renew server alpha --dir c", "certs issue server alpha --dir c");
  follow("issue server alpha --dir c", "certs renew server alpha --dir c");
  follow("revoke server beta --dir c", "certs show --dir c");
  follow("revoke server alpha --serial 7 --dir c", "certs show --dir c");
  user.Write("c/server/alpha/current/tls.crt", "hello");
  follow("show --dir c", "certs renew server alpha --dir c");
  // Of another CA, and of another cluster.
  REQUIRE(user.Strata("certs issue reader r --dir none").exit_code == 0);
  fs::copy(user.Path("none/reader"), user.Path("c/reader"),
           fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  const ProgramResult foreign = user.Strata("certs show --dir c");
  CheckSays(foreign, 1, {"it is for reader/r of cluster", "move c/reader/r away"});
  fs::remove_all(user.Path("c/reader/r"));
  CHECK(user.Strata(Remedy(foreign.err)).exit_code == 0);
  // Its lists, and the CA itself.
  const std::string cluster = Ask(user, "show --dir c")["authority"]["clusterId"];
  const std::string anew = absl::StrCat("certs init --cluster ", cluster, " --dir ");
  REQUIRE(user.Strata("certs init --dir d --days 1 --cluster " + cluster).exit_code == 0);
  follow("issue server alpha --dir d", anew + "d-new");
  fs::remove_all(user.Path("c-new"));
  user.Write("c/ca/revoked", "hello");
  follow("revoke server alpha --dir c", anew + "c-new");
  fs::remove_all(user.Path("c-new"));
  fs::remove(user.Path("c/ca/issued"));
  follow("renew server alpha --dir c", anew + "c-new");
  fs::remove_all(user.Path("c/ca"));
  fs::remove_all(user.Path("c-new"));
  follow("init --dir c", "certs init --dir c-new");
}

// Commands of `strata certs` that a text names, as a user types them.
std::vector<std::string> CommandsIn(const std::string& text) {
  std::vector<std::string> commands;
  const std::string begin = "strata certs ";
  for (size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at + 1)) {
    const std::string rest = text.substr(at + std::string("strata ").size());
    commands.push_back(rest.substr(0, rest.find_first_of("),;\n")));
  }
  return commands;
}

TEST_CASE("the CA is changed by typing what each step prints", "[certs]") {
  const User user;
  REQUIRE(user.Strata("certs init --dir 'my certs'").exit_code == 0);
  REQUIRE(user.Strata("certs issue server alpha --dir 'my certs'").exit_code == 0);
  const std::string first = Ask(user, "show --dir 'my certs'")["authority"]["serial"];
  std::vector<std::string> typed = {"certs rollover begin --dir 'my certs'"};
  std::vector<std::string> all;
  while (!typed.empty()) {
    std::string said;
    for (const std::string& command : typed) {
      INFO(command);
      const ProgramResult r = user.Strata(command);
      INFO(r.err);
      REQUIRE(r.exit_code == 0);
      all.push_back(command);
      said = r.out;  // of the step, which is the last one
      if (all.size() == 1)
        CHECK(Ask(user, "show --dir 'my certs'")["authority"]["serial"] == first);
    }
    typed = CommandsIn(said);
  }
  CHECK(all == std::vector<std::string>{
                   "certs rollover begin --dir 'my certs'", "certs renew --all --dir 'my certs'",
                   "certs rollover switch --dir 'my certs'", "certs renew --all --dir 'my certs'",
                   "certs rollover end --dir 'my certs'", "certs renew --all --dir 'my certs'"});
  const Json last = Ask(user, "show --dir 'my certs'");
  CHECK(last["authority"]["serial"] != first);
  CHECK(last["authority"]["alsoTrusted"].empty());
  CHECK(last["certificates"].size() == 1);
  CHECK(last["problems"].empty());
}

TEST_CASE("all certificates are renewed at once, but of whom they are revoked", "[certs]") {
  const User user;
  REQUIRE(user.Strata("certs init").exit_code == 0);
  for (const char* name : {"alpha", "beta"}) {
    REQUIRE(user.Strata(absl::StrCat("certs issue server ", name)).exit_code == 0);
  }
  REQUIRE(user.Strata("certs revoke server beta").exit_code == 0);
  const Json all = Ask(user, "renew --all --days 30");
  REQUIRE(all["renewed"].size() == 1);
  CHECK(all["renewed"][0]["name"] == "alpha");
  CHECK(all["renewed"][0]["daysLeft"] == 30);
  CHECK(all["revoked"] == Json::array({"server/beta"}));
  for (const char* wrong : {"renew", "renew server", "renew server alpha --all"}) {
    CheckError(user, wrong, 2, {"renew wants a role and a name", "or --all alone"});
  }
}

TEST_CASE("who has the folder's lock is alone", "[certs]") {
  const User user;
  REQUIRE(user.Strata("certs init").exit_code == 0);
  const int other = open(user.Path("strata-certs").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  REQUIRE(other >= 0);
  REQUIRE(flock(other, LOCK_EX | LOCK_NB) == 0);
  for (const char* arguments :
       {"issue server alpha", "renew server alpha", "revoke server alpha", "init"}) {
    CheckError(user, arguments, 1, {"another `strata certs` changes ./strata-certs; try again"});
  }
  close(other);
  CHECK(user.Strata("certs issue server alpha").exit_code == 0);
}

TEST_CASE("of several that issue one name at once, one does, and the others say why not",
          "[certs]") {
  const User user;
  REQUIRE(user.Strata("certs init").exit_code == 0);
  const std::string program = ProgramPath("tools/cli/strata");
  const int status = std::system(
      absl::StrCat("cd '", user.folder(), "' && for i in 1 2 3 4 5; do ('", program,
                   "' certs issue worker w >out.$i 2>err.$i; echo $? >code.$i) & done; wait")
          .c_str());
  REQUIRE(WIFEXITED(status));
  size_t issued = 0;
  for (int i = 1; i <= 5; ++i) {
    const std::string code = user.Read(absl::StrCat("code.", i));
    const std::string err = user.Read(absl::StrCat("err.", i));
    INFO(err);
    issued += code == "0\n";
    if (code == "0\n") continue;
    const bool locked = absl::StrContains(err, "another `strata certs` changes ./strata-certs");
    CHECK(code == (locked ? "1\n" : "2\n"));
    CHECK((locked || absl::StrContains(err, "worker/w has a certificate already")));
  }
  CHECK(issued == 1);
  CHECK(Ask(user, "show")["certificates"].size() == 1);
  CHECK(Ask(user, "revoke worker w")["revoked"].size() == 1);
}

}  // namespace
}  // namespace strata
