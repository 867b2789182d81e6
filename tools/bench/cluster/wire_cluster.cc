#include "tools/bench/cluster/wire_cluster.h"

#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/runtime/transport/grpc_transport.h"
#include "proto/strata/control.pb.h"
#include "tools/bench/cluster/bench_scheduler.h"
#include "worker/train/plan.h"

extern char** environ;

namespace strata::bench {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(20);
constexpr uint32_t kRenewalMs = 500;

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
  explicit Cluster(std::string directory)
      : directory_(std::move(directory)), transport_(MakeGrpcTransport({})) {}

  absl::Status Open(const Options& options) {
    auto scheduler = BenchScheduler::Start();
    if (!scheduler.ok()) return scheduler.status();
    scheduler_ = *std::move(scheduler);
    if (absl::Status s = Spawn(); !s.ok()) return s;
    absl::Status s = scheduler_->Submit(MakeJob(options));
    return s.ok() ? AwaitServer("") : s;
  }

  ~Cluster() override { StopRenewing(); }

  DataChannel& channel() override { return *channel_; }
  const ModelTables& tables() const override { return plan_->tables; }
  const ShardMap& shards() const override { return plan_->shards; }
  wire::Header header() const override { return header_; }
  JobIdentity identity() const override { return plan_->identity; }
  double ServerCpuSeconds() const override { return server_->CpuSeconds(); }
  std::string server_folder() const override { return directory_ + "/server"; }
  void KillServer() override { server_->Kill(); }
  absl::Status StartServer() override {
    const std::string before = address_;
    if (absl::Status s = Spawn(); !s.ok()) return s;
    return AwaitServer(before);
  }

 private:
  absl::Status Spawn() {
    auto server = ChildProcess::Start({BinaryBeside("server/strata-server"), "--scheduler",
                                       scheduler_->address(), "--name", "server-0", "--dir",
                                       server_folder()});
    if (!server.ok()) return server.status();
    server_ = *std::move(server);
    return absl::OkStatus();
  }

  // Until the job has a server whose address is another one than `before`.
  absl::Status AwaitServer(const std::string& before) {
    StopRenewing();
    NodeReport report = Report();
    report.set_wait_ms(50);
    const absl::Time give_up = absl::Now() + kPatience;
    while (absl::Now() < give_up) {
      auto directive = scheduler_->scheduler().Sync(report, kPatience);
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

  NodeReport Report() const {
    NodeReport report;
    report.set_name("worker-0");
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
        const auto directive = scheduler_->scheduler().Sync(report, kPatience);
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
    channel_ = transport_->Connect({address_, "s"}, Caller::Nobody());
    StartRenewing();
    return absl::OkStatus();
  }

  const std::string directory_;
  std::unique_ptr<DataTransport> transport_;
  std::unique_ptr<BenchScheduler> scheduler_;
  std::unique_ptr<ChildProcess> server_;
  std::unique_ptr<TrainingPlan> plan_;
  uint64_t session_ = 0;
  std::string address_;  // of the server
  wire::Header header_;
  std::shared_ptr<DataChannel> channel_;
  std::atomic<bool> renewing_ = false;
  std::thread renewer_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(
    const std::vector<std::string>& command) {
  std::vector<char*> argv;
  for (const std::string& a : command) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ);
  if (error != 0) {
    return absl::NotFoundError(
        absl::StrCat("cannot start ", command[0], ": ", std::strerror(error)));
  }
  return std::unique_ptr<ChildProcess>(new ChildProcess(pid));
}

ChildProcess::~ChildProcess() {
  if (pid_ == 0) return;
  kill(pid_, SIGTERM);
  int status = 0;
  waitpid(pid_, &status, 0);
}

void ChildProcess::Kill() {
  kill(pid_, SIGKILL);
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = 0;
}

double ChildProcess::CpuSeconds() const {
  std::ifstream file(absl::StrCat("/proc/", pid_, "/stat"));
  std::string text((std::istreambuf_iterator<char>(file)), {});
  // Fields are counted after the name, which stands in brackets and may hold anything.
  const size_t at = text.rfind(')');
  unsigned long user = 0, system = 0;
  if (at == std::string::npos ||
      std::sscanf(text.c_str() + at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                  &user, &system) != 2) {
    return 0;
  }
  return static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

namespace {

// Of a folder of /proc; 0 when there is none.
uint64_t ResidentBytesOf(const std::string& process) {
  unsigned long long pages = 0, resident = 0;
  std::ifstream file(absl::StrCat("/proc/", process, "/statm"));
  if (!(file >> pages >> resident)) return 0;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

uint64_t ChildProcess::ResidentBytes() const { return ResidentBytesOf(absl::StrCat(pid_)); }

uint64_t OwnResidentBytes() { return ResidentBytesOf("self"); }

std::string BinaryBeside(const std::string& path) {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  return (self.parent_path().parent_path().parent_path() / path).string();
}

double OwnCpuSeconds() {
  rusage u;
  getrusage(RUSAGE_SELF, &u);
  return static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
         static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

absl::StatusOr<std::string> ReadAddressFile(const std::string& path) {
  const absl::Time give_up = absl::Now() + absl::Seconds(10);
  while (absl::Now() < give_up) {
    std::string address;
    if (std::ifstream(path) >> address) return address;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return absl::DeadlineExceededError(absl::StrCat("nothing was written to ", path));
}

absl::StatusOr<std::unique_ptr<WireCluster>> WireCluster::Start(const std::string& directory,
                                                                const Options& options) {
  std::filesystem::create_directories(directory);
  auto cluster = std::make_unique<Cluster>(directory);
  if (absl::Status s = cluster->Open(options); !s.ok()) return s;
  return std::unique_ptr<WireCluster>(std::move(cluster));
}

}  // namespace strata::bench
