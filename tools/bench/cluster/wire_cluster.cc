#include "tools/bench/cluster/wire_cluster.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/runtime/transport/grpc_scheduler_client.h"
#include "proto/runtime/transport/grpc_transport.h"
#include "proto/strata/control.pb.h"
#include "tools/bench/cluster/daemons.h"
#include "worker/train/plan.h"

namespace strata::bench {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(20);
constexpr uint32_t kRenewalMs = 500;
constexpr char kWorker[] = "worker-0";

TrainingJob MakeJob(const WireCluster::Options& options) {
  TrainingJob job;
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name("bench-wire");
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->set_format("libfm");
  spec.mutable_data()->add_train("memory");
  spec.mutable_model()->set_type("fm");
  spec.mutable_model()->set_embedding_dim(options.dim - 1);  // and one weight
  spec.mutable_optimizer()->mutable_sparse()->set_type("sgd");
  spec.mutable_training()->set_mode("async");
  spec.mutable_training()->set_lanes(1);
  spec.mutable_storage()->set_durability(options.durability);
  if (options.durability == "replicated") {
    spec.mutable_storage()->set_replicas(options.copies);
    spec.mutable_replicas()->set_servers(1);
  }
  spec.mutable_storage()->set_log_bytes_per_server(options.log_bytes);
  if (options.shards > 0) spec.mutable_storage()->set_shards_per_server(options.shards);
  if (options.tables == 1) return job;
  spec.mutable_data()->set_format("libffm");
  for (uint32_t t = 0; t < options.tables; ++t) {
    spec.add_tables()->set_name(absl::StrCat("t", t));
    FieldConfig& field = *spec.add_fields();
    field.set_name(absl::StrCat(t));
    field.set_kind("multiValued");
    field.set_table(absl::StrCat("t", t));
  }
  return job;
}

class Cluster : public WireCluster {
 public:
  Cluster() = default;
  ~Cluster() override { StopRenewing(); }

  absl::Status Open(const std::string& directory, const Options& options) {
    auto daemons = Daemons::Start({.directory = directory,
                                   .servers = static_cast<int>(options.copies),
                                   .workers = 0,
                                   .secure = options.secure});
    if (!daemons.ok()) return daemons.status();
    daemons_ = *std::move(daemons);
    auto tls = daemons_->Tls(Role::kWorker, kWorker);
    if (!tls.ok()) return tls.status();
    transport_ = MakeGrpcTransport({.tls = *tls});
    caller_ = SelfOf(*tls, held_);
    scheduler_ = MakeGrpcSchedulerClient(daemons_->address(), *tls);
    auto job = daemons_->Submit(MakeJob(options));
    if (!job.ok()) return job.status();
    job_ = *job;
    if (absl::Status s = AwaitServer(""); !s.ok()) return s;
    return AwaitCopies(static_cast<int>(options.copies));
  }

  DataChannel& channel() override { return *channel_; }
  const ModelTables& tables() const override { return plan_->tables; }
  const ShardMap& shards() const override { return plan_->shards; }
  wire::Header header() const override { return header_; }
  JobIdentity identity() const override { return plan_->identity; }
  double ServerCpuSeconds() const override {
    double seconds = 0;
    for (const std::string& name : servers_) seconds += daemons_->process(name).CpuSeconds();
    return seconds;
  }
  std::string server_folder() const override { return daemons_->folder("server-0"); }
  void KillServer() override { daemons_->Kill("server-0"); }
  absl::Status StartServer() override {
    const std::string before = address_;
    if (absl::Status s = daemons_->StartOne("server-0"); !s.ok()) return s;
    return AwaitServer(before);
  }

 private:
  // Until the job has a server whose address is another one than `before`.
  absl::Status AwaitServer(const std::string& before) {
    StopRenewing();
    NodeReport report = Report();
    report.set_wait_ms(50);
    const absl::Time give_up = absl::Now() + kPatience;
    while (absl::Now() < give_up) {
      auto directive = scheduler_->Sync(report, kPatience);
      if (!directive.ok()) return directive.status();
      session_ = directive->session();
      report.set_session(session_);
      report.set_seen_version(directive->version());
      report.clear_worker_jobs();
      for (const WorkerJobDirective& job : directive->worker_jobs()) {
        if (job.make_index()) AnswerIndex(job, report.add_worker_jobs());
        if (job.shards_size() > 0 && job.server_addresses_size() == 1 &&
            !job.server_addresses(0).empty() && job.server_addresses(0) != before) {
          return Connect(job);
        }
      }
    }
    return absl::DeadlineExceededError("the server did not open the job");
  }

  // Until every copy is full; notes whose they are.
  absl::Status AwaitCopies(int copies) {
    JobRef ref;
    ref.set_job(job_);
    servers_ = {"server-0"};
    for (const absl::Time give_up = absl::Now() + kPatience; copies > 1;) {
      const auto shards = daemons_->scheduler().GetShards(ref, kPatience);
      if (!shards.ok()) return shards.status();
      servers_.clear();
      if (shards->servers_size() == 1) {
        for (const CopyStatus& copy : shards->servers(0).copies()) {
          if (copy.role() == CopyStatus::HEAD || copy.role() == CopyStatus::BACKUP) {
            servers_.push_back(copy.server());
          }
        }
      }
      if (static_cast<int>(servers_.size()) == copies) break;
      if (absl::Now() > give_up) return absl::DeadlineExceededError("a copy is missing");
      absl::SleepFor(absl::Milliseconds(20));
    }
    return absl::OkStatus();
  }

  NodeReport Report() const {
    NodeReport report;
    report.set_name(kWorker);
    report.set_role(WORKER);
    report.set_incarnation(1);
    report.set_session(session_);
    return report;
  }

  // The worker's lease is renewed while the benchmark does other things; a worker that is not heard
  // of loses its lanes.
  void StartRenewing() {
    renewing_ = true;
    renewer_ = std::thread([this, report = Report()]() mutable {
      report.set_wait_ms(kRenewalMs);
      // What refuses it has the benchmark's own calls refused, too.
      while (renewing_) {
        const auto directive = scheduler_->Sync(report, kPatience);
        if (!directive.ok()) return;
        report.set_seen_version(directive->version());
      }
    });
  }
  void StopRenewing() {
    renewing_ = false;
    if (renewer_.joinable()) renewer_.join();
  }

  static void AnswerIndex(const WorkerJobDirective& job, WorkerJobReport* report) {
    report->set_job(job.job());
    report->set_job_uid(job.job_uid());
    report->set_generation(job.generation());
    InputIndex& index = *report->mutable_train_index();
    index.set_lines(1u << 30);
    index.add_files()->set_path("memory");
    index.add_tasks()->set_lines(1u << 30);
    const int tables = job.spec().spec().tables_size();
    index.mutable_shape()->set_fields(static_cast<uint32_t>(std::max(1, tables)));
  }

  absl::Status Connect(const WorkerJobDirective& job) {
    auto plan = MakeTrainingPlan(job);
    if (!plan.ok()) return plan.status();
    plan_ = std::make_unique<TrainingPlan>(*std::move(plan));
    header_ = {plan_->job, SessionId(session_), plan_->generation, plan_->shards.epoch()};
    address_ = job.server_addresses(0);
    held_->Set(job.session_credential());
    channel_ = transport_->Connect({address_, job.server_names(0)}, caller_);
    StartRenewing();
    return absl::OkStatus();
  }

  std::unique_ptr<Daemons> daemons_;
  std::unique_ptr<SchedulerClient> scheduler_;  // of the worker
  std::unique_ptr<DataTransport> transport_;
  const std::shared_ptr<HeldSession> held_ = std::make_shared<HeldSession>();
  Caller caller_ = Caller::Nobody();
  std::unique_ptr<TrainingPlan> plan_;
  uint64_t job_ = 0;
  uint64_t session_ = 0;
  std::string address_;               // of the server
  std::vector<std::string> servers_;  // that have copies
  wire::Header header_;
  std::shared_ptr<DataChannel> channel_;
  std::atomic<bool> renewing_ = false;
  std::thread renewer_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<WireCluster>> WireCluster::Start(const std::string& directory,
                                                                const Options& options) {
  auto cluster = std::make_unique<Cluster>();
  if (absl::Status s = cluster->Open(directory, options); !s.ok()) return s;
  return std::unique_ptr<WireCluster>(std::move(cluster));
}

}  // namespace strata::bench
