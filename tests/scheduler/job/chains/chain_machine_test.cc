// The rules by which copies leave, lead and join, each by what it decides of what is known.
#include "scheduler/job/chains/chain_machine.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "proto/strata/control.pb.h"
#include "scheduler/state/state.pb.h"

namespace strata::scheduler {
namespace {

constexpr uint64_t kEpoch = 4;

// A chain of servers a, b, c... of which the first are full, and what is known of them: all well.
struct Chain {
  Chain(uint32_t members, uint32_t full, uint32_t replicas) : reports(members + 1) {
    record.set_chain_epoch(kEpoch);
    record.set_full(full);
    for (uint32_t i = 0; i < members; ++i) {
      CopyRecord* copy = record.add_members();
      copy->set_server(std::string(1, static_cast<char>('a' + i)));
      copy->set_log_id("log " + copy->server());
      facts.members.push_back({.alive = true, .opened = true, .answered = true});
    }
    facts.replicas = replicas;
    facts.next_epoch = kEpoch + 3;
    facts.now_unix_ms = 1000;
    facts.shards = "shards 0-3";
    for (uint32_t i = 0; i < members; ++i) {
      reports[i].set_chain_epoch(kEpoch);
      facts.members[i].report = &reports[i];
    }
  }

  CopyFacts& of(char server) { return facts.members.at(static_cast<size_t>(server - 'a')); }

  void Join(const std::string& server) {
    record.mutable_joining()->set_server(server);
    record.mutable_joining()->set_log_id("new log of " + server);
    facts.joining = CopyFacts{.alive = true, .answered = true, .report = &reports.back()};
  }

  // The last member's words: the end of its one shard, and of that after it, which says the same.
  void Ends(uint64_t own, std::optional<uint64_t> next, uint64_t lag_bytes = 0) {
    CopyReport& last = reports[facts.members.size() - 1];
    last.clear_ends();
    last.clear_next_ends();
    last.add_ends()->set_step(own);
    if (next) last.add_next_ends()->set_step(*next);
    last.set_lag_bytes(lag_bytes);
    if (facts.joining) JoiningEnds(next);
  }

  // The words of who joins.
  void JoiningEnds(std::optional<uint64_t> end) {
    reports.back().clear_ends();
    if (end) reports.back().add_ends()->set_step(*end);
  }

  std::optional<ChainChange> Next() const { return NextConfiguration(record, facts); }
  CopiesVerdict Judge() const { return JudgeCopies(record, facts); }

  ChainRecord record;
  ChainFacts facts;
  std::vector<CopyReport> reports;  // of members, and of who joins
};

// "a,b|c+d 7": full members, learners, who joins, the epoch.
std::string Text(const ChainRecord& chain) {
  std::string text;
  for (int i = 0; i < chain.members_size(); ++i) {
    if (i > 0) text += i == static_cast<int>(chain.full()) ? "|" : ",";
    text += chain.members(i).server();
  }
  if (chain.has_joining()) text += "+" + chain.joining().server();
  return text + " " + std::to_string(chain.chain_epoch());
}

std::string TextOf(const std::optional<ChainChange>& change) {
  return change ? Text(change->next) : "none";
}

TEST_CASE("a chain that is well stays as it is", "[chains]") {
  CHECK(TextOf(Chain(2, 2, 2).Next()) == "none");
  CHECK(TextOf(Chain(3, 3, 3).Next()) == "none");
  CHECK(Chain(2, 2, 2).Judge() == CopiesVerdict::kServed);
}

TEST_CASE("who is silent, ended, restarted or lost leaves by the word of another full member",
          "[chains]") {
  const auto spoil = GENERATE(0, 1, 2, 3);
  const auto change = [spoil](CopyFacts& copy) {
    if (spoil == 0) copy.alive = false;
    if (spoil == 1) copy.closed = true;
    if (spoil == 2) copy.restarted = true, copy.opened = false;
    if (spoil == 3) copy.lost = true, copy.why = "its disk is gone";
  };
  INFO(spoil);
  Chain chain(2, 2, 2);
  SECTION("the head: the next one is promoted") {
    change(chain.of('a'));
    const auto next = chain.Next();
    REQUIRE(TextOf(next) == "b 7");
    CHECK(next->reason == "Promoted");
    CHECK(absl::StrContains(next->text, "server a"));
    CHECK(absl::StrContains(next->text, "its copy on server b takes over shards 0-3, epoch 7"));
    CHECK(next->next.full() == 1);
    CHECK(next->next.short_since_unix_ms() == 1000);
    CHECK(next->failed ==
          (spoil == 3 ? std::vector<std::string>{"a"} : std::vector<std::string>{}));
  }
  SECTION("a backup") {
    change(chain.of('b'));
    REQUIRE(TextOf(chain.Next()) == "a 7");
    CHECK(chain.Next()->reason == "CopyLost");
  }
  SECTION("not where the other was not heard of since") {
    change(chain.of('a'));
    chain.of('b').answered = false;
    CHECK(TextOf(chain.Next()) == "none");
  }
  SECTION("not where the other opens yet") {
    change(chain.of('a'));
    chain.of('b').opened = false;
    CHECK(TextOf(chain.Next()) == "none");
  }
}

TEST_CASE("who was copied to by a member that leaves begins anew", "[chains]") {
  Chain chain(2, 2, 3);
  chain.Join("c");
  SECTION("its source has left: the log of the one before may not reach back so far") {
    chain.of('b').closed = true;
    REQUIRE(TextOf(chain.Next()) == "a 7");
  }
  SECTION("another one has left") {
    chain.of('a').closed = true;
    REQUIRE(TextOf(chain.Next()) == "b+c 7");
  }
}

TEST_CASE("where no full member answers nobody leaves", "[chains]") {
  Chain chain(2, 2, 2);
  chain.of('a').alive = chain.of('b').alive = false;
  CHECK(TextOf(chain.Next()) == "none");
  CHECK(chain.Judge() == CopiesVerdict::kAway);
  chain.of('b').alive = true;
  chain.of('b').restarted = true;
  chain.of('b').opened = false;
  CHECK(TextOf(chain.Next()) == "none");
  CHECK(chain.Judge() == CopiesVerdict::kOpening);
  // It holds its shards again: the other one leaves, and it goes on.
  chain.of('b') = {.alive = true, .opened = true, .answered = true};
  CHECK(TextOf(chain.Next()) == "b 7");
  CHECK(chain.Judge() == CopiesVerdict::kServed);
}

TEST_CASE("several leave at once, in one epoch", "[chains]") {
  Chain chain(3, 3, 3);
  chain.of('a').alive = chain.of('b').alive = false;
  CHECK(TextOf(chain.Next()) == "c 7");
  chain.of('a').alive = true;
  chain.of('c').closed = true;
  CHECK(TextOf(chain.Next()) == "a 7");
}

TEST_CASE("two that saw each other's connection closed: who is heard of after that stays",
          "[chains]") {
  Chain chain(2, 2, 2);
  chain.of('a').closed = chain.of('b').closed = true;
  chain.of('a').answered = chain.of('b').answered = false;
  CHECK(TextOf(chain.Next()) == "none");
  chain.of('b').answered = true;
  CHECK(TextOf(chain.Next()) == "b 7");
  chain.of('a').answered = true;
  CHECK(TextOf(chain.Next()) == "a 7");
}

TEST_CASE("a learner is never promoted, and nobody leaves by its word", "[chains]") {
  Chain chain(2, 1, 2);
  chain.of('a').alive = false;
  CHECK(TextOf(chain.Next()) == "none");
  CHECK(chain.Judge() == CopiesVerdict::kAway);
  chain.of('a').alive = true;
  chain.of('b').alive = false;
  CHECK(TextOf(chain.Next()) == "a 7");
}

TEST_CASE("all that was held is lost when each full member has said so", "[chains]") {
  Chain chain(2, 2, 2);
  chain.of('a').lost = true;
  chain.of('b').alive = false;
  CHECK(chain.Judge() == CopiesVerdict::kAway);  // that one may come back
  chain.of('b').lost = true;
  CHECK(chain.Judge() == CopiesVerdict::kLost);
}

TEST_CASE("a short chain is copied to another server, under a new log id", "[chains]") {
  Chain chain(1, 1, 2);
  int asked = 0;
  chain.facts.candidate = [&asked]() -> std::optional<CopyRecord> {
    CopyRecord copy;
    copy.set_server("x");
    copy.set_log_id("drawn " + std::to_string(++asked));
    return copy;
  };
  const auto next = chain.Next();
  REQUIRE(TextOf(next) == "a+x 4");  // no new epoch: nothing counts on it yet
  CHECK(next->next.joining().log_id() == "drawn 1");
  CHECK(next->next.full() == 1);
  CHECK(next->next.short_since_unix_ms() == 1000);
  chain.record = next->next;
  chain.facts.joining = CopyFacts{.alive = true};
  CHECK(TextOf(chain.Next()) == "none");
  CHECK(asked == 1);
  // Who cannot be copied to is given up, and asked for again under another id.
  chain.facts.joining->restarted = true;
  CHECK(TextOf(chain.Next()) == "a 4");
  chain.record = chain.Next()->next;
  chain.facts.joining.reset();
  CHECK(chain.Next()->next.joining().log_id() == "drawn 2");
}

TEST_CASE("nobody is copied to by a member that is in trouble, nor where enough are there",
          "[chains]") {
  Chain chain(1, 1, 2);
  chain.facts.candidate = [] { return std::optional<CopyRecord>(CopyRecord()); };
  chain.of('a').alive = false;
  CHECK(TextOf(chain.Next()) == "none");
  chain.of('a') = {.alive = true, .opened = false};
  CHECK(TextOf(chain.Next()) == "none");
  Chain enough(2, 2, 2);
  enough.facts.candidate = chain.facts.candidate;
  CHECK(TextOf(enough.Next()) == "none");
  Chain learns(2, 1, 3);  // one at a time
  learns.facts.candidate = chain.facts.candidate;
  CHECK(TextOf(learns.Next()) == "none");
}

TEST_CASE("a copy becomes a member when little is missing, and does not lead then", "[chains]") {
  Chain chain(1, 1, 2);
  chain.Join("x");
  chain.Ends(10, std::nullopt);
  CHECK(TextOf(chain.Next()) == "none");
  chain.Ends(10, 7, kSmallLagBytes + 1);
  CHECK(TextOf(chain.Next()) == "none");
  chain.Ends(10, 8, kSmallLagBytes + 1);
  const auto next = chain.Next();
  REQUIRE(TextOf(next) == "a|x 7");
  CHECK(next->next.full() == 1);
  CHECK(next->next.members(1).log_id() == "new log of x");
  SECTION("what the last member says of an earlier configuration does not count") {
    chain.reports[0].set_chain_epoch(kEpoch - 1);
    CHECK(TextOf(chain.Next()) == "none");
  }
  SECTION("nor does it where the copy has not said yet that it is one") {
    chain.facts.joining->report = nullptr;
    CHECK(TextOf(chain.Next()) == "none");
  }
  // To begin to copy to another one is no new epoch, so its words may be late.
  SECTION("nor where the last member may speak of whom it copied to before") {
    chain.JoiningEnds(std::nullopt);
    CHECK(TextOf(chain.Next()) == "none");
    chain.JoiningEnds(7);
    CHECK(TextOf(chain.Next()) == "none");
    chain.JoiningEnds(9);
    CHECK(TextOf(chain.Next()) == "a|x 7");
  }
  SECTION("nor where it has less of one shard, or of the cuts") {
    chain.facts.bsp = false;
    chain.reports[0].add_ends()->set_shard(1);
    chain.reports[0].add_next_ends()->set_shard(1);
    chain.reports[0].mutable_next_ends(1)->set_cut(2);
    chain.reports[0].set_lag_bytes(0);
    CHECK(TextOf(chain.Next()) == "none");
    chain.reports.back().add_ends()->set_shard(1);
    CHECK(TextOf(chain.Next()) == "none");
    chain.reports.back().mutable_ends(1)->set_cut(2);
    CHECK(TextOf(chain.Next()) == "a|x 7");
  }
  SECTION("a shard of which nothing is there is much") {
    chain.reports[0].add_ends()->set_shard(1);
    CHECK(TextOf(chain.Next()) == "none");
  }
  SECTION("many steps that are short are little") {
    chain.Ends(1000, 1, kSmallLagBytes);
    CHECK(TextOf(chain.Next()) == "a|x 7");
  }
  SECTION("asynchronous modes count bytes") {
    chain.facts.bsp = false;
    chain.Ends(1000, 1, kSmallLagBytes + 1);
    CHECK(TextOf(chain.Next()) == "none");
    chain.Ends(1000, 1, kSmallLagBytes);
    CHECK(TextOf(chain.Next()) == "a|x 7");
  }
}

TEST_CASE("a learner is full when both know the configuration and it has all", "[chains]") {
  Chain chain(2, 1, 2);
  chain.record.set_short_since_unix_ms(500);
  CHECK(TextOf(chain.Next()) == "none");
  chain.reports[0].set_next_has_all(true);
  const auto next = chain.Next();
  REQUIRE(TextOf(next) == "a,b 4");  // no new epoch
  CHECK(next->next.full() == 2);
  CHECK(next->next.short_since_unix_ms() == 0);
  CHECK(next->reason == "CopyComplete");
  const auto late = GENERATE(0, 1);
  chain.reports[static_cast<size_t>(late)].set_chain_epoch(kEpoch - 1);
  CHECK(TextOf(chain.Next()) == "none");
}

TEST_CASE("a new generation makes learners full, and drops who was being copied to", "[chains]") {
  Chain chain(2, 1, 2);
  chain.Join("x");
  chain.record.set_short_since_unix_ms(500);
  BeginChainAnew(2, chain.record);
  CHECK(Text(chain.record) == "a,b 4");
  CHECK(chain.record.full() == 2);
  CHECK(chain.record.short_since_unix_ms() == 0);
  CHECK(chain.record.members(1).log_id() == "log b");
}

TEST_CASE("what is missing is told with since when and who joins", "[chains]") {
  Chain chain(1, 1, 2);
  chain.record.set_short_since_unix_ms(5 * 3600'000 + 6 * 60'000 + 7'000);
  CHECK(DescribeShort(chain.record, 2, 1, "shards 0-3") ==
        "shards 0-3 have 1 of 2 copies (a) since 05:06:07 UTC");
  chain.Join("x");
  CHECK(DescribeShort(chain.record, 2, 2, "shards 0-3") ==
        "shards 0-3 have 1 of 2 copies (a) since 05:06:07 UTC; spec.storage.minReplicas is 2: "
        "commits wait; x is being copied to");
  CHECK(DescribeShort(Chain(2, 2, 2).record, 2, 1, "shards 0-3").empty());
}

}  // namespace
}  // namespace strata::scheduler
