#include "worker/client/push_sequences.h"

#include <catch2/catch.hpp>
#include <set>

namespace strata {
namespace {

TEST_CASE("a push keeps its number, another one gets its own", "[worker][sequence]") {
  SequenceCounter counter;
  REQUIRE(counter.Next() == Sequence(1));
  PushSequences sequences(&counter);
  const Sequence both = sequences.Of(Step(7), {0, 1});
  const Sequence one = sequences.Of(Step(7), {0});
  const Sequence other = sequences.Of(Step(7), {1});
  const Sequence next = sequences.Of(Step(8), {0, 1});
  REQUIRE(std::set<uint64_t>{both.value, one.value, other.value, next.value} ==
          std::set<uint64_t>{2, 3, 4, 5});
  REQUIRE(counter.Next() == Sequence(6));  // somebody else's of the same session
  REQUIRE(sequences.Of(Step(7), {0, 1}) == both);
  REQUIRE(sequences.Of(Step(7), {1}) == other);
  sequences.DropBelow(Step(8));
  REQUIRE(sequences.Of(Step(8), {0, 1}) == next);
  // What is over is forgotten: its number is not given to anything else.
  REQUIRE(sequences.Of(Step(7), {0, 1}) == Sequence(7));
}

}  // namespace
}  // namespace strata
