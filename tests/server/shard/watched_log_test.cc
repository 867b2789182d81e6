// A log whose appends become slow is told.
#include "server/shard/watched_log.h"

#include <catch2/catch.hpp>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/base/manual_timer.h"
#include "storage/log/record.h"
#include "tests/sim/memory_log.h"

namespace strata::server {
namespace {

// Its appends take as long as they are told to.
class TimedLog final : public sim::MemoryLog {
 public:
  TimedLog(ManualTimer* timer, const absl::Duration* each) : timer_(timer), each_(each) {}
  using sim::MemoryLog::Append;
  absl::StatusOr<storage::LogPosition> Append(std::span<const storage::LogEntry> entries) override {
    timer_->Advance(*each_);
    return sim::MemoryLog::Append(entries);
  }

 private:
  ManualTimer* const timer_;
  const absl::Duration* const each_;
};

TEST_CASE("appends that take ten times as long as before make a slow disk", "[slow_disk]") {
  ManualTimer timer;
  absl::Duration each = absl::Milliseconds(2);
  WatchedLog log(std::make_unique<TimedLog>(&timer, &each), &timer);
  const auto append = [&](absl::Duration span) {
    for (const absl::Time end = timer.Now() + span; timer.Now() < end;) {
      REQUIRE(log.Append(storage::LogEntry{}).ok());
    }
  };
  append(absl::Seconds(30));
  CHECK_FALSE(log.slow(timer.Now()));
  CHECK(log.stats().records > 10000);
  each = absl::Milliseconds(40);
  append(absl::Seconds(12));
  const auto slow = log.slow(timer.Now());
  REQUIRE(slow);
  CHECK(slow->now == absl::Milliseconds(40));
  CHECK(slow->usual == absl::Milliseconds(2));
  each = absl::Milliseconds(2);
  append(absl::Seconds(12));
  CHECK_FALSE(log.slow(timer.Now()));
}

}  // namespace
}  // namespace strata::server
