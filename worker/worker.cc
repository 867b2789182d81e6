#include "worker/worker.h"

#include <glog/logging.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/core/mutex.h"
#include "proto/runtime/base/job_work.h"
#include "proto/runtime/base/timer.h"
#include "proto/runtime/credentials/kept_revocations.h"
#include "proto/runtime/files/machine_id.h"
#include "proto/runtime/files/node_cluster.h"
#include "proto/runtime/transport/certificate_report.h"
#include "worker/client/push_sequences.h"
#include "worker/client/retry_policy.h"
#include "worker/job_runner.h"

namespace strata {
namespace {

uint64_t DrawIncarnation() {
  std::random_device device;
  const uint64_t high = device();
  return (high << 32 | device()) | 1;
}

class WorkerImpl : public Worker {
 public:
  WorkerImpl(const WorkerOptions& options, NodeCluster cluster)
      : o_(options),
        cluster_(std::move(cluster)),
        revoked_(o_.directory, o_.credentials,
                 [name = o_.name](const std::string& line) {
                   LOG(ERROR) << line << " worker=" << name;
                 }),
        threads_(o_.threads > 0 ? o_.threads : std::max(1u, std::thread::hardware_concurrency())),
        incarnation_(DrawIncarnation()),
        work_(options.timer),
        thread_([this] { Loop(); }) {}

  ~WorkerImpl() override {
    {
      MutexLock lock(&mu_);
      stop_ = true;
    }
    thread_.join();
  }

  WorkerCounters Counters() const override {
    MutexLock lock(&mu_);
    WorkerCounters c = past_;
    c.registered = session_.value != 0;
    for (const auto& [job, runner] : runners_) {
      const WorkerJobReport r = runner->Report();
      c.examples += r.examples();
      c.bad_lines += r.bad_lines();
      c.examples_per_second += r.examples_per_second();
      c.training_loss = r.training_loss();
      if (r.step() != 0) c.step = c.step == 0 ? r.step() : std::min<uint64_t>(c.step, r.step());
      c.stages += runner->Stages();
      c.rows_there += runner->RowsThere();
      ++c.jobs;
    }
    return c;
  }

 private:
  using Runners = std::map<std::string, std::unique_ptr<JobRunner>>;  // by job UID

  void Log(const std::string& line) {
    if (o_.log) o_.log(line);
  }

  bool stopping() const {
    MutexLock lock(&mu_);
    return stop_;
  }

  // Waits, unless the worker is being stopped.
  void Pause(absl::Duration d) {
    MutexLock lock(&mu_);
    AwaitUntil(o_.timer, &mu_, absl::Condition(&stop_), o_.timer->Now() + d);
  }

  NodeReport MakeReport() const {
    NodeReport report;
    report.set_name(o_.name);
    report.set_role(WORKER);
    report.set_incarnation(incarnation_);
    report.set_metrics_address(o_.metrics_address);
    report.set_cores(std::thread::hardware_concurrency());
    report.set_memory_bytes(memory_bytes_);
    // Matrix products are our own and every machine computes the same bits (ops/nn/gemm.h).
    report.set_numerics_id("strata-cpu-1");
    if (o_.device != nullptr) {
      report.set_device(o_.device->uuid);
      report.set_device_numerics_id(o_.device->numerics_id);
    }
    report.set_wait_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(o_.sync_wait)));
    report.set_pid(getpid());
    MutexLock lock(&mu_);
    report.set_session(session_.value);
    report.set_seen_version(seen_version_);
    for (const auto& [job, runner] : runners_) {
      WorkerJobReport& of_job = *report.add_worker_jobs();
      of_job = runner->Report();
      for (PeerTrouble& peer : runner->Peers()) *report.add_peers() = std::move(peer);
      if (const JobWork::Load load = work_.Of(job); load.passed > 0 || load.held) {
        Trouble* trouble = of_job.add_troubles();
        trouble->set_reason("FilesHang");
        trouble->set_message(absl::StrCat(
            load.running - (load.held ? 0 : 1), " runs of the job do not come back from the file ",
            "system", load.held ? ", and the next one waits for them" : " and were given up",
            "; see whether the mounts of spec.data and spec.output answer on this machine"));
      }
    }
    return report;
  }

  void Loop() {
    RetryPolicy retry(o_.random);
    while (!stopping()) {
      work_.Pump();
      if (const std::string line = cluster_.Tend(o_.timer->Now()); !line.empty()) {
        LOG(ERROR) << line << " worker=" << o_.name;
      }
      NodeReport report = MakeReport();
      certificate_.AddTo(report);
      cluster_.AddTo(report);
      auto reply = o_.scheduler->Sync(report, o_.sync_wait + absl::Seconds(5));
      if (!reply.ok()) {
        if (absl::IsUnauthenticated(reply.status())) {
          Log(absl::StrCat("fenced worker=", o_.name, " reason=\"", reply.status().message(),
                           "\""));
          Fenced();
        } else if (absl::IsFailedPrecondition(reply.status()) && o_.on_replaced) {
          o_.on_replaced(reply.status());
        } else if (absl::IsPermissionDenied(reply.status())) {
          Refuse(reply.status());
        } else if (retry.failures() == 0) {
          Log(absl::StrCat("scheduler_lost worker=", o_.name, " reason=\"",
                           reply.status().message(), "\""));
        }
        Pause(retry.OnFailure());
        continue;
      }
      if (const absl::Status s = cluster_.Follow(
              {reply->cluster_id(), reply->term(), reply->start_id(), reply->transient()});
          !s.ok()) {
        Refuse(s);
        Pause(retry.OnFailure());
        continue;
      }
      retry.OnSuccess();
      refusing_ = false;
      revoked_.Follow(reply->revoked());
      Apply(*reply);
    }
  }

  // A scheduler of another cluster, or of an earlier term: said once, until one is followed again.
  void Refuse(const absl::Status& why) {
    if (std::exchange(refusing_, true)) return;
    LOG(ERROR) << "scheduler_refused worker=" << o_.name << " error=\"" << why
               << "\" next=retry jobs=go_on";
  }

  // The session is void: nothing of it may go on.
  void Fenced() {
    Runners old;
    {
      MutexLock lock(&mu_);
      session_ = SessionId(0);
      seen_version_ = 0;
      old.swap(runners_);
    }
    old.clear();  // stops them; what they still do ends beside
  }

  void Apply(const NodeDirective& directive) {
    std::vector<std::unique_ptr<JobRunner>> closed;
    {
      MutexLock lock(&mu_);
      session_ = SessionId(directive.session());
      seen_version_ = directive.version();
      if (directive.unchanged()) {
        for (const auto& [uid, runner] : runners_) runner->Heard();
        return;
      }
      std::map<std::string, const WorkerJobDirective*> wanted;
      for (const WorkerJobDirective& job : directive.worker_jobs()) {
        if (!job.close()) wanted[job.job_uid()] = &job;
      }
      for (auto it = runners_.begin(); it != runners_.end();) {
        if (wanted.contains(it->first)) {
          ++it;
          continue;
        }
        const WorkerJobReport last = it->second->Report();
        past_.examples += last.examples();
        past_.bad_lines += last.bad_lines();
        past_.stages += it->second->Stages();
        past_.rows_there += it->second->RowsThere();
        closed.push_back(std::move(it->second));
        it = runners_.erase(it);
      }
      for (const auto& [uid, job] : wanted) {
        auto& runner = runners_[uid];
        if (runner == nullptr) {
          runner = JobRunner::Make({.job = JobId(job->job()),
                                    .work = &work_,
                                    .queue = uid,
                                    .transport = o_.transport,
                                    .caller = o_.caller,
                                    .data = o_.data,
                                    .paths = o_.paths,
                                    .sequences = &sequences_,
                                    .threads = threads_,
                                    .device = o_.device,
                                    .row_path = o_.row_path,
                                    .log = o_.log,
                                    .timer = o_.timer});
        }
        runner->Update(*job, session_);
        runner->Heard();
      }
    }
    closed.clear();
  }

  const WorkerOptions o_;
  const uint64_t memory_bytes_ = ThisMachine().memory_bytes;
  NodeCluster cluster_;      // of the thread
  KeptRevocations revoked_;  // as well
  CertificateReport certificate_{o_.credentials};
  bool refusing_ = false;  // as well
  const uint32_t threads_;
  const uint64_t incarnation_;
  SequenceCounter sequences_;
  mutable Mutex mu_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  SessionId session_ ABSL_GUARDED_BY(mu_);
  uint64_t seen_version_ ABSL_GUARDED_BY(mu_) = 0;
  JobWork work_;                          // waits for what runs
  Runners runners_ ABSL_GUARDED_BY(mu_);  // gone before that
  WorkerCounters past_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;  // last: starts when everything else is there
};

}  // namespace

absl::StatusOr<std::unique_ptr<Worker>> Worker::Start(const WorkerOptions& options) {
  if (options.name.empty()) return absl::InvalidArgumentError("a worker needs a name");
  auto cluster = NodeCluster::Open(options.directory);
  if (!cluster.ok()) return cluster.status();
  return std::unique_ptr<Worker>(std::make_unique<WorkerImpl>(options, *std::move(cluster)));
}

}  // namespace strata
