#include "server/protocol/image_schedule.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/seed.h"

namespace strata::server {
namespace {

constexpr uint64_t kMiB = 1 << 20;

TEST_CASE("the log that is kept follows from the restart target", "[image_schedule]") {
  ImageScheduleOptions options{.log_bytes = uint64_t{1} << 40, .cores = 2};
  options.restart_seconds = 10;
  options.load_rate = 100e6;
  options.replay_rate = 300e6;
  // Nothing to load: ten seconds of two cores.
  CHECK(ImageSchedule(options, {{}, {}, {}, {}}).LogLimit() == 6'000'000'000);
  // A single shard has one core.
  CHECK(ImageSchedule(options, {{}}).LogLimit() == 3'000'000'000);
  // 1 GB of images takes two cores 5 s.
  const ImageSchedule::Start half{0, 500'000'000, 1};
  CHECK(ImageSchedule(options, {half, half}).LogLimit() == 3'000'000'000);
  // Images that take longer than the target: a quarter of them.
  const ImageSchedule::Start big{0, 8'000'000'000, 1};
  CHECK(ImageSchedule(options, {big, big}).LogLimit() == 4'000'000'000);
  // Never more than the job says.
  options.log_bytes = 1'000'000;
  CHECK(ImageSchedule(options, {big, big}).LogLimit() == 1'000'000);
}

// A log, as the schedule's user has it: a segment number goes up at each boundary.
struct World {
  explicit World(size_t shards) : boundary(shards, 0) {}

  uint64_t appended = 0;
  uint64_t segment = 1;
  std::vector<uint64_t> starts = {0, 0};  // `appended` where a segment begins
  std::vector<uint64_t> boundary;         // by shard, what its newest image says
  uint64_t Kept(uint64_t trim) const {
    return appended - starts[std::min<uint64_t>(trim, starts.size() - 1)];
  }
};

TEST_CASE("images bound the log, one at a time, each shard in turn", "[image_schedule][seeds]") {
  const uint64_t seed = GENERATE(from_range(Seeds("image_schedule")));
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    const size_t shards = 1 + random() % 6;
    const uint64_t limit = 100 * kMiB;
    ImageSchedule schedule({.log_bytes = limit, .cores = 2},
                           std::vector<ImageSchedule::Start>(shards));
    World world(shards);
    uint64_t during = 0, worst_during = 0, slack = 0, images = 0;
    std::vector<uint64_t> count(shards, 0);
    size_t running = shards;  // the shard whose image is being written; `shards`: none
    uint64_t noted = 0;
    while (world.appended < 3000 * kMiB) {
      const uint64_t bytes = random() % (4 * kMiB);
      world.appended += bytes;
      if (running < shards) {
        CHECK_FALSE(schedule.Due(world.appended));
        during += bytes;
        worst_during = std::max(worst_during, during);
        if (random() % 4 != 0) continue;
        const bool fails = random() % 8 == 0;
        if (fails) {
          schedule.Failed(world.appended);
          slack += limit / 8 + 8 * kMiB + during;
        } else {
          schedule.Done(1);
          world.boundary[running] = noted;
          ++count[running];
          ++images;
        }
        running = shards;
        const uint64_t needed = *std::min_element(world.boundary.begin(), world.boundary.end());
        REQUIRE(schedule.TrimBefore() == needed);
        continue;
      }
      if (const auto due = schedule.Due(world.appended)) {
        schedule.Begin(*due, world.appended);
        noted = ++world.segment;
        world.starts.push_back(world.appended);
        schedule.Boundary(noted);
        running = *due;
        during = 0;
      }
      // The limit, and what came while images waited for each other and were written.
      const uint64_t trim = schedule.TrimBefore();
      REQUIRE(world.Kept(trim) <= limit + shards * (worst_during + 8 * kMiB) + slack);
    }
    const auto [least, most] = std::minmax_element(count.begin(), count.end());
    REQUIRE(*most - *least <= 1 + 1);
    REQUIRE(*least > 0);
    // About one image of each shard for every `limit` bytes, not more.
    REQUIRE(images <= shards * (3000 * kMiB / limit + 2));
  }
}

TEST_CASE("a server that came back goes on where its images ended", "[image_schedule]") {
  const ImageSchedule::Start fresh{10, 100, 7}, old{90, 100, 3};
  ImageSchedule schedule({.log_bytes = 100, .cores = 2}, {fresh, old});
  CHECK(schedule.TrimBefore() == 3);
  CHECK_FALSE(schedule.Due(10));
  CHECK(schedule.Due(11) == 1);
  schedule.Begin(1, 11);
  schedule.Boundary(9);
  schedule.Done(100);
  CHECK(schedule.TrimBefore() == 7);
  CHECK_FALSE(schedule.Due(90));
  CHECK(schedule.Due(91) == 0);
  schedule.Begin(0, 91);
  schedule.Failed(95);
  CHECK_FALSE(schedule.Due(95 + 100 / 8 - 1));
  CHECK(schedule.Due(95 + 100 / 8) == 0);
  CHECK(schedule.TrimBefore() == 7);
}

}  // namespace
}  // namespace strata::server
