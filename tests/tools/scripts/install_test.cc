// tools/install into a folder of the test's own, with the real `strata`.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/tools/scripts/script.h"

namespace strata::testing {
namespace {

namespace fs = std::filesystem;

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("install links the programs and writes completion and manual", "[scripts]") {
  Checkout c({"install"});
  c.UseSystems({"awk", "basename", "bash", "cat", "dirname", "find", "ln", "mkdir", "mktemp", "mv",
                "readlink", "rm"});
  c.Stub("bazel", "echo \"$@\" >>builds\n");
  for (const char* daemon : {"scheduler", "server", "worker"}) {
    c.Write(std::string(".bazel-bin/") + daemon + "/strata-" + daemon, "x");
  }
  fs::create_directories(c.root() + "/.bazel-bin/tools/cli");
  fs::create_symlink(std::string(std::getenv("TEST_SRCDIR")) + "/strata/tools/cli/strata",
                     c.root() + "/.bazel-bin/tools/cli/strata");

  ScriptResult r = c.Run("bash tools/install --prefix my/place");
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  CHECK(Has(c.Read("builds"), "//tools/cli:strata //scheduler:strata-scheduler"));
  CHECK(fs::read_symlink(c.root() + "/my/place/bin/strata") ==
        c.root() + "/.bazel-bin/tools/cli/strata");
  for (const char* daemon : {"scheduler", "server", "worker"}) {
    CHECK(c.Read(std::string("my/place/bin/strata-") + daemon) == "x");
  }
  CHECK(Has(c.Read("my/place/share/bash-completion/completions/strata"), "complete "));
  CHECK(Has(c.Read("my/place/share/zsh/site-functions/_strata"), "#compdef strata"));
  CHECK(Has(c.Read("my/place/share/fish/vendor_completions.d/strata.fish"), "complete -c strata"));
  CHECK(Has(c.Read("my/place/share/man/man1/strata-train.1"), ".TH"));
  CHECK(Has(c.Read("my/place/share/man/man5/strata-job.5"), ".TH"));
  CHECK(Has(r.err, "is not in PATH; add it with: export PATH="));

  // Again: links that are there stay, one that points elsewhere is set anew.
  fs::remove(c.root() + "/my/place/bin/strata-worker");
  fs::create_symlink("/nowhere", c.root() + "/my/place/bin/strata-worker");
  r = c.Run("bash tools/install --prefix=my/place");
  CHECK(r.exit_code == 0);
  CHECK(Has(r.err, "install: my/place/bin/strata is there\n"));
  CHECK(c.Read("my/place/bin/strata-worker") == "x");

  // What is no link of ours is not touched.
  fs::remove(c.root() + "/my/place/bin/strata-server");
  c.Write("my/place/bin/strata-server", "mine");
  r = c.Run("bash tools/install --prefix my/place");
  CHECK(r.exit_code == 1);
  CHECK(Has(r.err, "my/place/bin/strata-server is there and no link of ours"));
  CHECK(c.Read("my/place/bin/strata-server") == "mine");

  CHECK(c.Run("bash tools/install --prefix").exit_code == 2);
  CHECK(c.Run("bash tools/install there").exit_code == 2);
  CHECK(Has(c.Run("bash tools/install --help").out, "tools/install [--prefix DIR]"));
  c.Stub("bazel", "exit 1\n");
  r = c.Run("bash tools/install");
  CHECK(r.exit_code == 1);
  CHECK(Has(r.err, "the build failed; tools/setup installs what it needs"));
}

}  // namespace
}  // namespace strata::testing
