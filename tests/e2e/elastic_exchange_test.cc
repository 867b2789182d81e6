// Easgd's exchange against real servers over calls that fail: nothing that moves between a lane's
// copy and the centre is lost or counted twice (ALGORITHMS.md section 2: with no local steps the
// sum of all copies and the centre stays what it is).
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/job/job_spec.h"
#include "proto/runtime/transport/inproc_transport.h"
#include "proto/runtime/transport/transport.h"
#include "proto/strata/control.pb.h"
#include "scheduler/scheduler.h"
#include "scheduler/store/memory_metadata_store.h"
#include "server/server.h"
#include "tests/e2e/cluster/small_job.h"
#include "tests/temp_folder.h"
#include "worker/async/replica.h"
#include "worker/client/exchange.h"
#include "worker/client/parameter_client.h"
#include "worker/client/push_sequences.h"
#include "worker/client/server_links.h"
#include "worker/step/router.h"
#include "worker/train/plan.h"

namespace strata {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(20);
constexpr uint32_t kLanes = 3;

// Passes calls on, but for pulls and pushes that are lost on the way there, answered to nobody, or
// sent twice.
class LossyTransport : public DataTransport {
 public:
  explicit LossyTransport(DataTransport* inner) : inner_(inner) {}
  absl::StatusOr<std::unique_ptr<DataListener>> Listen(const std::string& address,
                                                       DataHandler* handler) override {
    return inner_->Listen(address, handler);
  }
  std::shared_ptr<DataChannel> Connect(const DataPeer& peer, const Caller& caller) override {
    return std::make_shared<Channel>(this, inner_->Connect(peer, caller));
  }

  std::atomic<int> lost{0}, unanswered{0}, repeated{0};
  std::atomic<bool> repeats{true};

 private:
  class Channel : public DataChannel {
   public:
    Channel(LossyTransport* owner, std::shared_ptr<DataChannel> inner)
        : owner_(owner), inner_(std::move(inner)) {}
    void Call(DataMethod method, Buffer request, absl::Duration timeout, DataReply done) override {
      const absl::Status broken = absl::UnavailableError("the connection broke");
      switch (method == DataMethod::kOpenSession ? 9 : owner_->Draw() % 10) {
        case 0:
          ++owner_->lost;
          return done(broken);
        case 1:
          ++owner_->unanswered;
          return inner_->Call(method, request, timeout,
                              [done, broken](absl::StatusOr<Buffer>) { done(broken); });
        case 2:
          if (!owner_->repeats) break;
          ++owner_->repeated;
          return inner_->Call(
              method, request, timeout,
              [inner = inner_, method, request, timeout, done](absl::StatusOr<Buffer>) {
                inner->Call(method, request, timeout, done);
              });
        default:
          break;
      }
      inner_->Call(method, std::move(request), timeout, std::move(done));
    }

   private:
    LossyTransport* const owner_;
    const std::shared_ptr<DataChannel> inner_;
  };
  uint64_t Draw() {
    absl::MutexLock lock(&mu_);
    return random_();
  }

  DataTransport* const inner_;
  absl::Mutex mu_;
  std::mt19937_64 random_ ABSL_GUARDED_BY(mu_){7};
};

// Two servers with an easgd job open on them, and this test in the place of its only worker.
class Servers {
 public:
  Servers() : transport_(MakeInProcTransport()), lossy(transport_.get()) {
    auto scheduler = scheduler::Scheduler::Start({.store = scheduler::MakeMemoryMetadataStore()});
    REQUIRE(scheduler.ok());
    scheduler_ = *std::move(scheduler);
    for (int i = 0; i < 2; ++i) {
      server::ServerOptions options;
      options.name = absl::StrCat("server-", i);
      options.scheduler = scheduler_.get();
      options.transport = transport_.get();
      options.listen_address = options.name;
      options.directory = absl::StrCat(folder_.path(), "/", options.name);
      auto server = server::Server::Start(options);
      REQUIRE(server.ok());
      servers_.push_back(*std::move(server));
    }
    Open();
  }

  DataTransport& clean() { return *transport_; }
  wire::Header header() const {
    return {plan->job, session, plan->generation, plan->shards.epoch()};
  }

 private:
  void Open() {
    SubmitRequest submit;
    TrainingJob& job = *submit.mutable_job();
    job = testing::SmallJob(folder_.path());
    job.mutable_spec()->mutable_training()->set_mode("easgd");
    job.mutable_spec()->mutable_training()->set_lanes(kLanes);
    job.mutable_spec()->mutable_replicas()->set_servers(2);
    REQUIRE(ResolveJob(job).ok());
    submit.set_request_id("test");
    REQUIRE(scheduler_->Submit(submit, kPatience).ok());
    NodeReport report;
    report.set_name("worker-0");
    report.set_role(WORKER);
    report.set_incarnation(1);
    report.set_wait_ms(50);
    for (int i = 0; i < 400 && plan == nullptr; ++i) {
      auto directive = scheduler_->Sync(report, kPatience);
      REQUIRE(directive.ok());
      session = SessionId(directive->session());
      report.set_session(directive->session());
      report.set_seen_version(directive->version());
      report.clear_worker_jobs();
      for (const WorkerJobDirective& job : directive->worker_jobs()) {
        if (job.make_index()) Index(job, report.add_worker_jobs());
        bool open = job.shards_size() > 0 && job.server_addresses_size() == 2;
        for (const std::string& address : job.server_addresses()) open &= !address.empty();
        if (!open) continue;
        auto made = MakeTrainingPlan(job);
        REQUIRE(made.ok());
        plan = std::make_unique<TrainingPlan>(*std::move(made));
        addresses = {job.server_addresses().begin(), job.server_addresses().end()};
      }
    }
    REQUIRE(plan != nullptr);
  }

  static void Index(const WorkerJobDirective& job, WorkerJobReport* report) {
    report->set_job(job.job());
    report->set_job_uid(job.job_uid());
    report->set_generation(job.generation());
    for (InputIndex* index : {report->mutable_train_index(), report->mutable_eval_index()}) {
      index->set_lines(1 << 20);
      index->add_files()->set_path("memory");
      for (uint32_t lane = 0; lane < kLanes; ++lane) index->add_tasks()->set_lines(1 << 18);
      index->mutable_shape()->set_fields(6);
    }
  }

  TempFolder folder_;
  std::unique_ptr<DataTransport> transport_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::vector<std::unique_ptr<server::Server>> servers_;

 public:
  LossyTransport lossy;
  std::unique_ptr<TrainingPlan> plan;
  std::vector<std::string> addresses;
  SessionId session;
};

RoutedKeys SomeKeys(const TableSpec& features) {
  std::vector<uint64_t> keys;
  for (uint64_t k = 0; k < 200; ++k) keys.push_back(k * 977);
  Router router;
  RoutedKeys routed;
  router.Route(features, keys, &routed);
  return routed;
}

ReplicaOptions Options(const TrainingPlan& plan, const Exchange& exchange) {
  ReplicaOptions options;
  options.tables = plan.tables.tables;
  options.dense_rows = exchange.dense_rows();
  options.alpha = 0.3f;
  OptimizerSpec sgd;
  sgd.learning_rate = 1.0f;
  for (TableSpec& table : options.tables) {
    for (SegmentSpec& segment : table.segments) segment.optimizer = sgd;
  }
  return options;
}

// Moves the copy by numbers of the lane's own: one local step whose gradient is noise.
void Scatter(Replica& replica, const RoutedKeys& keys, uint32_t dim, size_t dense_floats,
             uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto draw = [&] { return static_cast<float>(random() % 2001) / 1000 - 1; };
  Gradient g;
  g.examples = 1;
  g.keys = keys.keys;
  g.positions = keys.positions;
  g.runs = keys.runs;
  for (size_t i = 0; i < keys.keys.size() * dim; ++i) g.rows.push_back(draw());
  for (size_t i = 0; i < dense_floats; ++i) g.dense.push_back(draw());
  REQUIRE(replica.LocalStep(0, g).ok());
}

void AddTo(std::vector<double>& sum, const float* values, size_t n) {
  sum.resize(n);
  for (size_t i = 0; i < n; ++i) sum[i] += values[i];
}

TEST_CASE("the sum of copies and centre is kept under lost, repeated and unanswered calls",
          "[e2e][easgd]") {
  Servers servers;
  const TrainingPlan& plan = *servers.plan;
  const Exchange exchange(plan.tables, plan.shards);
  ServerLinks links(&servers.lossy, 2, Caller::Nobody());
  links.SetAddresses(servers.addresses);
  const RoutedKeys keys = SomeKeys(plan.tables.tables[0]);
  const size_t row_floats = keys.keys.size() * exchange.row_dims()[0];
  const size_t dense_floats = exchange.dense_rows() * ModelTables::kDenseRowDim;
  const RoutedKeys* const batch[] = {&keys};
  SequenceCounter sequences;
  ParameterClientOptions options;
  options.exchange = &exchange;
  options.sequences = &sequences;
  options.links = &links;
  options.header = servers.header();
  options.identity = servers.plan->identity;

  std::vector<std::unique_ptr<ParameterClient>> clients;
  std::vector<std::unique_ptr<Replica>> lanes;
  const auto pull = [&](uint32_t l) {
    REQUIRE(clients[l]->Pull(Step(0), lanes[l]->Plan(batch), lanes[l]->pulled()).ok());
    lanes[l]->Pulled();
  };
  for (uint32_t l = 0; l < kLanes; ++l) {
    clients.push_back(std::make_unique<ParameterClient>(options));
    lanes.push_back(std::make_unique<Replica>(Options(plan, exchange)));
    pull(l);
    Scatter(*lanes[l], keys, exchange.row_dims()[0], dense_floats, l);
  }
  ParameterClient reader(options);
  const auto total = [&] {
    ParameterBlock centre;
    REQUIRE(reader.Pull(Step(0), {keys.keys, keys.positions, keys.runs}, &centre).ok());
    std::vector<double> rows, dense;
    AddTo(rows, centre.rows.data(), row_floats);
    AddTo(dense, centre.dense.data(), dense_floats);
    for (auto& lane : lanes) {
      AddTo(rows, lane->Rows(0), row_floats);
      AddTo(dense, lane->dense(), dense_floats);
    }
    rows.insert(rows.end(), dense.begin(), dense.end());
    return rows;
  };
  const std::vector<double> before = total();
  const auto exchange_once = [&](uint32_t l, uint64_t window) {
    Replica& lane = *lanes[l];
    bool ok = clients[l]->Pull(Step(0), lane.Plan(batch), lane.pulled()).ok();
    lane.Pulled();
    wire::PushFields fields;
    fields.task = TaskId(l);
    fields.window = window;
    fields.lane = LaneId(l);
    return ok && clients[l]->Push(fields, lane.Exchange()).ok();
  };
  constexpr uint64_t kWindows = 30;
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (uint32_t l = 0; l < kLanes; ++l) {
    threads.emplace_back([&, l] {
      for (uint64_t window = 0; window < kWindows; ++window) failed += !exchange_once(l, window);
    });
  }
  for (std::thread& t : threads) t.join();
  REQUIRE(failed == 0);
  CHECK(servers.lossy.lost > 10);
  CHECK(servers.lossy.unanswered > 10);
  CHECK(servers.lossy.repeated > 10);
  const std::vector<double> after = total();
  double worst = 0;
  for (size_t i = 0; i < before.size(); ++i)
    worst = std::max(worst, std::abs(after[i] - before[i]));
  CHECK(worst < 3e-6);
  // In turn, so that no lane is far behind, they meet: all copies come near the centre.
  for (uint64_t window = kWindows; window < 2 * kWindows; ++window) {
    for (uint32_t l = 0; l < kLanes; ++l) REQUIRE(exchange_once(l, window));
  }
  ParameterBlock centre;
  REQUIRE(reader.Pull(Step(0), {keys.keys, keys.positions, keys.runs}, &centre).ok());
  for (auto& lane : lanes) {
    const float* x = lane->Rows(0);
    for (size_t i = 0; i < row_floats; ++i) REQUIRE(std::abs(x[i] - centre.rows[i]) < 0.01);
  }
}

TEST_CASE("a lane is told that a window was somebody else's, not that it was its own retry",
          "[e2e][easgd]") {
  Servers servers;
  const TrainingPlan& plan = *servers.plan;
  const Exchange exchange(plan.tables, plan.shards);
  SequenceCounter sequences;
  ParameterClientOptions options;
  options.exchange = &exchange;
  options.sequences = &sequences;
  options.header = servers.header();
  options.identity = servers.plan->identity;
  ServerLinks clean(&servers.clean(), 2, Caller::Nobody()),
      lossy(&servers.lossy, 2, Caller::Nobody());
  clean.SetAddresses(servers.addresses);
  lossy.SetAddresses(servers.addresses);
  options.links = &clean;
  ParameterClient dead(options), heir(options);
  options.links = &lossy;
  ParameterClient retries(options);
  auto delta = std::make_shared<Gradient>();
  delta->examples = 1;
  delta->dense.assign(exchange.dense_rows() * ModelTables::kDenseRowDim, 0.25f);
  wire::PushFields fields;
  fields.task = TaskId(1);
  for (uint64_t window = 0; window < 20; ++window) {
    fields.window = window;
    bool theirs = true;
    REQUIRE(dead.Push(fields, delta, &theirs).ok());
    CHECK_FALSE(theirs);
    REQUIRE(heir.Push(fields, delta, &theirs).ok());
    CHECK(theirs);
  }
  // A reply that was lost, and then "I have it": still our own. (A call that the network itself
  // repeats, without our knowledge, is not.)
  fields.task = TaskId(2);
  servers.lossy.repeats = false;
  for (uint64_t window = 0; window < 40; ++window) {
    fields.window = window;
    bool theirs = true;
    REQUIRE(retries.Push(fields, delta, &theirs).ok());
    CHECK_FALSE(theirs);
  }
  CHECK(servers.lossy.unanswered > 0);
}

}  // namespace
}  // namespace strata
