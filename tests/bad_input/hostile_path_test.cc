// Paths that no program may end of: the job fails and says why, and every process is the one that
// it was before. tests/e2e/hostile_paths_test.cc has them all, in one process.
#include <sys/types.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/bad_input/user.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

std::map<std::string, pid_t> Processes(const User& user) {
  std::map<std::string, pid_t> found;
  for (const char* name : {"scheduler", "server-0", "worker-0"}) found[name] = user.PidOf(name);
  return found;
}

TEST_CASE("a hostile spec.storage.directory fails its job and ends no process",
          "[bad_input][hostile]") {
  User user;
  user.Up("--servers 1 --workers 1");
  user.Write("train.libfm", GoodLines(50));
  user.WriteJob();
  const std::map<std::string, pid_t> before = Processes(user);
  fs::create_symlink(user.Path("loop"), user.Path("loop"));
  fs::create_directory(user.Path("taken"));
  user.Write("taken/server-0", "in the way\n");
  const std::string many(300, 'n');
  for (const std::string& bad :
       {many, std::string("loop"), std::string("taken"), std::string("taken/server-0")}) {
    CheckSays(
        user.Strata("submit --wait --timeout 30 -f job.yaml --set spec.storage.directory=" + bad),
        1, {"job job failed: ", "spec.storage.directory", user.Path(bad)});
    CHECK(Processes(user) == before);
  }
  CHECK(user.Strata("submit --wait -f job.yaml").exit_code == 0);
  CHECK(Processes(user) == before);
}

TEST_CASE("--data-root keeps the jobs of a cluster below it, by whatever links",
          "[bad_input][data_root]") {
  User user;
  for (const char* name : {"jobs", "more", "other", "tmp"}) fs::create_directory(user.Path(name));
  REQUIRE(setenv("TMPDIR", user.Path("tmp").c_str(), 1) == 0);  // which processes keep, too
  fs::create_directory_symlink(user.Path("other"), user.Path("jobs/out"));
  CheckSays(user.Strata("up --dir run --bin-dir bin --data-root jobs --data-root none"), 2,
            {"--data-root none is no folder that is there"});
  user.Up("--servers 1 --workers 1 --data-root jobs --data-root more");
  user.WriteJob();
  for (const char* folder : {"jobs", "more", "other"}) {
    user.Write(std::string(folder) + "/train.libfm", GoodLines(50));
  }
  const std::string other = user.Path("other");
  const auto run = [&](const std::string& verb, const std::string& more) {
    return user.Strata(verb + " -f job.yaml --set spec.data.train=jobs/train.libfm --set " + more);
  };
  for (const std::string verb : {"submit --wait", "train --data-root jobs --data-root more"}) {
    for (const std::string name : {"other", "jobs/out"}) {
      CheckSays(run(verb, "spec.data.train=" + name + "/train.libfm"), 1,
                {"job job failed: ", "spec.data.train", user.Path(name), other + "/train.libfm",
                 "lies outside of where jobs may read and write", user.Path("jobs")});
      CheckSays(run(verb, "spec.storage.directory=" + name + "/s"), 1,
                {"job job failed: ", "spec.storage.directory", other + "/s", "--data-root"});
      CheckSays(run(verb, "spec.output.metrics=" + name + "/m"), 1,
                {"job job failed: ", "spec.output.metrics", other + "/m", "--data-root"});
      CheckSays(run(verb, "spec.checkpoint.directory=" + name + "/c"), 4,
                {"spec.checkpoint.directory", other + "/c", "--data-root"});
      CheckSays(run(verb, "spec.model.initFrom=" + name + "/c"), 4,
                {"spec.model.initFrom", other + "/c", "--data-root"});
    }
    CHECK(run(verb, "spec.checkpoint.directory=more/" + verb.substr(0, 5)).exit_code == 0);
  }
  for (const char* made : {"s", "m", "c"}) CHECK_FALSE(fs::exists(other + "/" + made));
  // What lies in a folder that the job may name is followed no further either.
  fs::create_directory(user.Path("jobs/removed"));
  const std::string file = "/removed-00001-000000000000-00000.strata";
  user.Write("other/precious", "");
  fs::create_symlink(other + "/precious", user.Path("jobs/removed") + file);
  for (const std::string verb : {"submit --wait", "train --data-root jobs --data-root more"}) {
    CheckSays(user.Strata(verb + " -f job.yaml --set spec.data.train=jobs/train.libfm"
                                 " --set spec.output.removed=jobs/removed"
                                 " --set spec.lifeCycle.removal.everySteps=1"
                                 " --set spec.lifeCycle.removal.ttlSteps=1"),
              1, {"job job failed: ", "spec.output.removed", other + "/precious", "--data-root"});
  }
}

}  // namespace
}  // namespace strata
