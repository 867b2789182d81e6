#include "scheduler/job/lane_hosts.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

namespace strata::scheduler {
namespace {

using Sessions = std::vector<uint64_t>;

Sessions Hosts(const JobStateRecord& s) { return {s.lane_hosts().begin(), s.lane_hosts().end()}; }
Sessions Told(const JobStateRecord& s) {
  return {s.lane_sessions().begin(), s.lane_sessions().end()};
}

TEST_CASE("a lane is taken from its host first, and given when servers know", "[lanes]") {
  JobStateRecord s;
  TakeLanes({9, 9, 4, 4}, s);
  CHECK(Told(s) == Sessions{4, 9});
  CHECK(s.lane_epoch() == 1);
  CHECK(Hosts(s) == Sessions{0, 0, 0, 0});
  GiveLanes({9, 9, 4, 4}, s);
  CHECK(Hosts(s) == Sessions{9, 9, 4, 4});
  TakeLanes({9, 9, 4, 4}, s);
  CHECK(s.lane_epoch() == 1);

  // 9 is silent: nobody has its lanes, and servers are to take nothing of it.
  TakeLanes({4, 4, 4, 4}, s);
  CHECK(Told(s) == Sessions{4});
  CHECK(s.lane_epoch() == 2);
  CHECK(Hosts(s) == Sessions{0, 0, 4, 4});
  TakeLanes({4, 4, 4, 4}, s);
  CHECK(s.lane_epoch() == 2);

  // It is back before they knew: a new list, since some may have gone by the one between.
  TakeLanes({9, 9, 4, 4}, s);
  CHECK(Told(s) == Sessions{4, 9});
  CHECK(s.lane_epoch() == 3);
  CHECK(Hosts(s) == Sessions{0, 0, 4, 4});
  GiveLanes({9, 9, 4, 4}, s);

  // Nobody is left.
  TakeLanes({0, 0, 0, 0}, s);
  CHECK(Told(s).empty());
  CHECK(s.lane_epoch() == 4);
  CHECK(Hosts(s) == Sessions{0, 0, 0, 0});
}

TEST_CASE("that nobody hosts lanes is told as well", "[lanes]") {
  JobStateRecord s;
  TakeLanes({0, 0}, s);
  CHECK(s.lane_epoch() == 1);
  TakeLanes({0, 0}, s);
  CHECK(s.lane_epoch() == 1);
}

}  // namespace
}  // namespace strata::scheduler
