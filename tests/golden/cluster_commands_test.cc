// What each command of `strata` prints with --json at a cluster of real processes.
#include <catch2/catch.hpp>

#include "tests/golden/golden_commands.h"

namespace strata::golden {
namespace {

TEST_CASE("commands at a cluster print the JSON that they always printed", "[golden]") {
  CheckCommands("cluster_commands");
}

}  // namespace
}  // namespace strata::golden
