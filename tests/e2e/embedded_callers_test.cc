// As who the processes of an embedded cluster call each other, and what they may.
#include <catch2/catch.hpp>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/runtime/credentials/caller.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/transport/inproc_transport.h"
#include "proto/runtime/transport/transport.h"
#include "proto/strata/control.pb.h"
#include "proto/wire/buffer.h"
#include "tests/e2e/cluster/small_job.h"
#include "tools/cluster/embedded/cluster.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata {
namespace {

std::string Who(const Caller& caller) {
  return caller.asked ? absl::StrCat(RoleName(caller.role), "/", caller.name) : "nobody";
}

// Notes who is told to handlers, as handlers see it.
class Noting : public DataTransport {
 public:
  struct Handler : public DataHandler {
    void Handle(const Caller& caller, DataMethod method, Buffer request, DataReply reply) override {
      {
        absl::MutexLock lock(&noting->mu_);
        noting->called_.insert(Who(caller));
        if (caller.jobs != nullptr && !caller.jobs->Get().empty()) {
          noting->with_sessions_.insert(Who(caller));
        }
      }
      inner->Handle(caller, method, std::move(request), std::move(reply));
    }
    Noting* noting = nullptr;
    DataHandler* inner = nullptr;
  };

  absl::StatusOr<std::unique_ptr<DataListener>> Listen(const std::string& address,
                                                       DataHandler* handler) override {
    absl::MutexLock lock(&mu_);
    handlers_.push_back(std::make_unique<Handler>());
    handlers_.back()->noting = this;
    handlers_.back()->inner = handler;
    return inner_->Listen(address, handlers_.back().get());
  }
  std::shared_ptr<DataChannel> Connect(const DataPeer& peer, const Caller& caller) override {
    return inner_->Connect(peer, caller);
  }

  std::set<std::string> called() const {
    absl::MutexLock lock(&mu_);
    return called_;
  }
  std::set<std::string> with_sessions() const {
    absl::MutexLock lock(&mu_);
    return with_sessions_;
  }

 private:
  const std::unique_ptr<DataTransport> inner_ = MakeInProcTransport();
  mutable absl::Mutex mu_;
  std::vector<std::unique_ptr<Handler>> handlers_ ABSL_GUARDED_BY(mu_);
  std::set<std::string> called_ ABSL_GUARDED_BY(mu_);
  std::set<std::string> with_sessions_ ABSL_GUARDED_BY(mu_);
};

JobStatus RunToEnd(EmbeddedCluster& cluster, const TrainingJob& job) {
  SubmitRequest submit;
  *submit.mutable_job() = job;
  submit.set_request_id("test");
  const auto id = cluster.scheduler().Submit(submit, absl::Seconds(10));
  INFO(id.status());
  REQUIRE(id.ok());
  JobRef ref;
  ref.set_job(id->job());
  while (true) {
    const auto status = cluster.scheduler().GetJob(ref, absl::Seconds(10));
    REQUIRE(status.ok());
    if (status->state() == SUCCEEDED || status->state() == FAILED) return *status;
    absl::SleepFor(absl::Milliseconds(1));
  }
}

TEST_CASE(
    "processes of one process call each other under their roles and names, with the "
    "scheduler's credentials",
    "[embedded]") {
  auto scratch = ScratchFolder::Make("strata-test");
  REQUIRE(scratch.ok());
  TrainingJob job = testing::SmallJob(scratch->path());
  const bool copies = GENERATE(false, true);
  CAPTURE(copies);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_replicas()->set_servers(2);
  spec.mutable_replicas()->set_workers(2);
  if (copies) spec.mutable_storage()->set_replicas(2);
  Noting transport;
  EmbeddedClusterOptions options;
  options.servers = 2;
  options.workers = 2;
  options.directory = scratch->path() + "/cluster";
  options.transport = &transport;
  auto cluster = EmbeddedCluster::Start(options);
  REQUIRE(cluster.ok());
  const JobStatus end = RunToEnd(**cluster, job);
  for (const JobCondition& c : end.conditions()) UNSCOPED_INFO(c.reason() << ": " << c.message());
  CHECK(end.state() == SUCCEEDED);
  std::set<std::string> all = {"worker/worker-0", "worker/worker-1"};
  CHECK(transport.with_sessions() == all);
  if (copies) all.insert({"server/server-0", "server/server-1"});
  CHECK(transport.called() == all);
}

}  // namespace
}  // namespace strata
