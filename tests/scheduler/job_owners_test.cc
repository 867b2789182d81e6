#include "scheduler/job_owners.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/runtime/files/manifest_io.h"
#include "scheduler/scheduler.h"
#include "scheduler/store/memory_metadata_store.h"
#include "tests/scheduler/one_job.h"
#include "tests/temp_folder.h"

namespace strata::scheduler {
namespace {

Caller Operator(const std::string& name) { return {.name = name, .role = Role::kOperator}; }

class Fixture {
 public:
  Fixture() {
    auto started = Scheduler::Start({.store = MakeMemoryMetadataStore(),
                                     .timer = &timer,
                                     .tick_interval = absl::ZeroDuration(),
                                     .admins = {"root"},
                                     .await_files = true});
    REQUIRE(started.ok());
    scheduler = *std::move(started);
  }

  // A job of `caller` that names these owners too.
  JobRef Submit(const Caller& caller, const std::vector<std::string>& owners) {
    const std::string name = "job-" + std::to_string(++jobs_);
    SubmitRequest request = Job(name, folder_.path() + "/" + name);
    for (const std::string& owner : owners) {
      request.mutable_job()->mutable_metadata()->add_owners(owner);
    }
    const auto reply = scheduler->SubmitAs(caller, request, kTimeout);
    INFO(reply.status());
    REQUIRE(reply.ok());
    JobRef ref;
    ref.set_job(reply->job());
    return ref;
  }

  ManualTimer timer;
  std::unique_ptr<Scheduler> scheduler;

 private:
  const TempFolder folder_;
  int jobs_ = 0;
};

TEST_CASE("who submitted a job, whom it names and admins decide about it", "[owners]") {
  Fixture f;
  const JobRef job = f.Submit(Operator("me"), {"friend"});
  for (const char* name : {"me", "friend", "root"}) {
    const auto own = f.scheduler->OwnJob(Operator(name), job);
    REQUIRE(own.ok());
    CHECK(*own == job.job());
  }
  const absl::Status refused = f.scheduler->OwnJob(Operator("other"), job).status();
  CHECK(absl::IsPermissionDenied(refused));
  CHECK(absl::StrContains(refused.message(), "operator/other"));
  CHECK(absl::StrContains(refused.message(), "its owners are friend, me"));
  const auto status = f.scheduler->GetJob(job, kTimeout);
  REQUIRE(status->owners_size() == 2);
  CHECK(status->owners(0) == "friend");
  CHECK(status->owners(1) == "me");
}

TEST_CASE("a job may be every operator's, and is where nobody is asked", "[owners]") {
  Fixture f;
  CHECK(f.scheduler->OwnJob(Operator("other"), f.Submit(Operator("me"), {"*"})).ok());
  const JobRef nobodys = f.Submit(Caller::Nobody(), {"friend"});
  CHECK(f.scheduler->OwnJob(Operator("other"), nobodys).ok());
  CHECK(f.scheduler->GetJob(nobodys, kTimeout)->owners().empty());
  CHECK(f.scheduler->OwnJob(Caller::Nobody(), f.Submit(Operator("me"), {})).ok());
}

TEST_CASE("checkpoints of a job are its owners' to replace and to go on from", "[owners]") {
  Fixture f;
  const TempFolder folder;
  const std::string directory = folder.path() + "/c";
  SubmitRequest request = Job("first", directory);
  request.mutable_job()->mutable_metadata()->add_owners("friend");
  REQUIRE(f.scheduler->SubmitAs(Operator("me"), request, kTimeout).ok());
  Nodes nodes;
  nodes.Until(*f.scheduler, [&] { return Get(*f.scheduler, "first").state() == SUCCEEDED; });
  nodes.Close(*f.scheduler, "first");
  const auto list = ListCheckpoints(directory);
  REQUIRE(list.ok());
  REQUIRE_FALSE(list->complete.empty());
  // Whoever lost the scheduler's records knows them as well.
  const auto& owners = list->complete.back().manifest.job().metadata().owners();
  CHECK(std::vector<std::string>(owners.begin(), owners.end()) ==
        std::vector<std::string>{"friend", "me"});

  SubmitRequest next = Job("second", directory);
  const bool overwrite = GENERATE(true, false);
  next.set_overwrite(overwrite);
  next.set_resume(!overwrite);
  if (!overwrite) next.mutable_job()->mutable_spec()->mutable_training()->set_epochs(2);
  const absl::Status refused = f.scheduler->SubmitAs(Operator("other"), next, kTimeout).status();
  INFO(refused);
  CHECK(absl::IsPermissionDenied(refused));
  CHECK(absl::StrContains(refused.message(), absl::StrCat("operator/other may not ",
                                                          overwrite ? "replace" : "go on from",
                                                          " checkpoint ", directory, "/step-")));
  CHECK(absl::StrContains(refused.message(), "its owners are friend, me; ask one of them"));
  CHECK(absl::StrContains(refused.message(), "or give spec.checkpoint.directory another value"));
  CHECK(ListCheckpoints(directory)->complete.size() == list->complete.size());
  const Caller may = GENERATE(Operator("me"), Operator("friend"), Operator("root"));
  const auto taken = f.scheduler->SubmitAs(may, next, kTimeout);
  INFO(taken.status());
  CHECK(taken.ok());
}

// What server s0 keeps of a job that no record knows.
NodeReport Keeping(const JobUid& uid, const std::vector<std::string>& owners) {
  NodeReport report;
  report.set_name("s0");
  report.set_role(SERVER);
  report.set_incarnation(1);
  report.set_data_address("s0");
  report.set_cores(1);
  ServerJobReport& kept = *report.add_server_jobs();
  kept.set_job(3);
  kept.set_job_uid(uid.text());
  kept.set_state(ServerJobReport::QUARANTINED);
  kept.set_name("lost");
  Metadata& metadata = *kept.mutable_kept()->mutable_spec()->mutable_metadata();
  metadata.set_name("lost");
  for (const std::string& owner : owners) metadata.add_owners(owner);
  return report;
}

TEST_CASE("what servers keep of a lost job is its owners' to settle", "[owners]") {
  Fixture f;
  const JobUid lost{5, 5};
  SettleQuarantineRequest purge;
  purge.set_action(SettleQuarantineRequest::PURGE);
  purge.set_job_uid(lost.text());
  purge.set_node("s0");
  SettleQuarantineRequest adopt = purge;
  adopt.set_action(SettleQuarantineRequest::ADOPT);
  const auto settle = [&](const Caller& caller, const SettleQuarantineRequest& request) {
    // It waits for the server, which hears of it.
    const absl::Status s =
        f.scheduler->SettleQuarantineAs(caller, request, absl::ZeroDuration()).status();
    UNSCOPED_INFO(s);
    return s;
  };
  SECTION("whom the job names") {
    REQUIRE(f.scheduler->Sync(Keeping(lost, {"friend", "me"}), kTimeout).ok());
    for (const SettleQuarantineRequest& request : {purge, adopt}) {
      const absl::Status refused = settle(Operator("other"), request);
      CHECK(absl::IsPermissionDenied(refused));
      CHECK(absl::StrContains(refused.message(), "operator/other may not "));
      CHECK(absl::StrContains(refused.message(), "its owners are friend, me; ask one of them"));
    }
    const Caller may =
        GENERATE(Operator("me"), Operator("friend"), Operator("root"), Caller::Nobody());
    CHECK(absl::IsFailedPrecondition(settle(may, adopt)));  // it is not all there
    CHECK(absl::IsDeadlineExceeded(settle(may, purge)));
  }
  SECTION("nobody that is known") {
    REQUIRE(f.scheduler->Sync(Keeping(lost, {}), kTimeout).ok());
    const absl::Status refused = settle(Operator("me"), purge);
    CHECK(absl::IsPermissionDenied(refused));
    CHECK(absl::StrContains(refused.message(),
                            "its owners are not known; ask an admin of the cluster "
                            "(strata-scheduler --admins NAME)"));
    CHECK(absl::IsDeadlineExceeded(settle(Operator("root"), purge)));
  }
  SECTION("every operator") {
    REQUIRE(f.scheduler->Sync(Keeping(lost, {"*"}), kTimeout).ok());
    CHECK(absl::IsDeadlineExceeded(settle(Operator("other"), purge)));
  }
}

TEST_CASE("a job that is not there is nobody's", "[owners]") {
  Fixture f;
  JobRef ref;
  ref.set_job(77);
  CHECK(absl::IsNotFound(f.scheduler->OwnJob(Operator("me"), ref).status()));
}

}  // namespace
}  // namespace strata::scheduler
