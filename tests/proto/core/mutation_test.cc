#include "proto/core/mutation.h"

#include <catch2/catch.hpp>
#include <cstdlib>

namespace strata {
namespace {

// This test is built without the switches, as all programs are.
static_assert(!STRATA_MUTATION("mutation.test"), "a switch is there in an ordinary build");

TEST_CASE("the environment names one fault, for the life of the process", "[mutation]") {
  REQUIRE(::setenv("STRATA_MUTATION", "mutation.test", 1) == 0);
  CHECK(IsMutated("mutation.test"));
  CHECK_FALSE(IsMutated("mutation.tes"));
  CHECK_FALSE(IsMutated(""));
  REQUIRE(::setenv("STRATA_MUTATION", "mutation.other", 1) == 0);
  CHECK(IsMutated("mutation.test"));
  CHECK_FALSE(IsMutated("mutation.other"));
}

}  // namespace
}  // namespace strata
