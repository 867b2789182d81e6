#include "scheduler/store/change_batch.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/scheduler/store/stored_records.h"
#include "tests/seed.h"

namespace strata::scheduler {
namespace {

using Records = std::map<std::string, std::string>;

TEST_CASE("what waits for a store is one change of each record", "[store][bounds][seeds]") {
  constexpr size_t kKeys = 20;
  for (const uint64_t seed : Seeds("change_batch", 0, 20)) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    ChangeBatch batch;
    Records stored, right;
    for (int round = 0; round < 2000; ++round) {
      std::vector<MetadataChange> changes;
      for (uint64_t n = random() % 4; n > 0; --n) {
        MetadataChange change{absl::StrCat("k", random() % kKeys), std::nullopt};
        if (random() % 3 != 0) change.value = absl::StrCat(random());
        changes.push_back(std::move(change));
      }
      ApplyChanges(changes, right);
      batch.Add(std::move(changes));
      REQUIRE(batch.changes().size() <= kKeys);
      if (random() % 200 != 0) continue;  // the store takes nothing
      ApplyChanges(batch.changes(), stored);
      batch.Clear();
      REQUIRE(batch.empty());
      REQUIRE(stored == right);
    }
  }
}

}  // namespace
}  // namespace strata::scheduler
