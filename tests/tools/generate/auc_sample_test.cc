#include "tools/generate/auc_sample.h"

#include <catch2/catch.hpp>
#include <cstdint>

#include "proto/core/position.h"

namespace strata {

TEST_CASE("AUC counts pairs, ties by half", "[generate][auc]") {
  AucSample auc(10);
  CHECK(auc.Auc() == 0.5);
  auc.Add(0.9f, true);
  CHECK(auc.Auc() == 0.5);  // one class
  auc.Add(0.1f, false);
  CHECK(auc.Auc() == 1.0);
  auc.Add(0.9f, false);  // a tie
  auc.Add(0.05f, true);  // below both negatives
  CHECK(auc.Auc() == 1.5 / 4);
}

TEST_CASE("beyond its capacity it keeps a fair sample", "[generate][auc]") {
  AucSample small(20'000);
  AucSample all(200'000);
  for (uint64_t i = 0; i < 200'000; ++i) {
    // The stream drifts: a sample of its beginning or end alone would be far off.
    const float score = static_cast<float>(Mix64(i) % 1000) / 1000;
    const bool label = (Mix64(i + 1'000'000) % 1000) < (i < 100'000 ? Mix64(i) % 1000 : 500);
    small.Add(score, label);
    all.Add(score, label);
  }
  CHECK(small.size() == 20'000);
  CHECK(all.size() == 200'000);
  CHECK(all.Auc() > 0.6);
  CHECK(small.Auc() == Approx(all.Auc()).margin(0.015));
}

}  // namespace strata
