// What a killed `strata train` leaves: the next run names it, and `strata clean` removes it.
#include <signal.h>
#include <sys/types.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/bad_input/user.h"
#include "tests/e2e/cluster/files_below.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr char kTrain[] = "train -f job.yaml --set spec.training.epochs=";

std::string ModelHash(const ProgramResult& r) {
  const size_t at = r.out.find("model hash");
  INFO(r.out << r.err);
  REQUIRE(at != std::string::npos);
  return r.out.substr(at, 43);
}

TEST_CASE("a killed run leaves a folder that is named, not used, and removed when one says so",
          "[e2e][identity]") {
  const User user;
  fs::create_directory(user.Path("tmp"));
  REQUIRE(setenv("TMPDIR", user.Path("tmp").c_str(), 1) == 0);
  user.Write("train.libfm", GoodLines(64));
  user.WriteJob("  storage: {directory: s}\n");
  const std::string alone =
      ModelHash(user.Strata(kTrain + std::string("2 --set spec.storage.directory=t")));
  user.Interrupted(kTrain + std::string("1000000"),
                   "Training: ", [](const User&, pid_t pid) { kill(pid, SIGKILL); });
  REQUIRE_FALSE(testing::FilesBelow(user.Path("s")).empty());
  REQUIRE_FALSE(testing::FilesBelow(user.Path("tmp")).empty());

  const ProgramResult next = user.Strata(kTrain + std::string("2"));
  CheckSays(next, 0,
            {"note: " + user.Path("s") + "/server-0/job-", "was left by a run",
             "note: " + user.Path("tmp") + "/strata-train-",
             "remove it with: strata clean " + user.Path("s")});
  CHECK(ModelHash(next) == alone);
  const size_t left = testing::FilesBelow(user.Path("s")).size();
  CHECK(left > 0);

  const auto look = nlohmann::json::parse(user.Strata("clean s tmp --dry-run --json").out);
  REQUIRE(look["folders"].size() == 2);
  CHECK(look["folders"][0]["bytes"].get<uint64_t>() > 0);
  CHECK(testing::FilesBelow(user.Path("s")).size() == left);
  CheckSays(user.Strata("clean s tmp"), 0,
            {"removed: s/server-0/job-", "removed: tmp/strata-train-", "2 folders, "});
  CHECK(testing::FilesBelow(user.Path("s")).empty());
  CHECK(testing::FilesBelow(user.Path("tmp")).empty());
  CheckSays(user.Strata("clean s tmp"), 0, {"0 folders, 0 bytes"});
  const ProgramResult clean = user.Strata(kTrain + std::string("2"));
  CHECK(clean.err.find("note: ") == std::string::npos);
  CHECK(testing::FilesBelow(user.Path("s")).empty());
  CHECK(testing::FilesBelow(user.Path("tmp")).empty());
  CheckSays(user.Strata("clean none"), 2, {"there is no folder none"});
}

}  // namespace
}  // namespace strata
