#include "proto/runtime/daemon/daemon.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>
#include <prometheus/metric_type.h>
#include <prometheus/text_serializer.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/runtime/base/timer.h"
#include "proto/runtime/daemon/advertised_host.h"
#include "proto/runtime/metrics/metrics_server.h"
#include "proto/runtime/transport/bind_policy.h"
#include "proto/runtime/transport/refusal_log.h"

namespace strata {
namespace {

// What the operating system says of this process.
void AddProcessMetrics(std::vector<Metric>& out) {
  rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    out.push_back({"strata_process_cpu_seconds_total", "Processor time used, user and system.",
                   seconds(usage.ru_utime) + seconds(usage.ru_stime), true});
  }
  unsigned long long total = 0, resident = 0;
  std::FILE* statm = std::fopen("/proc/self/statm", "re");
  if (statm == nullptr) return;
  if (std::fscanf(statm, "%llu %llu", &total, &resident) == 2) {
    out.push_back({"strata_process_resident_bytes", "Memory of this process that is not paged out.",
                   static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)),
                   false});
  }
  std::fclose(statm);
}

// Until when what this process shows of itself is good, as Prometheus has it of other certificates.
void AddCertificateMetrics(CredentialSource& credentials, std::vector<Metric>& out) {
  const absl::Time until = credentials.Current()->certificate.facts.valid.until;
  out.push_back({"strata_certificate_not_after_timestamp_seconds",
                 "When the certificate of this process expires, in seconds since 1970.",
                 static_cast<double>(absl::ToUnixSeconds(until)), false});
  out.push_back({"strata_certificate_unfit",
                 "1: what lies in the place of that certificate is no good, or it has expired.",
                 credentials.problem().ok() ? 0.0 : 1.0, false});
  out.push_back({"strata_handshakes_failed_total",
                 "Handshakes of gRPC that TLS ended, of connections to this process and from it.",
                 static_cast<double>(FailedHandshakes()), true});
  out.push_back({"strata_calls_refused_total",
                 "Calls whose caller's certificate is no good, or whose role may not make them.",
                 static_cast<double>(RefusedCalls()), true});
}

// Bridges our plain numbers to the library's families, and those to their text.
class Collector {
 public:
  explicit Collector(std::shared_ptr<CredentialSource> credentials)
      : credentials_(std::move(credentials)) {}

  void Set(std::function<std::vector<Metric>()> collect) {
    absl::MutexLock lock(&mu_);
    collect_ = std::move(collect);
  }

  std::string Text() const {
    absl::MutexLock lock(&mu_);
    std::vector<prometheus::MetricFamily> families;
    if (!collect_) return "";
    std::vector<Metric> metrics = collect_();
    AddProcessMetrics(metrics);
    if (credentials_ != nullptr) AddCertificateMetrics(*credentials_, metrics);
    for (const Metric& m : metrics) {
      prometheus::ClientMetric value;
      if (m.counter) {
        value.counter.value = m.value;
      } else {
        value.gauge.value = m.value;
      }
      for (const auto& [name, is] : m.labels) value.label.push_back({name, is});
      if (families.empty() || families.back().name != m.name) {
        families.push_back(
            {m.name,
             m.help,
             m.counter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge,
             {}});
      }
      families.back().metric.push_back(value);
    }
    return prometheus::TextSerializer().Serialize(families);
  }

 private:
  const std::shared_ptr<CredentialSource> credentials_;
  mutable absl::Mutex mu_;
  std::function<std::vector<Metric>()> collect_ ABSL_GUARDED_BY(mu_);
};

class DaemonImpl : public Daemon {
 public:
  explicit DaemonImpl(const DaemonOptions& options)
      : o_(options), collector_(std::make_shared<Collector>(options.credentials)) {}

  ~DaemonImpl() override {
    Timer::Real()->Cancel(this);
    StopMetrics();
    metrics_.reset();
    if (logging_) google::ShutdownGoogleLogging();
    if (lock_ >= 0) close(lock_);
  }

  absl::Status OpenFolder() {
    std::error_code error;
    std::filesystem::create_directories(o_.directory + "/log", error);
    const std::string path = o_.directory + "/lock";
    if (!error) lock_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (error || lock_ < 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("--dir ", o_.directory,
                       " cannot be written: ", error ? error.message() : std::strerror(errno),
                       "; name a folder that this user may write to"));
    }
    if (flock(lock_, LOCK_EX | LOCK_NB) != 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("--dir ", o_.directory,
                       " is in use by another process; every process needs a folder of its own"));
    }
    return absl::OkStatus();
  }

  void BlockSignals() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
  }

  void OpenLog() {
    FLAGS_log_dir = o_.directory + "/log";
    FLAGS_logbufsecs = 0;
    FLAGS_max_log_size = 100;                      // MiB
    FLAGS_stderrthreshold = google::GLOG_WARNING;  // an unreachable scheduler too
    google::InitGoogleLogging(o_.program.c_str());
    logging_ = true;
    FollowGrpcLog();
  }

  absl::Status OpenMetrics() {
    if (o_.metrics_listen.empty()) return absl::OkStatus();
    // With credentials whoever reads them proves who he is.
    const bool anywhere = o_.insecure || o_.credentials != nullptr;
    if (absl::Status s = CheckBindAddress(
            o_.metrics_listen, anywhere ? BindScope::kAnywhereInsecure : BindScope::kLoopbackOnly);
        !s.ok()) {
      return absl::Status(s.code(), absl::StrCat("--metrics-listen: ", s.message()));
    }
    auto metrics = MetricsServer::Start({.address = o_.metrics_listen,
                                         .text = [c = collector_] { return c->Text(); },
                                         .credentials = o_.credentials,
                                         .timer = Timer::Real()});
    if (!metrics.ok()) {
      return absl::Status(metrics.status().code(),
                          absl::StrCat("--metrics-listen ", metrics.status().message(),
                                       "; choose another port, or 0 for any"));
    }
    metrics_ = *std::move(metrics);
    const std::string bound = absl::StrCat(
        o_.metrics_listen.substr(0, o_.metrics_listen.rfind(':')), ":", metrics_->port());
    if (o_.scheduler.empty()) {
      metrics_address_ = bound;
      return absl::OkStatus();
    }
    // Metrics may stay on loopback where the rest does not.
    const bool local = CheckBindAddress(bound, BindScope::kLoopbackOnly).ok();
    auto host = AdvertisedHost(bound, local ? "" : o_.advertise, o_.scheduler);
    if (!host.ok()) return host.status();
    metrics_address_ = AtHost(bound, *host);
    return absl::OkStatus();
  }

  void SetMetrics(std::function<std::vector<Metric>()> collect) override {
    collector_->Set(std::move(collect));
  }
  std::string metrics_address() const override { return metrics_address_; }

  absl::Status ServeUntilSignal(const Ready& ready) override {
    if (absl::Status s = WriteAddressFile(ready.address_file, ready.address); !s.ok()) return s;
    Log(absl::StrCat("started ", ready.fields));
    int number = 0;
    sigwait(&signals_, &number);
    Log(absl::StrCat("stopping signal=", number));
    Timer::Real()->At(Timer::Real()->Now() + kEndWithin, this, [this] {
      Die(absl::DeadlineExceededError(
          absl::StrCat("what closes has not ended for ", absl::FormatDuration(kEndWithin),
                       "; see whether the mounts that jobs name answer on this machine")));
    });
    StopMetrics();
    absl::MutexLock lock(&mu_);
    return failure_;
  }

  void Log(const std::string& line) override { LOG(INFO) << line; }

  void Fail(const absl::Status& why) override {
    absl::MutexLock lock(&mu_);
    if (!failure_.ok()) return;
    failure_ = why;
    kill(getpid(), SIGTERM);
  }

  void Die(const absl::Status& why) override {
    LOG(ERROR) << "ends_at_once error=\"" << why << '"';
    google::FlushLogFiles(google::GLOG_INFO);
    _exit(DaemonExitCode(why));
  }

 private:
  void StopMetrics() { collector_->Set(nullptr); }

  // By a temporary file and a rename, so that a reader never sees half of it.
  absl::Status WriteAddressFile(const std::string& path, const std::string& address) {
    if (path.empty()) return absl::OkStatus();
    const std::string next = path + ".next";
    std::FILE* file = std::fopen(next.c_str(), "w");
    const bool written = file != nullptr && std::fprintf(file, "%s\n", address.c_str()) > 0;
    const bool closed = file != nullptr && std::fclose(file) == 0;
    if (!written || !closed || std::rename(next.c_str(), path.c_str()) != 0) {
      const int error = errno;
      std::remove(next.c_str());
      return absl::FailedPreconditionError(
          absl::StrCat("--address-file ", path, " cannot be written: ", std::strerror(error)));
    }
    return absl::OkStatus();
  }

  const DaemonOptions o_;
  const std::shared_ptr<Collector> collector_;
  std::unique_ptr<MetricsServer> metrics_;
  std::string metrics_address_;
  sigset_t signals_;
  int lock_ = -1;
  bool logging_ = false;
  absl::Mutex mu_;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

int DaemonExitCode(const absl::Status& end) {
  if (end.ok()) return 0;
  if (absl::IsUnauthenticated(end)) return 4;
  return absl::IsInvalidArgument(end) || absl::IsPermissionDenied(end) ? 2 : 1;
}

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(const DaemonOptions& options) {
  auto daemon = std::make_unique<DaemonImpl>(options);
  daemon->BlockSignals();
  if (absl::Status s = daemon->OpenFolder(); !s.ok()) return s;
  daemon->OpenLog();
  if (absl::Status s = daemon->OpenMetrics(); !s.ok()) return s;
  return std::unique_ptr<Daemon>(std::move(daemon));
}

}  // namespace strata
