#include "tools/cli/base/text_file.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <string>

#include "absl/status/status.h"
#include "tests/temp_folder.h"

namespace strata {
namespace {

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
