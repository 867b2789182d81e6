// tools/setup where something is missing: apt, root, packages, Debian itself. Every program that
// it calls is ours; nothing is installed.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

#include "tests/tools/scripts/script.h"

namespace strata::testing {
namespace {

// A machine whose packages are the lines of "packages"; as root or as an ordinary user.
class Machine {
 public:
  explicit Machine(bool root) : c({"setup"}) {
    // Who runs it is bash's own variable, which no environment sets.
    std::string script = c.Read("tools/setup");
    const size_t at = script.find("$EUID");
    REQUIRE(at != std::string::npos);
    c.Write("tools/setup", script.replace(at, 5, root ? "0" : "1000"));
    c.UseSystems({"awk", "basename", "bash", "cat", "dirname", "env", "grep", "mktemp", "rm",
                  "true", "uname"});
    c.Stub(
        "dpkg-query",
        "all=$'\\n'$(<packages)$'\\n'\n"
        "if [[ $all == *$'\\n'\"${@: -1}\"$'\\n'* ]]; then echo -n installed; else exit 1; fi\n");
    c.Stub("bazel", "if [[ $1 == --version ]]; then echo bazel 4.2.3; fi\n");
    Have("packages", All());
  }
  void Have(const std::string& file, const std::string& names) { c.Write(file, names); }
  void HaveApt(const std::string& script) { c.Stub("apt-get", "echo \"$@\" >>apt\n" + script); }
  // Every package of the script's list, a line each.
  std::string All() {
    const std::string script = c.Read("tools/setup");
    const size_t from = script.find("PACKAGES=(\n") + 11, to = script.find("\n)\n", from);
    std::string names, word;
    bool comment = false;
    for (const char ch : script.substr(from, to - from) + "\n") {
      if (ch == '#') comment = true;
      if (ch != ' ' && ch != '\n') {
        if (!comment) word += ch;
        continue;
      }
      if (!word.empty()) names += word + "\n";
      word.clear();
      if (ch == '\n') comment = false;
    }
    return names;
  }
  std::string Without(const std::string& package) {
    std::string names = All();
    const size_t at = names.find("\n" + package + "\n");
    REQUIRE(at != std::string::npos);
    return names.erase(at, package.size() + 1);
  }
  ScriptResult Run(const std::string& arguments = "") {
    return c.Run("bash tools/setup " + arguments);
  }
  Checkout c;
};

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("setup does nothing where all is there", "[scripts]") {
  Machine m(false);
  m.HaveApt("exit 1\n");
  const ScriptResult r = m.Run();
  INFO(r.err);
  CHECK(r.exit_code == 0);
  CHECK(Has(r.err, "packages are there\nsetup: bazel 4.2.3 works\n"));
  CHECK_FALSE(m.c.Exists("apt"));
}

TEST_CASE("setup says what to do where apt or root is missing", "[scripts]") {
  Machine m(false);
  m.Have("packages", m.Without("zlib1g-dev"));
  ScriptResult r = m.Run();
  CHECK(r.exit_code == 1);
  CHECK(Has(r.err,
            "this system has no apt-get. Install what these Debian 12 packages hold, then "
            "retry:\n  zlib1g-dev\n"));

  m.HaveApt("");
  r = m.Run();  // no sudo at all
  CHECK(r.exit_code == 1);
  CHECK(Has(r.err,
            "1 packages are missing, and installing them needs root. Run:\n  sudo apt-get "
            "install -y --no-install-recommends zlib1g-dev\n"));
  m.c.Stub("sudo", "exit 1\n");  // one that wants a password
  r = m.Run();
  CHECK(r.exit_code == 1);
  CHECK(Has(r.err, "needs root. Run:\n"));
  CHECK_FALSE(m.c.Exists("apt"));

  m.c.Remove("bin/dpkg-query");
  r = m.Run();
  CHECK(r.exit_code == 1);
  CHECK(Has(r.err, "this system is not Debian; install what these Debian 12 packages hold: "));
}

TEST_CASE("setup installs what is missing, once", "[scripts]") {
  for (const bool root : {true, false}) {
    INFO("root " << root);
    Machine m(root);
    m.Have("packages", m.Without("zlib1g-dev"));
    m.HaveApt("echo zlib1g-dev >>packages\n");
    m.c.Stub("sudo", "echo sudo >>apt; shift; exec \"$@\"\n");
    ScriptResult r = m.Run();
    INFO(r.err);
    CHECK(r.exit_code == 0);
    CHECK(Has(r.err, "setup: installing zlib1g-dev\n"));
    const std::string install = "install -y -q --no-install-recommends zlib1g-dev\n";
    // Asked whether it may, then used.
    CHECK(m.c.Read("apt") == (root ? install : "sudo\nsudo\n" + install));
    r = m.Run();
    CHECK(r.exit_code == 0);
    CHECK(m.c.Read("apt") == (root ? install : "sudo\nsudo\n" + install));
  }
}

TEST_CASE("setup fetches package lists only where they are needed, and tells failures",
          "[scripts]") {
  Machine m(true);
  m.Have("packages", m.Without("zlib1g-dev"));
  // Knows the package only after an update.
  m.HaveApt(
      "if [[ $1 == update ]]; then echo >known; elif [[ -e known ]]; then echo zlib1g-dev "
      ">>packages; else exit 100; fi\n");
  ScriptResult r = m.Run();
  INFO(r.err);
  CHECK(r.exit_code == 0);
  CHECK(Has(m.c.Read("apt"), "update -q\n"));

  m.Have("packages", m.Without("zlib1g-dev"));
  m.HaveApt("exit 100\n");
  r = m.Run();
  CHECK(r.exit_code == 1);
  CHECK(Has(r.err, "setup: apt-get could not install them"));
  m.HaveApt("");  // says yes and does nothing
  r = m.Run();
  CHECK(r.exit_code == 1);
  CHECK(Has(r.err, "still missing after the installation: zlib1g-dev"));

  m.Have("packages", m.All());
  m.c.Stub("bazel", "echo no Java >&2; exit 1\n");
  r = m.Run();
  CHECK(r.exit_code == 1);
  CHECK(Has(r.err, "bazel does not start: no Java"));
  CHECK(m.Run("--frce").exit_code == 2);
  const ScriptResult help = m.Run("--help");
  CHECK(help.exit_code == 0);
  CHECK(Has(help.out, "Installs what Strata needs"));
}

}  // namespace
}  // namespace strata::testing
