#include "worker/bsp/part_answers.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace strata {
namespace {

using Part = PartAnswers::Part;
using Whole = PartAnswers::Whole;

constexpr ServerIdentity kIdentities[] = {{7, 3}, {8, 3}, {7, 4}};

TEST_CASE("a push is where its parts are, if all are in one process", "[bsp]") {
  // Each part's answer comes from one of three identities: all ways of up to four parts.
  for (uint32_t parts = 1; parts <= 4; ++parts) {
    std::vector<Part> shards;
    uint32_t ways = 1;
    for (uint32_t p = 0; p < parts; ++p) {
      shards.push_back({ShardId(p)});
      ways *= 3;
    }
    for (uint32_t way = 0; way < ways; ++way) {
      PartAnswers answers;
      REQUIRE(answers.Begin(Sequence(5), shards) == std::vector<bool>(parts, true));
      bool same = true;
      uint32_t rest = way;
      for (uint32_t p = 0; p < parts; ++p, rest /= 3) {
        same = same && rest % 3 == way % 3;
        const Whole whole = answers.OnAccepted(shards[p], kIdentities[rest % 3]);
        INFO(parts << " parts, way " << way << ", part " << p);
        if (p + 1 < parts) {
          REQUIRE(whole == Whole::kOpen);
        } else {
          REQUIRE(whole == (same ? Whole::kAccepted : Whole::kAgain));
        }
      }
    }
  }
}

// What became of a part that went; nobody: it broke.
struct Outcome {
  std::optional<ServerIdentity> by;
  Part part;
};

// The shards that were accepted since another identity answered.
std::set<ShardId> TakenByLast(const std::vector<Outcome>& outcomes) {
  std::set<ShardId> taken;
  std::optional<ServerIdentity> last;
  for (auto it = outcomes.rbegin(); it != outcomes.rend(); ++it) {
    if (!it->by) continue;
    if (last && last != it->by) break;
    last = it->by;
    taken.insert(it->part.begin(), it->part.end());
  }
  return taken;
}

// Every way in which that many more tries may go: each part breaks, or is accepted by one of two
// processes.
void TryAllWays(const std::vector<Part>& parts, size_t shards, const PartAnswers& before,
                const std::vector<Outcome>& outcomes, int tries) {
  PartAnswers begun = before;
  const std::vector<bool> goes = begun.Begin(Sequence(5), parts);
  const std::set<ShardId> here = TakenByLast(outcomes);
  std::vector<Part> sent;
  uint32_t ways = 1;
  for (size_t p = 0; p < parts.size(); ++p) {
    const bool taken = std::all_of(parts[p].begin(), parts[p].end(),
                                   [&](ShardId shard) { return here.contains(shard); });
    REQUIRE(goes[p] != taken);
    if (taken) continue;
    sent.push_back(parts[p]);
    ways *= 3;
  }
  for (uint32_t way = 0; way < ways; ++way) {
    PartAnswers answers = begun;
    std::vector<Outcome> after = outcomes;
    Whole whole = Whole::kOpen;
    uint32_t rest = way;
    for (const Part& part : sent) {
      REQUIRE(whole == Whole::kOpen);
      const uint32_t kind = rest % 3;
      rest /= 3;
      if (kind == 2) {
        whole = answers.OnBroken();
        after.push_back({std::nullopt, part});
      } else {
        whole = answers.OnAccepted(part, kIdentities[kind]);
        after.push_back({kIdentities[kind], part});
      }
    }
    if (TakenByLast(after).size() == shards) {
      REQUIRE(whole == Whole::kAccepted);
      // Whoever pushes it again doubts all of it.
      REQUIRE(answers.Begin(Sequence(5), parts) == std::vector<bool>(parts.size(), true));
      continue;
    }
    REQUIRE(whole == Whole::kAgain);
    if (tries > 1) TryAllWays(parts, shards, answers, after, tries - 1);
  }
}

TEST_CASE("a try is over when all its parts are through, and only what is not taken goes again",
          "[bsp]") {
  TryAllWays({{ShardId(1)}, {ShardId(2), ShardId(3)}, {ShardId(6)}}, 4, {}, {}, 3);
}

TEST_CASE("what was taken of a push counts in other parts, and for no other push", "[bsp]") {
  const std::vector<Part> parts = {{ShardId(0)}, {ShardId(1), ShardId(2)}};
  PartAnswers answers;
  answers.Begin(Sequence(5), parts);
  answers.OnAccepted(parts[1], kIdentities[0]);
  REQUIRE(answers.OnBroken() == Whole::kAgain);
  SECTION("other parts") {
    const std::vector<Part> other = {{ShardId(0), ShardId(1)}, {ShardId(2)}};
    CHECK(answers.Begin(Sequence(5), other) == std::vector<bool>{true, false});
    CHECK(answers.OnAccepted(other[0], kIdentities[0]) == Whole::kAccepted);
  }
  SECTION("another push") {
    CHECK(answers.Begin(Sequence(6), parts) == std::vector<bool>{true, true});
    answers.OnBroken();
    answers.OnBroken();
    CHECK(answers.Begin(Sequence(5), parts) == std::vector<bool>{true, true});
  }
}

}  // namespace
}  // namespace strata
