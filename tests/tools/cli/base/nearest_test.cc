#include "tools/cli/base/nearest.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace strata {
namespace {

TEST_CASE("edits are counted", "[nearest]") {
  CHECK(EditDistance("", "") == 0);
  CHECK(EditDistance("", "abc") == 3);
  CHECK(EditDistance("abc", "abc") == 0);
  CHECK(EditDistance("kitten", "sitting") == 3);
  CHECK(EditDistance("sitting", "kitten") == 3);
  CHECK(EditDistance("ab", "ba") == 1);
  CHECK(EditDistance("ca", "abc") == 3);
}

TEST_CASE("case and word separators do not count", "[nearest]") {
  CHECK(EditDistance("batch_size", "batchSize") == 0);
  CHECK(EditDistance("BATCH-SIZE", "batchSize") == 0);
}

TEST_CASE("the nearest name is found, and nothing when none is near", "[nearest]") {
  const std::vector<std::string> names = {"mode", "lanes", "batchSize", "epochs", "seed"};
  CHECK(Nearest("batchsize", names) == "batchSize");
  CHECK(Nearest("batchSzie", names) == "batchSize");
  CHECK(Nearest("lane", names) == "lanes");
  CHECK(Nearest("epoch", names) == "epochs");
  CHECK(Nearest("learningRate", names).empty());
  CHECK(Nearest("", names).empty());
  CHECK(Nearest("x", {}).empty());
}

}  // namespace
}  // namespace strata
