#include "tools/cli/cluster/last_words.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <string>

#include "tests/temp_folder.h"
#include "tools/cli/cluster/cluster_dir.h"

namespace strata {
namespace {

TEST_CASE("the process that ended most often says why, of this start alone", "[last_words]") {
  const TempFolder folder;
  const ClusterDir dir(folder.path() + "/run");
  CHECK(SizesOfLogs(dir).empty());
  REQUIRE(dir.Make().ok());
  const auto append = [&](const char* process, const char* line) {
    std::ofstream(dir.LogPath(process), std::ios::app) << line << "\n";
  };
  append("server-0", "port taken, last week");
  const LogSizes before = SizesOfLogs(dir);
  CHECK(before.at("server-0") == 22);

  ClusterState state;
  state.processes = {{"scheduler", {}, 0, ""}, {"server-0", {}, 0, ""}, {"worker-0", {}, 0, ""}};
  CHECK(WhyNotUp(dir, state, before).empty());
  append("server-0", "no GPU");
  append("worker-0", "no scheduler");
  state.processes[1].restarts = 2;
  state.processes[1].trouble = "ended with exit code 1";
  state.processes[2].restarts = 1;
  CHECK(WhyNotUp(dir, state, before) ==
        "server-0 did not stay up: it ended 2 times (ended with exit code 1); the end of " +
            dir.LogPath("server-0") + ":\nno GPU\n");
  // One that runs again at this moment has no trouble.
  state.processes[2].restarts = 3;
  CHECK(WhyNotUp(dir, state, before) == "worker-0 did not stay up: it ended 3 times; the end of " +
                                            dir.LogPath("worker-0") + ":\nno scheduler\n");
}

}  // namespace
}  // namespace strata
