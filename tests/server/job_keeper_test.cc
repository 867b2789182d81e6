// The jobs of a server over their lives: a scheduler that says what the test wants, openings that
// fail as it wants, and a timer that it moves.
#include "server/job_keeper.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "google/protobuf/unknown_field_set.h"
#include "proto/core/ids.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/runtime/base/job_work.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "proto/wire/message_codec.h"
#include "tests/proto/runtime/files/hung_files.h"
#include "tests/server/keeper_fixture.h"
#include "tests/server/one_shard_job.h"

namespace strata::server {
namespace {

using Fixture = KeeperFixture;
using testing::Hang;

// What an opening meets first when it makes a log.
constexpr char kOpening[] = "log.rotate";

TEST_CASE("a job is opened, followed, replaced by a new generation, and closed", "[keeper]") {
  Fixture f;
  CHECK_FALSE(f.keeper->Busy());
  f.keeper->Follow(f.directive);
  CHECK(f.Settled().state() == ServerJobReport::OPEN);
  CHECK(f.Report().generation() == 1);
  CHECK(f.Report().reopened() == 0);
  CHECK(f.Serves());
  CHECK_FALSE(f.keeper->Busy());
  const ServerJob* const first = f.service.Find(kJob).get();
  f.keeper->Follow(f.directive);  // as often as one likes
  CHECK(f.service.Find(kJob).get() == first);
  CHECK(std::filesystem::exists(f.Folder() + "/generation-1/OPEN"));

  f.job().set_generation(2);
  f.keeper->Follow(f.directive);
  CHECK(f.Settled().generation() == 2);
  CHECK(f.Report().state() == ServerJobReport::OPEN);
  f.Await([&] { return !std::filesystem::exists(f.Folder() + "/generation-1"); });
  f.job().set_generation(1);  // late
  f.keeper->Follow(f.directive);
  CHECK(f.Report().generation() == 2);

  f.keeper->Fence();
  CHECK_FALSE(f.Serves());
  f.job().set_generation(2);
  f.keeper->Follow(f.directive);  // named again
  CHECK(f.Serves());

  f.job().set_close(true);
  f.keeper->Follow(f.directive);
  CHECK_FALSE(f.Serves());
  f.AwaitGone();
  CHECK_FALSE(std::filesystem::exists(f.Folder()));
  f.keeper->Follow(f.directive);  // nothing is left to close
  f.AwaitGone();
}

TEST_CASE("a job that says what the server does not know fails, and is not opened without it",
          "[keeper]") {
  Fixture f;
  ModelSpec& model = *f.job().mutable_spec()->mutable_spec()->mutable_model();
  model.GetReflection()->MutableUnknownFields(&model)->AddVarint(12345, 1);
  f.keeper->Follow(f.directive);
  const ServerJobReport report = f.Settled();
  INFO(report.message());
  CHECK(report.state() == ServerJobReport::FAILED);
  CHECK(absl::StrContains(
      report.message(),
      " is older than the scheduler: it does not know field 12345 of spec.model; "));
  CHECK(absl::StartsWith(report.message(), "server "));
  CHECK_FALSE(f.Serves());
}

TEST_CASE("an opening that may yet succeed is tried again by the timer", "[keeper]") {
  Fixture f;
  const ScopedFailpoint full(
      kOpening, {.act = FailWith(absl::ResourceExhaustedError("disk full")), .hits = 2});
  const absl::Time start = f.timer.Now();
  f.keeper->Follow(f.directive);
  for (int i = 1; i <= 2; ++i) {
    f.timer.AwaitAlarms(1);
    CHECK(f.timer.next() == start + i * JobKeeper::kReopenAfter);
    CHECK(FailpointHits(kOpening) == static_cast<uint64_t>(i));
    CHECK(f.Report().state() == ServerJobReport::OPENING);
    CHECK(f.Report().message() == "disk full");
    CHECK(f.keeper->Busy());
    CHECK_FALSE(f.Serves());
    f.timer.Advance(JobKeeper::kReopenAfter - absl::Milliseconds(1));
    CHECK(f.timer.alarms() == 1);  // not yet
    f.timer.Advance(absl::Milliseconds(1));
  }
  CHECK(f.Settled().state() == ServerJobReport::OPEN);
  CHECK(f.Report().message().empty());
  CHECK(f.Serves());
}

TEST_CASE("who waits to try again is closed, replaced and ended at once", "[keeper]") {
  Fixture f;
  const ScopedFailpoint full(kOpening,
                             {.act = FailWith(absl::UnavailableError("not reached")), .hits = 2});
  f.keeper->Follow(f.directive);
  f.timer.AwaitAlarms(1);
  f.job().set_generation(2);
  f.keeper->Follow(f.directive);  // ends the first one's wait; the second fails as well
  f.Await([&] { return f.Report().message() == "not reached" && f.Report().generation() == 2; });
  f.timer.AwaitAlarms(1);
  CHECK(f.Report().generation() == 2);
  CHECK(f.Report().message() == "not reached");
  f.job().set_close(true);
  f.keeper->Follow(f.directive);
  f.AwaitGone();
  CHECK(f.timer.alarms() == 0);

  ArmFailpoint(kOpening, {.act = FailWith(absl::UnavailableError("not reached"))});
  f.job().set_close(false);
  f.job().set_generation(3);
  f.keeper->Follow(f.directive);
  f.timer.AwaitAlarms(1);
  f.keeper.reset();  // does not wait for time, either
  CHECK(f.timer.alarms() == 0);
}

TEST_CASE("what no later try can mend is told, and not tried", "[keeper]") {
  Fixture f;
  const auto [status, state] =
      GENERATE(std::pair(absl::InvalidArgumentError("why"), ServerJobReport::FAILED),
               std::pair(absl::FailedPreconditionError("why"), ServerJobReport::FAILED),
               std::pair(absl::NotFoundError("why"), ServerJobReport::FAILED),
               std::pair(absl::PermissionDeniedError("why"), ServerJobReport::FAILED),
               std::pair(absl::DataLossError("why"), ServerJobReport::LOST));
  INFO(status);
  const ScopedFailpoint fails(kOpening, {.act = FailWith(status)});
  f.keeper->Follow(f.directive);
  CHECK(f.Settled().state() == state);
  CHECK(f.Report().message() == "why");
  CHECK_FALSE(f.keeper->Busy());
  CHECK_FALSE(f.Serves());
  f.keeper->Follow(f.directive);
  f.keeper.reset();
  CHECK(FailpointHits(kOpening) == 1);
  CHECK(f.timer.alarms() == 0);
}

TEST_CASE("a job that was open and is not here is lost", "[keeper]") {
  Fixture f;
  f.job().set_was_open(true);
  f.keeper->Follow(f.directive);
  CHECK(f.Settled().state() == ServerJobReport::LOST);
  CHECK(absl::StrContains(f.Report().message(), "was open here and is not in "));
}

TEST_CASE("an opening that nobody wants any more is seen by nobody", "[keeper]") {
  Fixture f;
  absl::Notification begun, go_on;
  const ScopedFailpoint slow(kOpening, {.act =
                                            [&] {
                                              begun.Notify();
                                              go_on.WaitForNotification();
                                              return absl::OkStatus();
                                            },
                                        .hits = 1});
  f.keeper->Follow(f.directive);
  begun.WaitForNotification();
  f.job().set_close(true);
  f.keeper->Follow(f.directive);  // waits for nothing
  CHECK(f.Report().state() == ServerJobReport::KEPT);
  go_on.Notify();
  f.AwaitGone();
  CHECK_FALSE(f.Serves());
}

// Pushes the next step of a job of one lane: more rows than its memory holds.
void PushManyRows(Fixture& f, uint64_t number) {
  const auto job = f.service.Find(kJob);
  REQUIRE(job != nullptr);
  const JobPlan& plan = job->plan();
  const wire::Header header{kJob, SessionId(5), plan.generation, plan.map_epoch};
  const auto call = [&](DataMethod method, Buffer request) {
    f.service.Handle(Caller::Nobody(), method, std::move(request), [](absl::StatusOr<Buffer>) {});
  };
  call(DataMethod::kOpenSession,
       wire::EncodeOpenSessionRequest(wire::OpenSessionFor(header, plan.identity)));
  std::vector<Key> keys;
  for (uint64_t k = 0; k < 20'000; ++k) keys.emplace_back(number * 20'000 + k);
  std::sort(keys.begin(), keys.end(), [&](Key a, Key b) {
    return plan.tables[0].PositionOfKey(a) < plan.tables[0].PositionOfKey(b);
  });
  const std::vector<ShardId> shards = {ShardId(0)};
  std::vector<wire::PushContribution> contributions = {{{0, 1}, 1, {}}};
  contributions[0].groups.push_back({TableId(0), ShardId(0), keys, plan.tables[0].dim()});
  auto encoder = wire::PushRequestEncoder::Make(shards, contributions);
  REQUIRE(encoder.ok());
  std::ranges::fill(encoder->values(0), 1.0f);
  wire::PushFields fields;
  fields.header = header;
  fields.sequence = Sequence(number);
  fields.step = Step(job->Report().max_clock() + 1);
  call(DataMethod::kPush, encoder->Finish(fields));
}

TEST_CASE("a damaged tier has its job opened anew: at once, and from then on after a while",
          "[keeper]") {
  Fixture f;
  f.job().mutable_spec()->mutable_spec()->mutable_storage()->set_dram_bytes_per_server("1MiB");
  f.job().mutable_spec()->mutable_spec()->mutable_storage()->set_ssd("rowfile");
  f.keeper->Follow(f.directive);
  INFO(f.Settled().message());
  REQUIRE(f.Settled().state() == ServerJobReport::OPEN);
  f.keeper->Tend();  // nothing to do
  CHECK(f.Report().reopened() == 0);
  const absl::Time start = f.timer.Now();
  const auto damage = [&](uint64_t number) {
    const ScopedFailpoint bad("tier.write", {.act = FailWith(absl::DataLossError("bad block"))});
    PushManyRows(f, number);
    const auto job = f.service.Find(kJob);
    while (job->tier_damage().ok()) std::this_thread::yield();
  };
  damage(1);
  f.keeper->Tend();
  CHECK(f.Settled().state() == ServerJobReport::OPEN);
  CHECK(f.Report().reopened() == 1);
  CHECK(absl::StrContains(f.Report().reopened_because(), "bad block"));
  CHECK(f.timer.alarms() == 0);

  damage(2);
  f.keeper->Tend();
  // The job before it, which waits to try its commit again, is closed first.
  f.Await([&] { return f.timer.next() == start + JobKeeper::kReopenAfter; });
  CHECK(f.Report().state() == ServerJobReport::OPENING);
  CHECK(absl::StrContains(f.Report().message(), "bad block"));
  CHECK_FALSE(f.Serves());
  f.timer.Advance(JobKeeper::kReopenAfter);
  CHECK(f.Settled().state() == ServerJobReport::OPEN);
  CHECK(f.Report().reopened() == 2);
  CHECK(f.Serves());
}

TEST_CASE("a job whose files hang holds up nobody, and is given up by its next generation",
          "[keeper][hang]") {
  Fixture other;  // of another folder, but of this process
  Fixture f;
  Hang files(f.Folder() + "/generation-1/log");  // it has the job's folder then
  f.keeper->Follow(f.directive);
  files->AwaitHung(1);
  CHECK(f.Report().state() == ServerJobReport::OPENING);
  other.keeper->Follow(other.directive);
  CHECK(other.Settled().state() == ServerJobReport::OPEN);

  f.job().set_generation(2);
  f.keeper->Follow(f.directive);
  CHECK(f.Report().generation() == 2);
  CHECK(f.Report().state() == ServerJobReport::OPENING);
  CHECK(f.Report().troubles().empty());  // it may just be slow
  f.timer.Advance(JobWork::kPatience);
  f.keeper->Tend();
  CHECK(f.Settled().state() == ServerJobReport::OPEN);
  CHECK(f.Serves());
  REQUIRE(f.Report().troubles_size() == 1);
  CHECK(f.Report().troubles(0).reason() == "FilesHang");
  const ServerJob* const open = f.service.Find(kJob).get();
  files->Release();
  f.Await([&] { return f.Report().troubles().empty(); });
  CHECK(f.service.Find(kJob).get() == open);  // what woke up was given up
  f.Await([&] { return !std::filesystem::exists(f.Folder() + "/generation-1"); });
  CHECK(std::filesystem::exists(f.Folder() + "/generation-2/OPEN"));
}

TEST_CASE("an opening that comes no further says so", "[keeper][hang]") {
  Fixture f;
  Hang files(f.Folder() + "/generation-1/log");
  f.keeper->Follow(f.directive);
  files->AwaitHung(1);
  f.timer.Advance(absl::Minutes(4));
  CHECK(f.Report().message().empty());  // a big image takes its time
  f.timer.Advance(absl::Minutes(2));
  CHECK(f.Report().state() == ServerJobReport::OPENING);
  CHECK(absl::StrContains(f.Report().message(), "no step of the opening has ended"));
  CHECK(absl::StrContains(f.Report().message(), f.folder.path() + "/s answer"));
  files->Release();
  CHECK(f.Settled().state() == ServerJobReport::OPEN);
  CHECK(f.Report().message().empty());
}

TEST_CASE("a job has four threads that hang at most, says so, and opens when one comes back",
          "[keeper][hang]") {
  Fixture f;
  Hang files(f.Folder());
  for (uint64_t generation = 1; generation <= JobWork::kMostThreads + 1; ++generation) {
    f.job().set_generation(generation);
    f.keeper->Follow(f.directive);
    f.timer.Advance(JobWork::kPatience);
    f.keeper->Tend();
    files->AwaitHung(std::min<uint64_t>(generation, JobWork::kMostThreads));
  }
  CHECK(f.Report().generation() == JobWork::kMostThreads + 1);
  REQUIRE(f.Report().troubles_size() == 1);
  CHECK(absl::StrContains(f.Report().troubles(0).message(), "4 pieces of work"));
  CHECK(absl::StrContains(f.Report().troubles(0).message(), "waits for them"));
  CHECK(files->hung() == JobWork::kMostThreads);
  files->Release();
  CHECK(f.Settled().state() == ServerJobReport::OPEN);
  CHECK(f.Report().generation() == JobWork::kMostThreads + 1);
}

TEST_CASE("removing that hangs is told of until it is done; the same job opens after it",
          "[keeper][hang]") {
  Fixture f;
  f.keeper->Follow(f.directive);
  REQUIRE(f.Settled().state() == ServerJobReport::OPEN);
  {
    Hang files(f.Folder());
    NodeDirective over = f.directive;
    over.mutable_server_jobs(0)->set_close(true);
    f.keeper->Follow(over);
    files->AwaitHung(1);
    CHECK_FALSE(f.Serves());
    CHECK(f.Report().state() == ServerJobReport::KEPT);
    CHECK(f.keeper->Busy());
    f.keeper->Follow(over);  // told again
    f.timer.Advance(2 * JobWork::kPatience);
    f.keeper->Tend();
    CHECK(f.Report().state() == ServerJobReport::KEPT);
    CHECK_FALSE(f.keeper->Busy());  // it will not be soon
    CHECK(files->hung() == 1);
  }
  f.AwaitGone();
  CHECK_FALSE(std::filesystem::exists(f.Folder()));
}

TEST_CASE("a copy that is named again while its files are removed opens when they are gone",
          "[keeper][hang][chain]") {
  Fixture f;
  f.directive = TwoCopies("log-a");
  f.keeper->Follow(f.directive);
  const auto open = [&] {
    const auto reports = f.keeper->Reports();
    return std::count_if(reports.begin(), reports.end(),
                         [](const auto& r) { return r.state() == ServerJobReport::OPEN; });
  };
  f.Await([&] { return open() == 2; });
  const std::string folder = ShardsFolder(f.folder.path() + "/s", kIdentity, 0);
  Hang files(folder);
  NodeDirective without = f.directive;
  without.mutable_server_jobs()->DeleteSubrange(0, 1);
  f.keeper->Follow(without);
  files->AwaitHung(1);
  NodeDirective again = TwoCopies("log-later");
  *again.mutable_server_jobs(1) = f.directive.server_jobs(1);
  f.keeper->Follow(again);
  f.timer.Advance(2 * JobWork::kPatience);
  f.keeper->Tend();
  const auto reports = f.keeper->Reports();
  REQUIRE(reports.size() == 2);
  CHECK(reports[0].state() == ServerJobReport::OPENING);
  REQUIRE(reports[0].troubles_size() == 1);
  CHECK(absl::StrContains(reports[0].troubles(0).message(), "what is next waits for them"));
  files->Release();
  f.Await([&] { return open() == 2; });
  CHECK(std::filesystem::exists(folder + "/generation-1/OPEN"));
}

TEST_CASE("a process begins while what it kept hangs, and tells of it", "[keeper][hang]") {
  Fixture f;
  const std::string far = f.folder.path() + "/far";
  f.job().mutable_spec()->mutable_spec()->mutable_storage()->set_directory(far);
  f.keeper->Follow(f.directive);
  REQUIRE(f.Settled().state() == ServerJobReport::OPEN);
  f.keeper.reset();
  Hang files(far);
  f.Restart();
  files->AwaitHung(1);
  // What is not told of would count as gone.
  CHECK(f.Report().state() == ServerJobReport::KEPT);
  CHECK(f.Report().job_uid() == kIdentity.job.text());
  CHECK(f.Report().kept_bytes() == 0);
  CHECK_FALSE(f.keeper->Busy());
  f.job().set_was_open(true);
  f.keeper->Follow(f.directive);
  CHECK(f.Report().state() == ServerJobReport::OPENING);
  files->Release();
  CHECK(f.Settled().state() == ServerJobReport::OPEN);
  CHECK(std::filesystem::exists(JobFolder(far + "/s", kIdentity) + "/generation-1/OPEN"));
  CHECK_FALSE(std::filesystem::is_empty(f.folder.path() + "/s/held"));
}

}  // namespace
}  // namespace strata::server
