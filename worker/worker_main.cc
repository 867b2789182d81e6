// strata-worker: trains what the scheduler gives it.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "proto/runtime/base/failpoints.h"
#include "proto/runtime/daemon/allocator.h"
#include "proto/runtime/daemon/daemon.h"
#include "proto/runtime/files/node_cluster.h"
#include "proto/runtime/files/path_policy.h"
#include "proto/runtime/files/rooted_files.h"
#include "proto/runtime/transport/grpc_scheduler_client.h"
#include "proto/runtime/transport/grpc_transport.h"
#include "proto/runtime/transport/keepalive.h"
#include "proto/runtime/transport/process_tls.h"
#include "worker/device/open_device.h"
#include "worker/worker.h"

namespace strata {
namespace {

struct Flags {
  std::string scheduler = "127.0.0.1:7070";
  std::string name;
  std::string directory;
  std::string metrics_listen;
  std::string advertise;
  std::string address_file;
  uint32_t threads = 0;
  std::string failpoints;
  std::vector<std::string> data_roots;
  std::string device = "auto";
  std::string cublas;
  uint64_t pinned_bytes = uint64_t{4} << 30;
  std::string certs;
  bool insecure = false;
  bool leave_cluster = false;
};

std::vector<Metric> Collect(const Worker& worker) {
  const WorkerCounters c = worker.Counters();
  std::vector<Metric> metrics = {
      {"strata_worker_examples_total", "Examples trained on.", static_cast<double>(c.examples),
       true},
      {"strata_worker_bad_lines_total", "Lines skipped as bad.", static_cast<double>(c.bad_lines),
       true},
      {"strata_worker_jobs", "Jobs held now.", static_cast<double>(c.jobs), false},
      {"strata_worker_examples_per_second", "Recent rate of training alone.", c.examples_per_second,
       false},
      {"strata_worker_training_loss", "Mean logloss over recent steps.", c.training_loss, false},
      {"strata_worker_step", "Smallest step that a lane of a synchronous job is computing.",
       static_cast<double>(c.step), false},
      {"strata_worker_registered", "1 while the scheduler knows this worker.",
       c.registered ? 1.0 : 0.0, false},
  };
  for (size_t i = 0; i < kStages; ++i) {
    const std::string stage = kStageNames[i];
    metrics.push_back({"strata_worker_step_" + stage + "_seconds_total",
                       "Time of the threads that drive steps spent in stage " + stage + ".",
                       c.stages.path[i], true});
  }
  for (const Stage stage : {Stage::kRead, Stage::kRoute}) {
    const auto i = static_cast<size_t>(stage);
    const std::string name = kStageNames[i];
    metrics.push_back({"strata_worker_ahead_" + name + "_seconds_total",
                       "Time of the threads that prepare later steps spent in stage " + name + ".",
                       c.stages.ahead[i], true});
  }
  return metrics;
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "strata-worker: %s\n", std::string(status.message()).c_str());
  return DaemonExitCode(status);
}

int Run(const Flags& flags, const char* program) {
  if (flags.leave_cluster) {
    const absl::Status left = NodeCluster::Leave(flags.directory);
    return left.ok() ? 0 : Fail(left);
  }
  TuneAllocator();
  if (absl::Status s = ArmFailpointsFromText(flags.failpoints); !s.ok()) return Fail(s);
  const auto tls = ProcessTls::Open({.folder = flags.certs,
                                     .insecure = flags.insecure,
                                     .role = Role::kWorker,
                                     .name = flags.name});
  if (!tls.ok()) return Fail(tls.status());
  auto paths = PathPolicy::Make(flags.data_roots);
  if (!paths.ok()) return Fail(paths.status());
  if (absl::Status s = RestrictFiles(*paths, {flags.directory}); !s.ok()) return Fail(s);
  auto daemon = Daemon::Start({program, flags.directory, flags.metrics_listen, flags.insecure,
                               flags.scheduler, flags.advertise,
                               *tls == nullptr ? nullptr : (*tls)->source()});
  if (!daemon.ok()) return Fail(daemon.status());
  KnownLease lease;
  auto scheduler = MakeNodeSchedulerClient(flags.scheduler, *tls, &lease, "worker " + flags.name);
  auto transport = MakeGrpcTransport({.lease = &lease, .tls = *tls});
  WorkerOptions options;
  options.name = flags.name;
  options.scheduler = scheduler.get();
  options.transport = transport.get();
  options.caller = SelfOf(*tls);
  if (*tls != nullptr) options.credentials = (*tls)->source();
  options.threads = flags.threads;
  options.paths = *paths;
  options.directory = flags.directory;
  options.metrics_address = (*daemon)->metrics_address();
  options.on_replaced = [&daemon](const absl::Status& why) { (*daemon)->Fail(why); };
  options.log = [&daemon](const std::string& line) { (*daemon)->Log(line); };
  auto device = device::OpenWorkerDevice(
      flags.device, flags.cublas,
      flags.threads > 0 ? flags.threads : std::thread::hardware_concurrency());
  if (!device.ok()) {
    return Fail(absl::Status(device.status().code(), "--device " + flags.device + ": " +
                                                         std::string(device.status().message())));
  }
  if (*device != nullptr) {
    // Nothing that it held can be trusted or reached: another process takes the lanes.
    (*device)->api->WhenLost([&daemon](const absl::Status& why) { (*daemon)->Fail(why); });
    (*device)->device.lost_ends_process = true;
    (*device)->api->LimitPinned(flags.pinned_bytes);
    options.device = &(*device)->device;
    (*daemon)->Log("device uuid=" + options.device->uuid + " numerics=\"" +
                   options.device->numerics_id + "\"");
  }
  auto worker = Worker::Start(options);
  if (!worker.ok()) return Fail(worker.status());
  (*daemon)->SetMetrics([&worker] { return Collect(**worker); });
  const absl::Status end =
      (*daemon)->ServeUntilSignal({flags.address_file, (*daemon)->metrics_address(),
                                   "worker=" + flags.name + " scheduler=" + flags.scheduler});
  worker->reset();
  return end.ok() ? 0 : Fail(end);
}

}  // namespace
}  // namespace strata

int main(int argc, char** argv) {
  strata::AllowTls13Alone();
  strata::Flags flags;
  flags.name = "worker-" + std::to_string(getpid());
  CLI::App app{"Strata worker: reads data, pulls weights, computes and pushes gradients."};
  app.add_option("--scheduler", flags.scheduler, "Address of strata-scheduler")
      ->capture_default_str();
  app.add_option("--name", flags.name, "Stable name, unique in the cluster");
  app.add_option("--dir", flags.directory, "Folder of this process: its log and lock")->required();
  app.add_option("--metrics-listen", flags.metrics_listen, "host:port for Prometheus; port 0: any");
  app.add_option("--advertise", flags.advertise,
                 "Host by which other machines reach this one's metrics; default: the host of "
                 "--metrics-listen or, where that is any (0.0.0.0), the address on the way to the "
                 "scheduler");
  app.add_option("--address-file", flags.address_file, "Written when ready: the metrics address");
  app.add_option("--threads", flags.threads, "Threads that compute; 0: all cores");
  app.add_option("--data-root", flags.data_roots, strata::kDataRootHelp)
      ->type_name("DIR")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--failpoints", flags.failpoints, "For tests: name=action[@hit][*hits];...");
  app.add_option("--device", flags.device,
                 "GPU for jobs that want one: its UUID, or that of a MIG slice (its beginning will "
                 "do), first, none, host: what would run on a GPU, on threads (for trying it), or "
                 "auto: the one that this program sees, if it was built with CUDA and sees exactly "
                 "one")
      ->capture_default_str()
      ->check([](const std::string& value) {
        return std::string(value.empty() ? "is empty; give a UUID, or leave it out" : "");
      });
  app.add_option("--pinned-bytes", flags.pinned_bytes,
                 "Bytes of pinned host memory of a process with a device")
      ->capture_default_str()
      ->check(CLI::Range(uint64_t{1} << 20, uint64_t{1} << 50));
  app.add_option("--cublas", flags.cublas, "File of cuBLASLt, instead of looking for it");
  app.add_flag("--leave-cluster", flags.leave_cluster,
               "Forget the cluster that this worker belongs to, and end");
  app.add_option("--certs", flags.certs,
                 "Folder with ca.crt, tls.crt and tls.key of this process (strata certs issue), as "
                 "CERTS/worker/NAME/current: TLS, and everybody is asked who he is");
  app.add_flag("--insecure", flags.insecure, "Allow binding beyond loopback without TLS");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  return strata::Run(flags, argv[0]);
}
