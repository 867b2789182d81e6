#include "scheduler/job/cuts/cut_progress.h"

#include <catch2/catch.hpp>

namespace strata::scheduler {
namespace {

const absl::Time kStart = absl::UnixEpoch();
absl::Time At(double seconds) { return kStart + absl::Seconds(seconds); }

TEST_CASE("time left is what is missing at the rate so far", "[cut_progress]") {
  CHECK(SecondsLeft({At(0), 0}, {At(10), 1000}, 4000) == 30.0);
  CHECK(SecondsLeft({At(0), 500}, {At(10), 1000}, 4000) == 60.0);
  CHECK(SecondsLeft({At(0), 0}, {At(10), 4000}, 4000) == 0.0);
  CHECK(SecondsLeft({At(0), 0}, {At(10), 4100}, 4000) == 0.0);  // more than was expected
  CHECK_FALSE(SecondsLeft({At(0), 0}, {At(0), 1000}, 4000));
  CHECK_FALSE(SecondsLeft({At(0), 1000}, {At(10), 1000}, 4000));
  CHECK_FALSE(SecondsLeft({At(0), 1000}, {At(10), 500}, 4000));
}

TEST_CASE("bytes of all servers are summed, and the rate counts from the first word",
          "[cut_progress]") {
  CutProgress progress;
  CHECK(progress.At(At(0)).total == 0);
  CHECK(progress.At(At(0)).written == 0);
  progress.Report(7, 0, 0, 0, At(0));  // nothing is known
  CHECK(progress.At(At(0)).total == 0);
  progress.Report(7, 0, 100, 1000, At(1));
  CHECK(progress.At(At(1)).written == 100);
  CHECK(progress.At(At(1)).total == 1000);
  CHECK_FALSE(progress.At(At(1)).seconds_left);
  progress.Report(7, 1, 0, 3000, At(2));
  progress.Report(7, 0, 300, 1000, At(3));
  CHECK(progress.At(At(3)).written == 300);
  CHECK(progress.At(At(3)).total == 4000);
  CHECK(progress.At(At(3)).seconds_left == 37.0);  // 200 in 2 s
  CHECK(progress.At(At(5)).seconds_left == 74.0);  // nothing came in 2 s more
  progress.Report(7, 0, 1100, 1000, At(5));        // more than it knew
  CHECK(progress.At(At(5)).total == 4100);
}

TEST_CASE("a server that begins again begins the rate again", "[cut_progress]") {
  CutProgress progress;
  progress.Report(1, 0, 500, 1000, At(0));
  progress.Report(1, 1, 0, 1000, At(0));
  progress.Report(1, 1, 1000, 1000, At(10));
  progress.ForgetServer(1);
  progress.Report(1, 1, 100, 1000, At(20));
  CHECK(progress.At(At(20)).written == 600);
  progress.Report(1, 1, 50, 1000, At(21));  // yet another process
  CHECK_FALSE(progress.At(At(21)).seconds_left);
  progress.Report(1, 1, 150, 1000, At(22));
  CHECK(progress.At(At(22)).seconds_left == 13.5);
}

TEST_CASE("the time left after a server's restart is that of the new attempt", "[cut_progress]") {
  CutProgress progress;
  progress.Report(1, 0, 1000, 1000, At(0));  // long done
  progress.Report(1, 1, 0, 1000, At(0));
  progress.Report(1, 1, 900, 1000, At(900));  // a byte a second
  CHECK(progress.At(At(900)).seconds_left == 100.0);
  progress.ForgetServer(1);
  CHECK_FALSE(progress.At(At(950)).seconds_left);
  SECTION("whoever speaks first") { progress.Report(1, 0, 1000, 1000, At(990)); }
  progress.Report(1, 1, 100, 1000, At(1000));  // what was there did not come in between
  CHECK_FALSE(progress.At(At(1000)).seconds_left);
  progress.Report(1, 1, 300, 1000, At(1010));
  const auto left = progress.At(At(1010)).seconds_left;
  REQUIRE(left);
  CHECK(*left >= 35.0);  // 200 in 10 s, or in the 20 s since the other's word
  CHECK(*left <= 70.0);
  progress.ForgetServer(5);  // which has no part in it
  CHECK(progress.At(At(1010)).seconds_left == left);
}

TEST_CASE("the oldest cut is shown, and those that are over are forgotten", "[cut_progress]") {
  CutProgress progress;
  progress.Report(2, 0, 1, 20, At(0));
  progress.Report(1, 0, 1, 10, At(0));
  CHECK(progress.At(At(0)).total == 10);
  progress.KeepOnly([](uint64_t cut) { return cut == 2; });
  CHECK(progress.At(At(0)).total == 20);
  progress.KeepOnly([](uint64_t) { return false; });
  CHECK(progress.At(At(0)).total == 0);
}

}  // namespace
}  // namespace strata::scheduler
