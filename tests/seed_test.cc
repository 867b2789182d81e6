#include "tests/seed.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace strata {
namespace {

// The environment of one case; afterwards nothing is given.
class Environment {
 public:
  Environment(const char* seed, const char* count) {
    Set("STRATA_SEED", seed);
    Set("STRATA_SEED_COUNT", count);
  }
  ~Environment() {
    unsetenv("STRATA_SEED");
    unsetenv("STRATA_SEED_COUNT");
  }

 private:
  static void Set(const char* name, const char* value) {
    if (value == nullptr) {
      unsetenv(name);
    } else {
      setenv(name, value, 1);
    }
  }
};

using List = std::vector<uint64_t>;

List Read(const std::string& text, const std::string& simulation) {
  std::istringstream in(text);
  return FailedSeeds(in, simulation);
}

TEST_CASE("without an environment seeds are the same in every run", "[seed]") {
  const Environment none(nullptr, nullptr);
  CHECK_FALSE(SeedsAreGiven());
  CHECK(Seeds("no_simulation") == List{1});
  CHECK(Seeds("no_simulation", 1000, 3) == List{1000, 1001, 1002});
}

TEST_CASE("a seed that failed once is run before the others", "[seed]") {
  const Environment none(nullptr, nullptr);
  // tests/sim/seeds has these lines for this test.
  CHECK(Seeds("seed_test", 5, 2) == List{18446744073709551615u, 77, 5, 6});
}

TEST_CASE("a seed that is given is the only one, or the first of as many as are given", "[seed]") {
  {
    const Environment one("77", nullptr);
    CHECK(SeedsAreGiven());
    CHECK(Seeds("seed_test", 5, 400) == List{77});
  }
  const Environment three("77", "3");
  CHECK(Seeds("seed_test", 5, 400) == List{77, 78, 79});
}

TEST_CASE("seeds that are none are refused", "[seed]") {
  {
    const Environment word("x1", nullptr);
    CHECK_THROWS_AS(Seeds("a"), std::runtime_error);
  }
  {
    const Environment large("18446744073709551616", nullptr);
    CHECK_THROWS_AS(Seeds("a"), std::runtime_error);
  }
  const Environment none("7", "0");
  CHECK_THROWS_AS(Seeds("a"), std::runtime_error);
}

TEST_CASE("the file of seeds that failed has a simulation and a seed a line", "[seed]") {
  const std::string text = "# a comment\n\na 3 # why\nb 4\n  a   5\n";
  CHECK(Read(text, "a") == List{3, 5});
  CHECK(Read(text, "b") == List{4});
  CHECK(Read(text, "c").empty());
  for (const char* wrong : {"a\n", "a b\n", "a 3 4\n", "a -3\n", "a 3 why\n"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(Read(wrong, "other"), std::runtime_error);
  }
}

}  // namespace
}  // namespace strata
