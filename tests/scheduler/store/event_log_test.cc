#include "scheduler/store/event_log.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/scheduler/store/stored_records.h"

namespace strata::scheduler {
namespace {

const absl::Time kStart = absl::UnixEpoch() + absl::Seconds(1000);

using Store = std::map<std::string, std::string>;

void Save(EventLog& log, Store& store) {
  std::vector<MetadataChange> changes;
  log.TakeChanges(changes);
  REQUIRE(ApplyChanges(changes, store) == 0);
}

std::string All(const EventLog& log) { return log.Since(0, 0, 0).SerializeAsString(); }

TEST_CASE("events come in order, by job, time and sequence", "[event_log]") {
  EventLog log;
  log.Add(kStart, "NodeRegistered", "s0", 0, "a");
  log.Add(kStart + absl::Seconds(1), "Training", "", 7, "b");
  log.Add(kStart + absl::Seconds(2), "Training", "", 8, "c");
  const GetEventsReply all = log.Since(0, 0, 0);
  REQUIRE(all.events_size() == 3);
  CHECK(all.first_sequence() == 1);
  CHECK(all.last_sequence() == 3);
  CHECK(all.events(0).reason() == "NodeRegistered");
  CHECK(all.events(0).node() == "s0");
  CHECK(all.events(1).time_unix_ms() == 1001000);
  const GetEventsReply of_job = log.Since(0, 8, 0);
  REQUIRE(of_job.events_size() == 1);
  CHECK(of_job.events(0).message() == "c");
  CHECK(of_job.last_sequence() == 3);
  REQUIRE(log.Since(2, 0, 0).events_size() == 1);
  CHECK(log.Since(3, 0, 0).events_size() == 0);
  CHECK(log.Since(~uint64_t{0}, 0, 0).events_size() == 0);
  CHECK(log.Since(0, 0, 1002000).events_size() == 1);
  CHECK(log.Since(0, 0, 1002001).events_size() == 0);
}

TEST_CASE("since when is asked as a time, or as how long ago by the log's clock", "[event_log]") {
  GetEventsRequest request;
  CHECK(SinceUnixMs(request, kStart) == 0);
  request.set_since_unix_ms(999000);
  CHECK(SinceUnixMs(request, kStart) == 999000);
  request.set_since_ago_ms(0);
  CHECK(SinceUnixMs(request, kStart) == 1000000);
  request.set_since_ago_ms(400);
  CHECK(SinceUnixMs(request, kStart) == 999600);
  request.set_since_ago_ms(1001);  // the later of both
  CHECK(SinceUnixMs(request, kStart) == 999000);
  request.clear_since_unix_ms();
  CHECK(SinceUnixMs(request, kStart) == 998999);
  for (const int64_t ago : {int64_t{1} << 60, std::numeric_limits<int64_t>::max()}) {
    request.set_since_ago_ms(ago);
    CHECK(SinceUnixMs(request, kStart) <= 0);
  }
}

TEST_CASE("a restored log has the same events and goes on", "[event_log]") {
  EventLog log;
  Store store = {{"cluster", "x"}, {"job/1", "y"}};
  for (int i = 0; i < 5; ++i) log.Add(kStart, "R", "n", 0, absl::StrCat(i));
  Save(log, store);
  CHECK(store.size() == 7);
  EventLog restored;
  REQUIRE(restored.Restore(store).ok());
  CHECK(All(restored) == All(log));
  log.Add(kStart, "R", "n", 0, "next");
  restored.Add(kStart, "R", "n", 0, "next");
  CHECK(All(restored) == All(log));
  // Only what is new is written.
  std::vector<MetadataChange> changes;
  restored.TakeChanges(changes);
  CHECK(changes.size() == 1);
  changes.clear();
  restored.TakeChanges(changes);
  CHECK(changes.empty());
}

TEST_CASE("the log is bounded, in memory and in the store", "[event_log]") {
  EventLog log;
  Store store;
  const uint64_t total = EventLog::kMaxEvents + 100;
  for (uint64_t i = 1; i <= total; ++i) {
    log.Add(kStart, "R", "", 0, absl::StrCat(i));
    if (i % 3 == 0) Save(log, store);
  }
  Save(log, store);
  CHECK(store.size() == EventLog::kMaxEvents);
  const GetEventsReply kept = log.Since(0, 0, 0);
  REQUIRE(static_cast<size_t>(kept.events_size()) == EventLog::kMaxEvents);
  CHECK(kept.first_sequence() == 101);
  CHECK(kept.events(0).message() == "101");
  EventLog restored;
  REQUIRE(restored.Restore(store).ok());
  CHECK(All(restored) == All(log));
  restored.Add(kStart, "R", "", 0, "one more");
  Save(restored, store);
  CHECK(store.size() == EventLog::kMaxEvents);
}

TEST_CASE("more events than are kept between two saves leave no hole and no rest", "[event_log]") {
  EventLog log;
  Store store;
  for (int i = 0; i < 10; ++i) log.Add(kStart, "R", "", 0, "old");
  Save(log, store);
  for (uint64_t i = 0; i < 2 * EventLog::kMaxEvents; ++i) log.Add(kStart, "R", "", 0, "new");
  Save(log, store);
  CHECK(store.size() == EventLog::kMaxEvents);
  EventLog restored;
  REQUIRE(restored.Restore(store).ok());
  CHECK(All(restored) == All(log));
}

TEST_CASE("long messages are cut between characters", "[event_log]") {
  EventLog log;
  std::string text(EventLog::kMaxMessageBytes - 1, 'x');
  log.Add(kStart, "R", "", 0, text + "\xc3\xa4");  // the character would end one byte too late
  log.Add(kStart, "R", "", 0, text + "y");
  const GetEventsReply all = log.Since(0, 0, 0);
  CHECK(all.events(0).message() == text);
  CHECK(all.events(1).message() == text + "y");
}

TEST_CASE("a record that cannot be read is named", "[event_log]") {
  EventLog log;
  Store store = {{"event/00000000000000000007", "\xff\xff garbage"}};
  const absl::Status bad = log.Restore(store);
  CHECK(absl::IsDataLoss(bad));
  CHECK(std::string(bad.message()).find("event/00000000000000000007") != std::string::npos);
  Event event;
  event.set_sequence(3);
  EventLog other;
  CHECK(
      absl::IsDataLoss(other.Restore({{"event/00000000000000000004", event.SerializeAsString()}})));
}

}  // namespace
}  // namespace strata::scheduler
