#include "server/protocol/life_cycle_admission.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <random>
#include <span>
#include <vector>

#include "ops/counter_random.h"
#include "tests/seed.h"

namespace strata::server {
namespace {

constexpr uint64_t kLast = ~uint64_t{0};
const Partitioning kFour(4);

AdmissionFilter Filter(AdmissionType type, uint32_t min_steps, uint64_t bytes = 1 << 20) {
  AdmissionRules rules;
  rules.type = type;
  rules.min_steps = min_steps;
  rules.partition_bytes = bytes;
  return AdmissionFilter(rules, TableId(0), 7, kFour);
}

std::map<uint32_t, std::vector<uint8_t>> Saved(const AdmissionFilter& filter) {
  std::map<uint32_t, std::vector<uint8_t>> saved;
  REQUIRE(filter
              .Save([&](PartitionId p, std::span<const uint8_t> bytes) {
                saved[p.value].assign(bytes.begin(), bytes.end());
                return absl::OkStatus();
              })
              .ok());
  return saved;
}

TEST_CASE("exact: the minSteps-th step admits, and a key starts anew after that",
          "[life_cycle_admission]") {
  for (const uint64_t p : {uint64_t{0}, uint64_t{12345}, kLast}) {
    AdmissionFilter filter = Filter(AdmissionType::kExact, 3);
    for (int round = 0; round < 2; ++round) {
      CHECK_FALSE(filter.Admit(Position(p), Key(p), 1));
      CHECK_FALSE(filter.Admit(Position(p), Key(p), 2));
      CHECK(filter.StepsOf(Position(p)) == 2);
      CHECK(filter.Admit(Position(p), Key(p), 9));
      CHECK(filter.StepsOf(Position(p)) == 0);
    }
  }
}

TEST_CASE("exact: random touches agree with a map", "[life_cycle_admission][seeds]") {
  const uint64_t seed = GENERATE(from_range(Seeds("admission_exact", 3)));
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  AdmissionFilter filter = Filter(AdmissionType::kExact, 4);
  std::map<uint64_t, uint32_t> steps;
  for (int i = 0; i < 20000; ++i) {
    const uint64_t p = (random() % 500) * 0x9e3779b97f4a7c15ull;
    const bool expected = ++steps[p] == 4;
    if (expected) steps.erase(p);
    REQUIRE(filter.Admit(Position(p), Key(p), 1) == expected);
  }
}

TEST_CASE("exact: a full filter forgets the keys with the fewest steps, and goes on",
          "[life_cycle_admission]") {
  const uint64_t most = 10;
  AdmissionFilter filter =
      Filter(AdmissionType::kExact, 200, most * AdmissionFilter::kExactEntryBytes);
  for (uint64_t k = 0; k < 3; ++k) {
    for (int i = 0; i < 5; ++i) filter.Admit(Position(k), Key(k), 1);
  }
  for (uint64_t k = 100; k < 1000; ++k) filter.Admit(Position(k), Key(k), 1);
  CHECK(filter.bytes() <= most * AdmissionFilter::kExactEntryBytes);
  for (uint64_t k = 0; k < 3; ++k) CHECK(filter.StepsOf(Position(k)) == 5);
  CHECK(filter.StepsOf(Position(999)) == 1);
  // Another partition has its own room.
  filter.Admit(Position(kLast), Key(kLast), 1);
  CHECK(filter.StepsOf(Position(999)) == 1);
}

// What a full filter does, by the definition: the rarest counts go whole until at most half is
// left.
TEST_CASE("exact: what a full filter forgets, against a map", "[life_cycle_admission][seeds]") {
  constexpr uint64_t kMost = 24;
  const uint64_t seed = GENERATE(from_range(Seeds("admission_full", 17)));
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  AdmissionFilter filter =
      Filter(AdmissionType::kExact, 9, kMost * AdmissionFilter::kExactEntryBytes);
  std::map<uint64_t, uint32_t> steps;
  int forgot = 0;
  for (int i = 0; i < 20000; ++i) {
    const uint64_t p = random() % (random() % 3 == 0 ? 200 : 15);
    if (!steps.contains(p) && steps.size() >= kMost) {
      for (uint32_t rarest = 1; steps.size() > kMost / 2; ++rarest) {
        forgot += rarest > 1;
        std::erase_if(steps, [rarest](const auto& entry) { return entry.second == rarest; });
      }
    }
    const bool expected = ++steps[p] == 9;
    if (expected) steps.erase(p);
    REQUIRE(filter.Admit(Position(p), Key(p), 1) == expected);
    for (const auto& [known, n] : steps) REQUIRE(filter.StepsOf(Position(known)) == n);
    REQUIRE(filter.bytes() == steps.size() * AdmissionFilter::kExactEntryBytes);
  }
  CHECK(forgot > 10);  // more than the keys of one step went at once
}

TEST_CASE("counting: never later than exact while little was counted, and of fixed size",
          "[life_cycle_admission]") {
  std::mt19937_64 random(5);
  AdmissionFilter filter = Filter(AdmissionType::kCounting, 3, 16384);
  std::map<uint64_t, uint32_t> steps;
  int early = 0;
  for (int i = 0; i < 2000; ++i) {  // of 4096 until the first halving
    const uint64_t p = random() % 900;
    const bool admitted = filter.Admit(Position(p), Key(p), 1);
    const bool due = ++steps[p] >= 3;
    CHECK_FALSE((due && !admitted));
    early += admitted && !due;
  }
  CHECK(early <= 20);  // 1 %
  CHECK(filter.bytes() == 16384);
}

// Nearly every key is new. Raising all of a key's counters and not the smallest only admits some
// 240 too early; rows that share their counters, thousands.
TEST_CASE("counting: a loaded filter errs seldom", "[life_cycle_admission]") {
  AdmissionFilter filter = Filter(AdmissionType::kCounting, 3, 4096);  // halves every 1024
  std::mt19937_64 random(23);
  std::map<uint64_t, uint32_t> steps;
  int early = 0;
  for (int i = 0; i < 20000; ++i) {
    const uint64_t p = random() % 30000;
    const uint32_t seen = ++steps[p];
    early += filter.Admit(Position(p), Key(p), 1) && seen < 3;
  }
  CHECK(early < 60);
}

TEST_CASE("counting: what is rare is forgotten, what is frequent is not",
          "[life_cycle_admission]") {
  AdmissionFilter filter = Filter(AdmissionType::kCounting, 40, 1024);  // halves every 256
  const Position rare(1), frequent(2);
  filter.Admit(rare, Key(1), 1);
  CHECK(filter.StepsOf(rare) == 1);
  bool admitted = false;
  for (int i = 0; i < 512 && !admitted; ++i) admitted = filter.Admit(frequent, Key(2), 1);
  CHECK(admitted);
  for (int i = 0; i < 256; ++i) filter.Admit(Position(3), Key(3), 1);
  CHECK(filter.StepsOf(rare) == 0);
}

TEST_CASE("probability: a function of seed, table, key and step, near its chance",
          "[life_cycle_admission]") {
  AdmissionRules rules;
  rules.type = AdmissionType::kProbability;
  rules.probability = 0.25f;
  AdmissionFilter a(rules, TableId(0), 7, kFour), b(rules, TableId(0), 7, Partitioning(1));
  AdmissionFilter other(rules, TableId(0), 8, kFour), neighbour(rules, TableId(1), 7, kFour);
  int hits = 0, differ = 0, apart = 0, both = 0, low = 0;
  for (uint64_t k = 0; k < 20000; ++k) {
    const bool now = a.Admit(Position(k), Key(k), 5);
    hits += now;
    REQUIRE(b.Admit(Position(~k), Key(k), 5) == now);
    differ += other.Admit(Position(k), Key(k), 5) != now;
    apart += neighbour.Admit(Position(k), Key(k), 5) != now;
    // The row's initial weights are of the same seed, table and key.
    low += now && ops::SymmetricUniform(ops::ElementBits(ops::RowStream(7, 0, k), 4)) < -0.5f;
    both += now && a.Admit(Position(k), Key(k), 6);
  }
  CHECK(std::abs(hits - 5000) < 300);    // 5 standard deviations
  CHECK(std::abs(differ - 7500) < 400);  // seeds are independent
  CHECK(std::abs(apart - 7500) < 400);   // tables are
  CHECK(std::abs(both - 1250) < 200);    // steps are independent
  CHECK(std::abs(low - 1250) < 200);     // and of what the row begins with
}

TEST_CASE("what is saved and loaded goes on as if nothing had been", "[life_cycle_admission]") {
  for (const AdmissionType type : {AdmissionType::kExact, AdmissionType::kCounting}) {
    std::mt19937_64 random(11);
    AdmissionFilter first = Filter(type, 3, 1 << 12);
    const auto next = [&] { return (random() % 300) * 0x9e3779b97f4a7c15ull; };
    for (int i = 0; i < 700; ++i) {
      const uint64_t p = next();
      first.Admit(Position(p), Key(p), 1);
    }
    AdmissionFilter second = Filter(type, 3, 1 << 12);
    for (const auto& [partition, bytes] : Saved(first)) {
      REQUIRE(second.Load(PartitionId(partition), bytes).ok());
    }
    for (int i = 0; i < 3000; ++i) {
      const uint64_t p = next();
      REQUIRE(first.Admit(Position(p), Key(p), 2) == second.Admit(Position(p), Key(p), 2));
    }
    CHECK(Saved(first) == Saved(second));
  }
}

// A job that starts from another one's checkpoint may have other filterBytes.
TEST_CASE("counters of a filter of another size go on as bounds from above",
          "[life_cycle_admission]") {
  const auto filter = [](uint64_t bytes) { return Filter(AdmissionType::kCounting, 200, bytes); };
  for (const uint64_t size : {4, 64, 1024, 4096, 1 << 16}) {
    INFO("to " << size);
    AdmissionFilter before = filter(4096), after = filter(size);
    std::mt19937_64 random(5);
    std::map<uint64_t, uint32_t> steps;  // by position; too few in all for a halving
    for (int i = 0; i < 150; ++i) {
      const uint64_t p = (random() % 60) * 0x9e3779b97f4a7c15ull;
      before.Admit(Position(p), Key(p), 1);
      ++steps[p];
    }
    for (const auto& [partition, bytes] : Saved(before)) {
      REQUIRE(after.Load(PartitionId(partition), bytes).ok());
    }
    for (const auto& [p, n] : steps) {
      CHECK(after.StepsOf(Position(p)) >= n);
      if (size >= 4096) CHECK(after.StepsOf(Position(p)) == before.StepsOf(Position(p)));
    }
    // It is a filter of the new size.
    const auto saved = Saved(after);
    REQUIRE(saved.size() == 4);
    CHECK(saved.begin()->second.size() == 16 + size);
    AdmissionFilter again = filter(size);
    CHECK(again.Load(PartitionId(saved.begin()->first), saved.begin()->second).ok());
  }
}

TEST_CASE("bytes that are no filter are refused", "[life_cycle_admission]") {
  const auto bytes = [](AdmissionType type, size_t size) {
    std::vector<uint8_t> out(8 + size);
    out[4] = static_cast<uint8_t>(type);
    return out;
  };
  AdmissionFilter exact = Filter(AdmissionType::kExact, 3);
  const PartitionId first(0);
  CHECK(absl::IsDataLoss(exact.Load(first, std::vector<uint8_t>(7))));
  CHECK(absl::IsDataLoss(exact.Load(first, bytes(AdmissionType::kExact, 15))));
  CHECK(absl::IsDataLoss(exact.Load(first, bytes(AdmissionType::kExact, 16))));  // of no step
  std::vector<uint8_t> entry = bytes(AdmissionType::kExact, 16);
  entry[16] = 1;
  CHECK(absl::IsDataLoss(exact.Load(PartitionId(1), entry)));  // of another partition
  CHECK(exact.Load(first, entry).ok());
  CHECK(exact.StepsOf(Position(0)) == 1);
  AdmissionFilter counting = Filter(AdmissionType::kCounting, 3, 1024);
  for (const size_t size : {0, 7, 8, 10, 8 + 12, 1024, 8 + 1023}) {
    INFO(size);
    CHECK(absl::IsDataLoss(counting.Load(first, bytes(AdmissionType::kCounting, size))));
  }
  CHECK(counting.Load(first, bytes(AdmissionType::kCounting, 8 + 1024)).ok());
  // Another kind of filter's, or another table's, is let be.
  CHECK(counting.Load(first, entry).ok());
  entry[0] = 9;
  CHECK(Filter(AdmissionType::kExact, 3).Load(first, entry).ok());
}

}  // namespace
}  // namespace strata::server
