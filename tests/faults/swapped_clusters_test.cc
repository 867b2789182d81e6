// Two clusters whose nodes, jobs and job numbers have the same names, with addresses and folders
// exchanged at random: everybody refuses the other cluster with both ids, nothing is deleted, and
// each job ends with the model that it has alone.
#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/runtime/transport/inproc_transport.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/wire/message_codec.h"
#include "scheduler/scheduler.h"
#include "scheduler/store/rocks_metadata_store.h"
#include "server/server.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tests/e2e/cluster/files_below.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/faults/swapped.h"
#include "tests/proto/runtime/transport/unanswered_scheduler.h"
#include "tools/cluster/embedded/scratch_folder.h"
#include "worker/worker.h"

namespace strata::testing {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kCall = absl::Seconds(10);
constexpr absl::Duration kSyncWait = absl::Milliseconds(10);

// What must not vanish while its job lives: whose folders they are.
std::set<std::string> Owners(const std::string& folder) {
  std::set<std::string> owners;
  for (const std::string& path : FilesBelow(folder)) {
    const std::string name = fs::path(path).filename().string();
    if (name == "OPEN" || name == "JOB" || name == "CLUSTER") owners.insert(path);
  }
  return owners;
}

// Where nodes find a scheduler: another one, from one call to the next. Thread-safe.
class Address : public UnansweredScheduler {
 public:
  void Lead(std::shared_ptr<scheduler::Scheduler> to) {
    absl::MutexLock lock(&mu_);
    to_ = std::move(to);
    refusals_.clear();
    answers_ = 0;
  }
  std::shared_ptr<scheduler::Scheduler> to() const {
    absl::MutexLock lock(&mu_);
    return to_;
  }
  absl::StatusOr<NodeDirective> Sync(const NodeReport& report, absl::Duration timeout) override {
    const std::shared_ptr<scheduler::Scheduler> scheduler = to();
    if (scheduler == nullptr) return absl::UnavailableError("nobody is there");
    auto directive = scheduler->Sync(report, timeout);
    absl::MutexLock lock(&mu_);
    if (to_ != scheduler) return directive;
    if (absl::IsPermissionDenied(directive.status())) {
      refusals_.push_back(std::string(directive.status().message()));
    }
    answers_ += directive.ok();
    return directive;
  }
  std::vector<std::string> AwaitRefusal() {
    absl::MutexLock lock(&mu_);
    const auto refused = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !refusals_.empty(); };
    REQUIRE(mu_.AwaitWithTimeout(absl::Condition(&refused), absl::Minutes(1)));
    CHECK(answers_ == 0);
    return refusals_;
  }
  void AwaitAnswer() {
    absl::MutexLock lock(&mu_);
    const auto answered = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return answers_ > 0; };
    REQUIRE(mu_.AwaitWithTimeout(absl::Condition(&answered), absl::Minutes(1)));
  }

 private:
  mutable absl::Mutex mu_;
  std::shared_ptr<scheduler::Scheduler> to_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> refusals_ ABSL_GUARDED_BY(mu_);
  uint64_t answers_ ABSL_GUARDED_BY(mu_) = 0;
};

// One cluster in this process, whose parts keep their folders when they end.
class OneCluster {
 public:
  OneCluster(std::string name, std::string folder, DataTransport* transport, TrainingJob job)
      : name_(std::move(name)),
        folder_(std::move(folder)),
        transport_(transport),
        job_(std::move(job)),
        hash_(Train(job_).model_hash()) {
    fs::create_directories(folder_);
    StartScheduler();
    id_ = scheduler().GetCluster(kCall)->cluster_id();
    StartServer();
    StartWorker();
    KeepTraining();
  }
  ~OneCluster() {
    worker_.reset();
    server_.reset();
  }

  const std::string& id() const { return id_; }
  std::string folder(const std::string& part) const { return folder_ + "/" + part; }
  // Of the cluster and of the job that is there now.
  std::set<std::string> owners() const {
    std::set<std::string> own = Owners(folder_);
    std::erase_if(own, [this](const std::string& path) {
      return !absl::EndsWith(path, "/CLUSTER") && !absl::StrContains(path, uid_);
    });
    return own;
  }
  scheduler::Scheduler& scheduler() { return *scheduler_; }
  std::shared_ptr<scheduler::Scheduler> home() const { return scheduler_; }

  void StopScheduler() {
    for (Address* a : {&server_to_, &worker_to_}) a->Lead(nullptr);
    scheduler_->Stop();
    while (scheduler_.use_count() > 1) absl::SleepFor(absl::Milliseconds(1));
    scheduler_.reset();
  }
  void StartScheduler() {
    auto store = scheduler::OpenRocksMetadataStore(folder("scheduler"));
    REQUIRE(store.ok());
    scheduler::SchedulerOptions options;
    options.store = *std::move(store);
    options.tick_interval = kSyncWait;
    auto scheduler = scheduler::Scheduler::Start(std::move(options));
    REQUIRE(scheduler.ok());
    scheduler_ = *std::move(scheduler);
    Home();
  }
  void Home() {
    for (Address* a : {&server_to_, &worker_to_}) a->Lead(scheduler_);
  }
  void AwaitHome() {
    server_to_.AwaitAnswer();
    worker_to_.AwaitAnswer();
  }
  void StopServer() { server_.reset(); }
  void StartServer() {
    server_to_.Lead(scheduler_);
    server::ServerOptions options;
    options.name = "server-0";
    options.scheduler = &server_to_;
    options.transport = transport_;
    options.listen_address = data_address();
    options.directory = folder("server");
    options.sync_wait = kSyncWait;
    options.threads = 1;
    auto server = server::Server::Start(options);
    REQUIRE(server.ok());
    server_ = *std::move(server);
  }
  void StopWorker() { worker_.reset(); }
  void StartWorker() {
    worker_to_.Lead(scheduler_);
    fs::create_directories(folder("worker"));
    WorkerOptions options;
    options.name = "worker-0";
    options.scheduler = &worker_to_;
    options.transport = transport_;
    options.directory = folder("worker");
    options.sync_wait = kSyncWait;
    options.threads = 1;
    auto worker = Worker::Start(options);
    REQUIRE(worker.ok());
    worker_ = *std::move(worker);
  }
  Address& server_to() { return server_to_; }
  Address& worker_to() { return worker_to_; }

  // A job is always there: where the last one has ended, with its own model, another one begins;
  // true then.
  bool KeepTraining() {
    if (number_ != 0) {
      const JobStatus status = Status();
      INFO(Conditions(status));
      REQUIRE(status.state() != FAILED);
      REQUIRE(status.state() != CANCELLED);
      CHECK(status.rollbacks() == 0);
      if (status.state() != SUCCEEDED) return false;
      CHECK(status.model_hash() == hash_);
    }
    Submit();
    return true;
  }
  // Waits for the end of the job that is there.
  void Finish() {
    const absl::Time limit = absl::Now() + absl::Minutes(2);
    while (Status().state() != SUCCEEDED && absl::Now() < limit) {
      REQUIRE(Status().state() != FAILED);
      absl::SleepFor(absl::Milliseconds(5));
    }
    CHECK(Status().model_hash() == hash_);
    CHECK(Status().rollbacks() == 0);
  }

  // What the server of `other` says to who wants this cluster's job there.
  std::string AskFor(OneCluster& other) const {
    const auto identity = ParseJobIdentity(id_, uid_);
    REQUIRE(identity.has_value());
    const wire::Header header = {JobId(other.number_), SessionId(5), Generation(1), MapEpoch(1)};
    return std::string(
        transport_->Connect({other.data_address(), "s"}, Caller::Nobody())
            ->CallAndWait(DataMethod::kOpenSession,
                          wire::EncodeOpenSessionRequest(wire::OpenSessionFor(header, *identity)),
                          absl::Seconds(30))
            .status()
            .message());
  }

 private:
  std::string data_address() const { return name_ + "-server"; }

  void Submit() {
    SubmitRequest request;
    *request.mutable_job() = job_;
    request.mutable_job()->mutable_metadata()->set_name(absl::StrCat("job-", ++jobs_));
    request.set_request_id(absl::StrCat("request-", jobs_));
    const auto reply = scheduler().Submit(request, kCall);
    REQUIRE(reply.ok());
    number_ = reply->job();
    uid_ = reply->job_uid();
  }
  JobStatus Status() {
    JobRef ref;
    ref.set_job(number_);
    auto status = scheduler().GetJob(ref, kCall);
    REQUIRE(status.ok());
    return *std::move(status);
  }

  const std::string name_, folder_;
  DataTransport* const transport_;
  const TrainingJob job_;
  const std::string hash_;  // of the job alone
  std::string id_, uid_;
  uint64_t number_ = 0, jobs_ = 0;
  std::shared_ptr<scheduler::Scheduler> scheduler_;
  Address server_to_, worker_to_;
  std::unique_ptr<server::Server> server_;
  std::unique_ptr<Worker> worker_;
};

class Exchanges {
 public:
  Exchanges(OneCluster& a, OneCluster& b) : clusters_{&a, &b} {}

  static constexpr int kKinds = 7;
  void Do(int kind) {
    Before before;
    for (OneCluster* c : clusters_) before.push_back(c->owners());
    switch (kind) {
      case 0:
        return Redirect(true, false, before);
      case 1:
        return Redirect(false, true, before);
      case 2:
        return Redirect(true, true, before);
      case 3:
        return Swap("scheduler", &OneCluster::StopScheduler, &OneCluster::StartScheduler,
                    {true, true}, before);
      case 4:
        return Swap("server", &OneCluster::StopServer, &OneCluster::StartServer, {true, false},
                    before);
      case 5:
        return Swap("worker", &OneCluster::StopWorker, &OneCluster::StartWorker, {false, true},
                    before);
      default:
        Ask(*clusters_[0], *clusters_[1]);
        Ask(*clusters_[1], *clusters_[0]);
        return GoOn({clusters_[0]->owners(), clusters_[1]->owners()});
    }
  }

 private:
  using Before = std::vector<std::set<std::string>>;
  struct Whom {
    bool servers, workers;
  };

  // One cluster's job is asked for at the other's server, where one of that number is open.
  void Ask(OneCluster& from, OneCluster& at) {
    std::string answer;
    AwaitThat("a job is open there", [&] {
      at.KeepTraining();
      answer = from.AskFor(at);
      return !absl::StrContains(answer, "is not open");
    });
    NamesBoth(answer);
  }

  // Nodes are told the other scheduler's address.
  void Redirect(bool servers, bool workers, const Before& before) {
    for (int i = 0; i < 2; ++i) {
      if (servers) clusters_[i]->server_to().Lead(clusters_[1 - i]->home());
      if (workers) clusters_[i]->worker_to().Lead(clusters_[1 - i]->home());
    }
    Refused({servers, workers});
    GoOn(before);
  }

  // Processes begin on each other's folders, and then on their own again.
  void Swap(const std::string& part, void (OneCluster::*stop)(), void (OneCluster::*start)(),
            Whom whom, const Before& before) {
    for (const bool there : {true, false}) {
      for (OneCluster* c : clusters_) (c->*stop)();
      SwapFolders(clusters_[0]->folder(part), clusters_[1]->folder(part));
      for (OneCluster* c : clusters_) (c->*start)();
      if (there) Refused(whom);
    }
    GoOn(before);
  }

  void Refused(Whom whom) {
    for (OneCluster* c : clusters_) {
      std::vector<std::string> refusals;
      if (whom.servers) refusals = c->server_to().AwaitRefusal();
      for (const std::string& refusal : refusals) NamesBoth(refusal);
      if (whom.workers) refusals = c->worker_to().AwaitRefusal();
      for (const std::string& refusal : refusals) NamesBoth(refusal);
    }
  }

  void NamesBoth(const std::string& refusal) {
    INFO(refusal);
    CHECK(absl::StrContains(refusal, clusters_[0]->id()));
    CHECK(absl::StrContains(refusal, clusters_[1]->id()));
  }

  // All nodes are at home again, and miss nothing of a job that was there before and still is.
  void GoOn(const Before& before) {
    for (int i = 0; i < 2; ++i) {
      OneCluster& c = *clusters_[i];
      c.Home();
      c.AwaitHome();
      const std::set<std::string> now = c.owners();
      if (!c.KeepTraining()) {
        for (const std::string& path : before[i]) {
          INFO(path);
          CHECK(now.count(path) == 1);
        }
      }
    }
  }

  OneCluster* const clusters_[2];
};

TEST_CASE("addresses and folders of two clusters are exchanged: nothing is mixed or lost",
          "[faults][identity]") {
  const ScratchFolder folder = Folder();
  const auto transport = MakeInProcTransport();
  OneCluster a("a", folder.path() + "/a", transport.get(),
               JobOf(folder.path() + "/jobs-a", .05, 60));
  OneCluster b("b", folder.path() + "/b", transport.get(),
               JobOf(folder.path() + "/jobs-b", .2, 60));
  REQUIRE(a.id() != b.id());
  Exchanges exchanges(a, b);
  std::mt19937_64 random(1);
  for (int i = 0; i < 180; ++i) {
    INFO("exchange " << i);
    exchanges.Do(static_cast<int>(random() % Exchanges::kKinds));
  }
  a.Finish();
  b.Finish();
}

}  // namespace
}  // namespace strata::testing
