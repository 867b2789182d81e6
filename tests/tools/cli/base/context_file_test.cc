#include "tools/cli/base/context_file.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/temp_folder.h"
#include "tools/cli/base/text_file.h"

namespace strata {
namespace {

void UseConfig(const TempFolder& folder) { setenv("XDG_CONFIG_HOME", folder.path().c_str(), 1); }

TEST_CASE("what up writes is read back, and removed by its own down only", "[context]") {
  const TempFolder folder;
  UseConfig(folder);
  CHECK(ContextPath() == folder.path() + "/strata/context.json");
  REQUIRE(WriteContext({"127.0.0.1:7400", "/clusters/a"}).ok());
  absl::StatusOr<Context> context = ReadContext();
  REQUIRE(context.ok());
  CHECK(context->scheduler == "127.0.0.1:7400");
  CHECK(context->dir == "/clusters/a");
  CHECK(*SchedulerAddress("") == "127.0.0.1:7400");
  CHECK(*SchedulerAddress("other:1") == "other:1");
  REQUIRE(RemoveContext("/clusters/b").ok());
  CHECK(ReadContext().ok());
  REQUIRE(RemoveContext("/clusters/a").ok());
  CHECK(absl::IsNotFound(ReadContext().status()));
  CHECK(RemoveContext("/clusters/a").ok());
}

TEST_CASE("without a context the message says what to do", "[context]") {
  const TempFolder folder;
  UseConfig(folder);
  CHECK(SchedulerAddress("").status().message() ==
        "no cluster is known here; start one with 'strata up', or name one with --scheduler "
        "HOST:PORT");
  CHECK(SchedulerAddress("localhost").status().message() ==
        "--scheduler localhost: expects HOST:PORT, as in 127.0.0.1:7400");
}

TEST_CASE("a damaged context is named", "[context]") {
  const TempFolder folder;
  UseConfig(folder);
  for (const char* text :
       {"", "{", "[]", "{\"scheduler\": 1, \"dir\": \"x\"}", "{\"dir\": \"x\"}"}) {
    REQUIRE(WriteTextFile(ContextPath(), text).ok());
    CHECK(ReadContext().status().message() ==
          ContextPath() + ": is damaged; remove it, or name the cluster with --scheduler");
  }
}

TEST_CASE("files that cannot be written are named", "[text_file]") {
  const TempFolder scratch;
  const std::string& folder = scratch.path();
  REQUIRE(WriteTextFile(folder + "/file", "x").ok());
  const absl::Status below_file = WriteTextFile(folder + "/file/below", "x");
  CHECK(absl::IsNotFound(below_file));
  CHECK(below_file.message() == folder + "/file: Not a directory");
  REQUIRE(mkdir((folder + "/taken").c_str(), 0755) == 0);
  CHECK(WriteTextFile(folder + "/taken", "x").message() == folder + "/taken: Is a directory");
  CHECK(absl::IsNotFound(ReadTextFile(folder + "/gone").status()));
}

}  // namespace
}  // namespace strata
