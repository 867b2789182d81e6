#include "proto/runtime/base/backoff.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "absl/time/time.h"
#include "proto/runtime/base/id_source.h"

namespace strata {
namespace {

class Random : public IdSource {
 public:
  explicit Random(uint64_t seed) : draw_(seed) {}
  Drawn Draw() override { return {draw_(), draw_()}; }

 private:
  std::mt19937_64 draw_;
};

class Fixed : public IdSource {
 public:
  explicit Fixed(uint64_t low) : low_(low) {}
  Drawn Draw() override { return {1, low_}; }

 private:
  const uint64_t low_;
};

TEST_CASE("waits double up to a bound, and a success begins anew", "[backoff]") {
  Backoff backoff({absl::Milliseconds(50), absl::Seconds(2), nullptr});
  for (const int ms : {50, 100, 200, 400, 800, 1600, 2000, 2000}) {
    CHECK(backoff.OnFailure() == absl::Milliseconds(ms));
  }
  for (int i = 0; i < 100; ++i) REQUIRE(backoff.OnFailure() == absl::Seconds(2));
  CHECK(backoff.failures() == 108);
  backoff.OnSuccess();
  CHECK(backoff.failures() == 0);
  CHECK(backoff.OnFailure() == absl::Milliseconds(50));
}

TEST_CASE("a wait is spread by half of it to either side", "[backoff]") {
  Fixed least(0), most(~uint64_t{0});
  CHECK(Spread(absl::Seconds(2), &least) == absl::Seconds(1));
  CHECK(Spread(absl::Seconds(2), &most) <= absl::Seconds(3));
  CHECK(Spread(absl::Seconds(2), &most) > absl::Milliseconds(2999));
}

// Of 1,000 clients that lost a server at one moment, each with waits of its own, the most that come
// within 50 ms once it is there again.
int MostAtOnce(absl::Duration first, absl::Duration most, absl::Duration away, bool spread) {
  std::map<int64_t, int> buckets;
  for (uint64_t client = 0; client < 1000; ++client) {
    Random random(7 + client);
    Backoff backoff({first, most, spread ? &random : nullptr});
    absl::Duration now = absl::ZeroDuration();
    while (now < away) now += backoff.OnFailure();
    ++buckets[absl::ToInt64Milliseconds(now) / 50];
  }
  int at_once = 0;
  for (const auto& [bucket, clients] : buckets) at_once = std::max(at_once, clients);
  return at_once;
}

TEST_CASE("a thousand clients that lost a server do not return in one instant", "[backoff]") {
  for (const int ms : {3000, 5000, 10000, 60000}) {
    const absl::Duration away = absl::Milliseconds(ms);
    INFO(ms << " ms away");
    // As workers wait for servers, and nodes for their scheduler.
    CHECK(MostAtOnce(absl::Milliseconds(10), absl::Seconds(1), away, true) <= 75);
    CHECK(MostAtOnce(absl::Milliseconds(50), absl::Milliseconds(1333), away, true) <= 60);
    CHECK(MostAtOnce(absl::Milliseconds(10), absl::Seconds(1), away, false) == 1000);
  }
}

}  // namespace
}  // namespace strata
