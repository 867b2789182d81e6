// What each command of `strata` that needs no cluster prints with --json: keys, their order, and
// all that is not of the moment.
#include <catch2/catch.hpp>

#include "tests/golden/golden_commands.h"

namespace strata::golden {
namespace {

TEST_CASE("commands without a cluster print the JSON that they always printed", "[golden]") {
  CheckCommands("commands");
}

}  // namespace
}  // namespace strata::golden
