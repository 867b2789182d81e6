// Ids, positions, partitions: what every client must compute as we do.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "proto/core/cut_file_name.h"
#include "proto/core/ids.h"
#include "proto/core/partition.h"
#include "proto/core/position.h"
#include "proto/core/table_spec.h"
#include "proto/core/uid.h"
#include "proto/runtime/base/id_source.h"

namespace strata {
namespace {

static_assert(!std::is_convertible_v<uint64_t, Key>);
static_assert(!std::is_convertible_v<Key, uint64_t>);
static_assert(!std::is_convertible_v<Key, Position>);
static_assert(!std::is_constructible_v<Key, Position>);
static_assert(std::is_trivially_copyable_v<Key> && sizeof(ShardId) == 4);
static_assert(Step(3).Next() == Step(4) && Step(3) < Step(4));

TEST_CASE("ids are 32 hexadecimal digits, and nothing else is one", "[ids]") {
  const ClusterId id{0x0123456789abcdef, 0xfedcba9876543210};
  CHECK(id.text() == "0123456789abcdeffedcba9876543210");
  CHECK(ClusterId::Parse(id.text()) == id);
  CHECK(JobUid::Parse("00000000000000000000000000000001") == JobUid{0, 1});
  for (const char* text :
       {"", "0123456789abcdeffedcba987654321", "0123456789abcdeffedcba98765432100",
        "0123456789ABCDEFFEDCBA9876543210", "0123456789abcdef fedcba987654321",
        "00000000000000000000000000000000", "0x23456789abcdeffedcba9876543210"}) {
    CAPTURE(text);
    CHECK_FALSE(JobUid::Parse(text).has_value());
    CHECK_FALSE(ParseJobIdentity(id.text(), text).has_value());
    CHECK_FALSE(ParseJobIdentity(text, id.text()).has_value());
  }
  const JobIdentity identity{id, {0, 7}};
  CHECK(ParseJobIdentity(identity.cluster.text(), identity.job.text()) == identity);
  const std::string both = Describe(identity);
  CHECK(both.find(identity.cluster.text()) != std::string::npos);
  CHECK(both.find(identity.job.text()) != std::string::npos);
}

TEST_CASE("ids that are drawn differ, also between two sources", "[ids]") {
  IdSource* const system = IdSource::System();
  std::set<ClusterId> drawn;
  for (int i = 0; i < 1000; ++i) drawn.insert(DrawId<ClusterId>(*system));
  CHECK(drawn.size() == 1000);
  uint64_t ever_high = 0, ever_low = 0;
  for (const ClusterId& id : drawn) {
    ever_high |= id.high;
    ever_low |= id.low;
  }
  CHECK(ever_high == ~uint64_t{0});
  CHECK(ever_low == ~uint64_t{0});
  CountedIds counted;
  CHECK(DrawId<JobUid>(counted) == JobUid{0, 1});
  CHECK(DrawId<JobUid>(counted) == JobUid{0, 2});
}

TEST_CASE("Mix64 has the golden values of SplitMix64", "[position]") {
  // The first outputs of SplitMix64 seeded with 0 and with 1234567 (Vigna's reference program) are
  // Mix64 of multiples of the golden gamma, counted from the seed.
  constexpr uint64_t kGamma = 0x9e3779b97f4a7c15ull;
  CHECK(Mix64(kGamma) == 0xe220a8397b1dcdafull);
  CHECK(Mix64(2 * kGamma) == 0x6e789e6aa1b965f4ull);
  CHECK(Mix64(3 * kGamma) == 0x06c45d188009454full);
  CHECK(Mix64(1234567 + kGamma) == 6457827717110365317ull);
  CHECK(Mix64(1234567 + 2 * kGamma) == 3203168211198807973ull);
  CHECK(Mix64(0) == 0);
}

TEST_CASE("UnMix64 inverts Mix64", "[position]") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200'000; ++i) {
    const uint64_t x = random();
    REQUIRE(UnMix64(Mix64(x)) == x);
    REQUIRE(Mix64(UnMix64(x)) == x);
  }
  for (int bit = 0; bit < 64; ++bit) REQUIRE(UnMix64(Mix64(1ull << bit)) == 1ull << bit);
  CHECK(UnMix64(Mix64(~0ull)) == ~0ull);
}

TEST_CASE("salts and positions are part of the wire contract", "[position]") {
  // Computed by an independent program.
  CHECK(TableSalt(TableId(0)) == 0x3911583ac094da32ull);
  CHECK(TableSalt(TableId(1)) == 0x4e58f61f49cc623full);
  CHECK(PositionOf(Key(0), TableSalt(TableId(0))) == Position(0x71e0667c7d02d347ull));
  CHECK(PositionOf(Key(~0ull), TableSalt(TableId(0))) == Position(0x539d4e5758017791ull));
}

TEST_CASE("hashed tables mix, dense tables do not", "[position]") {
  TableSpec hashed;
  hashed.id = TableId(5);
  TableSpec dense;
  dense.id = TableId(5);
  dense.kind = TableKind::kDense;
  std::mt19937_64 random(2);
  for (int i = 0; i < 1000; ++i) {
    const Key key(random());
    REQUIRE(hashed.KeyAtPosition(hashed.PositionOfKey(key)) == key);
    REQUIRE(hashed.PositionOfKey(key) == PositionOf(key, TableSalt(TableId(5))));
    REQUIRE(dense.PositionOfKey(key) == Position(key.value));
    REQUIRE(dense.KeyAtPosition(Position(key.value)) == key);
  }
}

TEST_CASE("partitions are equal, ordered and complete", "[partition]") {
  for (uint32_t count : {1u, 2u, 4u, 4096u, 1u << 20}) {
    const Partitioning p(count);
    CHECK(p.count() == count);
    CHECK(p.First(PartitionId(0)) == Position(0));
    CHECK(p.Last(PartitionId(count - 1)) == Position(~0ull));
    const uint32_t stride = count > 1000 ? count / 997 : 1;
    for (uint32_t i = 0; i < count; i += stride) {
      const PartitionId id(i);
      REQUIRE(p.Of(p.First(id)) == id);
      REQUIRE(p.Of(p.Last(id)) == id);
      if (i + 1 < count) REQUIRE(p.Last(id).value + 1 == p.First(id.Next()).value);
    }
  }
}

TEST_CASE("only powers of two up to 2^20 are partitions", "[partition]") {
  for (uint32_t good : {1u, 2u, 4096u, 1u << 20}) CHECK(Partitioning::IsValid(good));
  for (uint32_t bad : {0u, 3u, 4095u, (1u << 20) + 1, 1u << 21, ~0u}) {
    CHECK(!Partitioning::IsValid(bad));
  }
}

TEST_CASE("keys spread evenly over partitions", "[partition]") {
  const Partitioning p(64);
  std::vector<int> counts(64);
  for (uint64_t k = 0; k < 640'000; ++k) {
    ++counts[p.Of(PositionOf(Key(k), TableSalt(TableId(0)))).value];
  }
  // 10,000 expected; 6 standard deviations are 600.
  for (int c : counts) REQUIRE(std::abs(c - 10'000) < 600);
}

TEST_CASE("names of checkpoint files say who made them", "[cut_file_name]") {
  const JobUid job{0x12, 0x34};
  const CutFileName full{.shard = ShardId(3), .generation = Generation(2), .cut = 7};
  CHECK(full.text() == "shard-00003-g2-c7.strata");
  CutFileName linked = full;
  linked.link = 9;
  CHECK(linked.text() == "shard-00003-g2-c7-l9.strata");
  CHECK(full.made_by() == 7);
  CHECK(linked.made_by() == 9);
  CutFileName increment = full;
  increment.sequence = 2;
  CHECK(increment.text() == "shard-00003.2-g2-c7.strata");
  CutFileName begun = increment;
  begun.begun = job;
  CHECK(begun.text() == "shard-00003.2-g2-c7.strata.00000000000000120000000000000034.tmp");
  CutFileName head = full;
  head.epoch = 5;
  CHECK(head.text() == "shard-00003-g2-c7-e5.strata");
  CutFileName linked_of_head = head;
  linked_of_head.link = 9;
  CHECK(linked_of_head.text() == "shard-00003-g2-c7-e5-l9.strata");
  CHECK(linked_of_head.made_by() == 9);
  CutFileName many = full;
  many.shard = ShardId(123456);
  many.cut = ~uint64_t{0};
  for (const CutFileName& name : {full, linked, increment, begun, head, linked_of_head, many}) {
    INFO(name.text());
    CHECK(CutFileName::Parse(name.text()) == name);
  }
  for (const char* other : {"",
                            "x",
                            "MANIFEST.json",
                            "shard-3-g2-c7.strata",
                            "shard-00003-g2-c7",
                            "shard-00003.strata",
                            "shard-00003-c7-g2.strata",
                            "shard-00003-g2-c7-l0.strata",
                            "shard-00003.0-g2-c7.strata",
                            "shard-00003-g02-c7.strata",
                            "shard-00003-g2-c7.strata.tmp",
                            "shard-00003-g-1-c7.strata",
                            "shard-00003-g2-c7-l9-l9.strata",
                            "shard-00003-g2-c7-e0.strata",
                            "shard-00003-g2-c7-l9-e5.strata",
                            "shard-00003-g2-c7-e5-e5.strata",
                            "shard-00003-g2-c7.strata.12.tmp",
                            "shard-00003-g2-c7-x9.strata",
                            "image-00003-g2-c7.strata",
                            " shard-00003-g2-c7.strata"}) {
    INFO(other);
    CHECK_FALSE(CutFileName::Parse(other).has_value());
  }
}

}  // namespace
}  // namespace strata
