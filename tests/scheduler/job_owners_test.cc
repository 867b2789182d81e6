#include "scheduler/job_owners.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "proto/runtime/base/manual_timer.h"
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

TEST_CASE("a job that is not there is nobody's", "[owners]") {
  Fixture f;
  JobRef ref;
  ref.set_job(77);
  CHECK(absl::IsNotFound(f.scheduler->OwnJob(Operator("me"), ref).status()));
}

}  // namespace
}  // namespace strata::scheduler
