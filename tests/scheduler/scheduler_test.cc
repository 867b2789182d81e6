// The Scheduler object and its gRPC service: the same day of a job through both.
#include "scheduler/scheduler.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>

#include "proto/runtime/base/manual_timer.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/runtime/transport/grpc_scheduler_client.h"
#include "scheduler/scheduler_service.h"
#include "scheduler/store/memory_metadata_store.h"
#include "scheduler/store/rocks_metadata_store.h"
#include "tests/scheduler/failing_store.h"
#include "tests/scheduler/one_job.h"
#include "tests/temp_folder.h"

namespace strata::scheduler {
namespace {

void DayOfAJob(SchedulerClient& client, const std::string& directory) {
  Nodes nodes;
  auto reply = client.Submit(Job("day", directory), kTimeout);
  INFO(reply.status());
  REQUIRE(reply.ok());
  REQUIRE(client.Submit(Job("day", directory), kTimeout)->job() == reply->job());  // same request
  SubmitRequest other = Job("day", directory);
  other.set_request_id("another");
  REQUIRE(client.Submit(other, kTimeout).status().code() == absl::StatusCode::kAlreadyExists);
  REQUIRE(Get(client, "day").state() == PENDING);
  REQUIRE(Get(client, "day").conditions().rbegin()->reason() == "WaitingForServers");

  nodes.Until(client, [&] { return Get(client, "day").state() != PENDING; });
  REQUIRE(Get(client, "day").state() == RUNNING);
  REQUIRE(Get(client, "day").total_steps() == 16);
  nodes.Until(client, [&] { return Get(client, "day").state() != RUNNING; });
  const JobStatus status = Get(client, "day");
  INFO(status.DebugString());
  REQUIRE(status.state() == SUCCEEDED);
  REQUIRE(status.step() == 16);
  REQUIRE(status.examples() == 32);
  REQUIRE(status.model_hash().size() == 32);
  REQUIRE(status.checkpoint() == directory + "/step-000000000016");
  auto manifest = ReadManifest(status.checkpoint());
  REQUIRE(manifest.ok());
  REQUIRE(manifest->step() == 16);
  REQUIRE(manifest->model_hash() == status.model_hash());
  REQUIRE(manifest->job().metadata().name() == "day");
  auto cluster = client.GetCluster(kTimeout);
  REQUIRE(cluster->nodes_size() == 2);
  REQUIRE(cluster->nodes(0).alive());
  REQUIRE(cluster->scheduler_version() == "test");
  REQUIRE(client.ListJobs(kTimeout)->jobs_size() == 1);
}

TEST_CASE("a job's day, called directly", "[scheduler]") {
  TempFolder folder;
  ManualTimer timer;
  auto scheduler = Start(MakeMemoryMetadataStore(), &timer);
  DayOfAJob(*scheduler, folder.path() + "/c");
}

TEST_CASE("a job's day over gRPC, and errors that arrive as they were", "[scheduler]") {
  TempFolder folder;
  ManualTimer timer;
  auto scheduler = Start(MakeMemoryMetadataStore(), &timer);
  auto service = SchedulerService::Start({.scheduler = scheduler.get()});
  INFO(service.status());
  REQUIRE(service.ok());
  auto client = MakeGrpcSchedulerClient((*service)->address(), nullptr);
  DayOfAJob(*client, folder.path() + "/c");

  REQUIRE(absl::IsNotFound(client->GetJob({}, kTimeout).status()));
  NodeReport stranger;
  stranger.set_name("x");
  stranger.set_role(WORKER);
  stranger.set_incarnation(1);
  stranger.set_session(99);
  REQUIRE(absl::IsUnauthenticated(client->Sync(stranger, kTimeout).status()));
  // The port is taken.
  REQUIRE(SchedulerService::Start({.scheduler = scheduler.get(), .address = (*service)->address()})
              .status()
              .code() == absl::StatusCode::kAlreadyExists);
  REQUIRE(absl::IsPermissionDenied(
      SchedulerService::Start({.scheduler = scheduler.get(), .address = "0.0.0.0:0"}).status()));
  // Gone: the error names who does not answer.
  const std::string address = (*service)->address();
  scheduler->Stop();
  service->reset();
  const absl::Status gone = client->ListJobs(kTimeout).status();
  REQUIRE(absl::IsUnavailable(gone));
  REQUIRE(std::string(gone.message()).find(address) != std::string::npos);
}

TEST_CASE("killing the scheduler stops nothing: jobs, sessions and generations are there again",
          "[scheduler]") {
  TempFolder folder;
  ManualTimer timer;
  Nodes nodes;
  const auto open = [&] {
    auto store = OpenRocksMetadataStore(folder.path() + "/metadata");
    REQUIRE(store.ok());
    return Start(*std::move(store), &timer);
  };
  auto scheduler = open();
  SubmitRequest day = Job("day", folder.path() + "/c");
  day.mutable_job()->mutable_spec()->mutable_checkpoint()->set_every_steps(4);
  REQUIRE(scheduler->Submit(day, kTimeout).ok());
  size_t halfway = 0;
  for (int i = 0; i < 400 && Get(*scheduler, "day").state() != SUCCEEDED; ++i) {
    const uint64_t server = nodes.servers.at("s0").session();
    const uint64_t worker = nodes.worker.session();
    nodes.Round(*scheduler);
    if (server != 0) REQUIRE(nodes.servers.at("s0").session() == server);
    if (worker != 0) REQUIRE(nodes.worker.session() == worker);
    const JobStatus before = Get(*scheduler, "day");
    scheduler.reset();
    timer.Advance(absl::Hours(1));  // however long it was away
    scheduler = open();
    scheduler->Tick();
    const JobStatus after = Get(*scheduler, "day");
    REQUIRE(after.state() == before.state());
    REQUIRE(after.conditions_size() == before.conditions_size());
    REQUIRE(after.generation() == 1);
    REQUIRE(after.checkpoint() == before.checkpoint());
    if (after.checkpoint().empty()) continue;
    // Nobody is told of less than what is on disk.
    const uint64_t saved =
        std::stoull(after.checkpoint().substr(after.checkpoint().rfind('-') + 1));
    REQUIRE(after.step() >= saved);
    REQUIRE(after.examples() >= 2 * saved);
    if (saved < 16) ++halfway;
  }
  REQUIRE(halfway > 0);
  REQUIRE(Get(*scheduler, "day").state() == SUCCEEDED);
  REQUIRE(Get(*scheduler, "day").rollbacks() == 0);
  REQUIRE(scheduler->Submit(day, kTimeout)->job() == 1);
}

TEST_CASE("a checkpoint folder that is not empty is taken only if one says how", "[scheduler]") {
  TempFolder folder;
  const std::string directory = folder.path() + "/c";
  ManualTimer timer;
  auto scheduler = Start(MakeMemoryMetadataStore(), &timer);
  Manifest manifest;
  SubmitRequest first = Job("a", directory);
  *manifest.mutable_job() = first.job();
  manifest.set_step(5);
  REQUIRE(WriteManifest(directory + "/step-000000000005", manifest).ok());
  const absl::Status refused = scheduler->Submit(first, kTimeout).status();
  REQUIRE(absl::IsFailedPrecondition(refused));
  REQUIRE(std::string(refused.message()).find("--resume") != std::string::npos);
  REQUIRE(std::string(refused.message()).find("--overwrite") != std::string::npos);

  // Of another kind of job: refused, with the field.
  SubmitRequest resume = Job("a", directory);
  resume.set_resume(true);
  const absl::Status other = scheduler->Submit(resume, kTimeout).status();
  REQUIRE(absl::IsFailedPrecondition(other));
  REQUIRE(std::string(other.message()).find("spec.") != std::string::npos);

  SubmitRequest both = resume;
  both.set_overwrite(true);
  REQUIRE(absl::IsInvalidArgument(scheduler->Submit(both, kTimeout).status()));

  std::FILE* mine = std::fopen((directory + "/mine.txt").c_str(), "w");
  std::fclose(mine);
  SubmitRequest overwrite = Job("a", directory);
  overwrite.set_overwrite(true);
  REQUIRE(scheduler->Submit(overwrite, kTimeout).ok());
  // It stays until the job is about to train.
  Nodes nodes;
  nodes.Until(*scheduler, [&] {
    const bool kept = ListCheckpoints(directory)->complete.size() == 1;
    REQUIRE(kept == (Get(*scheduler, "a").state() == PENDING));
    return !kept;
  });
  nodes.Until(*scheduler, [&] { return Get(*scheduler, "a").state() == SUCCEEDED; });
  REQUIRE(ReadManifest(directory + "/step-000000000016").ok());
  REQUIRE_FALSE(std::filesystem::exists(directory + "/step-000000000005"));
  REQUIRE(std::filesystem::exists(directory + "/mine.txt"));  // no manifest names it
}

TEST_CASE("a job resumes from the newest checkpoint", "[scheduler]") {
  TempFolder folder;
  const std::string directory = folder.path() + "/c";
  ManualTimer timer;
  auto scheduler = Start(MakeMemoryMetadataStore(), &timer);
  Nodes nodes;
  SubmitRequest request = Job("a", directory);
  REQUIRE(scheduler->Submit(request, kTimeout).ok());
  nodes.Until(*scheduler, [&] { return Get(*scheduler, "a").step() >= 4; });
  // A manual checkpoint, asked for by another thread while the nodes go on.
  absl::StatusOr<CreateCheckpointReply> made = absl::UnknownError("");
  std::thread user([&] {
    CreateCheckpointRequest create;
    create.mutable_job()->set_name("a");
    create.set_wait_ms(20000);
    made = scheduler->CreateCheckpoint(create, kTimeout);
  });
  // The server hears of the cut by a poll that waits; only then does training go on.
  for (int cuts = 0; cuts == 0;) {
    NodeReport poll = nodes.servers.at("s0").Report();
    poll.set_wait_ms(20000);
    auto told = scheduler->Sync(poll, kTimeout);
    REQUIRE(told.ok());
    nodes.servers.at("s0").Act(*told);
    cuts = told->server_jobs(0).cuts_size();
  }
  nodes.Until(*scheduler, [&] { return !Get(*scheduler, "a").checkpoint().empty(); });
  user.join();
  INFO(made.status());
  REQUIRE(made.ok());
  REQUIRE(made->step() >= 4);
  for (auto& [name, sim] : nodes.disk) sim.complete = true;
  JobRef ref;
  ref.set_name("a");
  REQUIRE(scheduler->CancelJob(ref, kTimeout)->state() == CANCELLED);
  nodes.Close(*scheduler, "a");
  CreateCheckpointRequest late;
  late.mutable_job()->set_name("a");
  REQUIRE(absl::IsFailedPrecondition(scheduler->CreateCheckpoint(late, kTimeout).status()));

  request.set_request_id("a-2");
  request.set_resume(true);
  REQUIRE(scheduler->Submit(request, kTimeout).ok());
  nodes.Until(*scheduler, [&] { return Get(*scheduler, "a").state() == SUCCEEDED; });
  const JobStatus status = Get(*scheduler, "a");
  REQUIRE(status.job() == 2);
  REQUIRE(status.step() == 16);
  bool loaded = false;
  for (const JobCondition& c : status.conditions()) {
    loaded |= c.message().find(made->directory()) != std::string::npos;
  }
  REQUIRE(loaded);
}

TEST_CASE("nothing is shown that is not recorded, and work goes on when the disk is back",
          "[scheduler]") {
  bool fails = false;
  ManualTimer timer;
  auto scheduler = Start(std::make_unique<FailingStore>(&fails, MakeMemoryMetadataStore()), &timer);
  fails = true;
  const absl::Status refused = scheduler->Submit(Job("a", ""), kTimeout).status();
  REQUIRE(absl::IsUnavailable(refused));
  REQUIRE(std::string(refused.message()).find("disk full") != std::string::npos);
  REQUIRE(absl::IsUnavailable(scheduler->ListJobs(kTimeout).status()));
  fails = false;
  REQUIRE(scheduler->Submit(Job("a", ""), kTimeout)->job() == 1);  // the same request
  REQUIRE(scheduler->ListJobs(kTimeout)->jobs_size() == 1);
  REQUIRE(scheduler->Counters().append_failures >= 1);
}

TEST_CASE("a long poll ends with news, with its time, or with the scheduler", "[scheduler]") {
  TempFolder folder;
  ManualTimer timer;
  auto scheduler = Start(MakeMemoryMetadataStore(), &timer);
  Nodes nodes;
  nodes.Round(*scheduler);
  NodeReport idle = nodes.worker.Report();
  idle.set_wait_ms(1000);
  const absl::Time start = timer.Now();
  std::thread time([&] {
    timer.AwaitAlarms(1);
    timer.AdvanceTo(timer.next());
  });
  REQUIRE(scheduler->Sync(idle, kTimeout)->worker_jobs_size() == 0);  // its time
  time.join();
  REQUIRE(timer.Now() - start == absl::Seconds(1));
  idle.set_wait_ms(60000);
  std::thread user([&] { REQUIRE(scheduler->Submit(Job("a", ""), kTimeout).ok()); });
  auto news = scheduler->Sync(idle, kTimeout);
  user.join();
  if (news->worker_jobs_size() == 0) news = scheduler->Sync(idle, kTimeout);
  REQUIRE(news->worker_jobs_size() == 1);
  REQUIRE(news->worker_jobs(0).make_index());
  idle.set_seen_version(news->version());
  std::thread stopper([&] { scheduler->Stop(); });
  REQUIRE(absl::IsUnavailable(scheduler->Sync(idle, kTimeout).status()));
  stopper.join();
}

TEST_CASE("long polls of users end by the scheduler's timer", "[scheduler]") {
  TempFolder folder;
  ManualTimer timer;
  auto scheduler = Start(MakeMemoryMetadataStore(), &timer);
  Nodes nodes;
  REQUIRE(scheduler->Submit(Job("a", folder.path() + "/c"), kTimeout).ok());
  nodes.Until(*scheduler, [&] { return Get(*scheduler, "a").step() >= 1; });
  const auto after = [&](absl::Duration wait, const std::function<void()>& poll) {
    const absl::Time start = timer.Now();
    std::thread time([&] {
      timer.AwaitAlarms(1);
      timer.AdvanceTo(timer.next());
    });
    poll();
    time.join();
    REQUIRE(timer.Now() - start == wait);
  };
  after(absl::Milliseconds(700), [&] {
    CreateCheckpointRequest create;
    create.mutable_job()->set_name("a");
    create.set_wait_ms(700);
    const absl::Status late = scheduler->CreateCheckpoint(create, kTimeout).status();
    REQUIRE(absl::IsDeadlineExceeded(late));
  });
  after(absl::Seconds(10), [&] {  // the scheduler's own limit
    GetEventsRequest events;
    events.set_after_sequence(scheduler->GetEvents({}, kTimeout)->last_sequence());
    events.set_wait_ms(60000);
    REQUIRE(scheduler->GetEvents(events, kTimeout)->events_size() == 0);
  });
}

// A timer in whose process the wall clock was set by an hour.
class SetTimer : public ManualTimer {
 public:
  absl::Time Wall(absl::Time time) const override { return time + absl::Hours(1); }
};

TEST_CASE("what is recent to users is so whatever their clock shows", "[scheduler]") {
  SetTimer timer;
  auto scheduler = Start(MakeMemoryMetadataStore(), &timer);
  Nodes nodes;
  nodes.Round(*scheduler);
  const absl::Time heard = timer.Now();
  timer.Advance(absl::Seconds(3));
  const auto cluster = scheduler->GetCluster(kTimeout);
  REQUIRE(cluster->nodes_size() == 2);
  for (const NodeStatus& node : cluster->nodes()) {
    REQUIRE(node.last_seen_unix_ms() == absl::ToUnixMillis(heard + absl::Hours(1)));
  }
  GetEventsRequest events;
  events.set_since_ago_ms(2999);
  REQUIRE(scheduler->GetEvents(events, kTimeout)->events_size() == 0);
  events.set_since_ago_ms(3000);
  REQUIRE(scheduler->GetEvents(events, kTimeout)->events_size() == 3);
}

TEST_CASE("leases lapse at ticks, which the timer gives", "[scheduler]") {
  ManualTimer timer;
  auto started = Scheduler::Start({.store = MakeMemoryMetadataStore(),
                                   .timer = &timer,
                                   .lease = absl::Seconds(10),
                                   .tick_interval = absl::Milliseconds(100)});
  REQUIRE(started.ok());
  Scheduler& scheduler = **started;
  Nodes nodes;
  nodes.Round(scheduler);
  const absl::Time start = timer.Now();
  const auto tick = [&] {
    timer.AdvanceTo(timer.next());
    timer.AwaitAlarms(1);  // the tick is over: the next one is set
  };
  timer.AwaitAlarms(1);
  for (int i = 0; i < 100; ++i) tick();
  REQUIRE(timer.Now() - start == absl::Seconds(10));
  REQUIRE(scheduler.Counters().live_servers == 1);
  tick();
  REQUIRE(scheduler.Counters().live_servers == 0);
  REQUIRE(scheduler.Counters().live_workers == 0);
}

TEST_CASE("a record that cannot be read stops the start", "[scheduler]") {
  auto store = MakeMemoryMetadataStore();
  REQUIRE(store->Append({{"node/x", "\xff\xff\xff"}}).ok());
  auto scheduler = Scheduler::Start({.store = std::move(store)});
  REQUIRE(absl::IsDataLoss(scheduler.status()));
  REQUIRE(std::string(scheduler.status().message()).find("node/x") != std::string::npos);
}

}  // namespace
}  // namespace strata::scheduler
