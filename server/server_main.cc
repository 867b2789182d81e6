// strata-server: holds shards of the jobs that the scheduler gives it.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "proto/core/zone.h"
#include "proto/job/checks/byte_size.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/runtime/daemon/advertised_host.h"
#include "proto/runtime/daemon/allocator.h"
#include "proto/runtime/daemon/daemon.h"
#include "proto/runtime/files/machine_id.h"
#include "proto/runtime/files/path_policy.h"
#include "proto/runtime/files/rooted_files.h"
#include "proto/runtime/transport/bind_policy.h"
#include "proto/runtime/transport/grpc_scheduler_client.h"
#include "proto/runtime/transport/grpc_transport.h"
#include "proto/runtime/transport/keepalive.h"
#include "proto/runtime/transport/process_tls.h"
#include "proto/wire/buffer.h"
#include "proto/wire/message_limits.h"
#include "server/leave_cluster.h"
#include "server/open_device.h"
#include "server/pinned_messages.h"
#include "server/server.h"
#include "server/table/gpu_memory.h"
#include "storage/gpu/device/backend.h"

namespace strata {
namespace {

struct Flags {
  std::string scheduler = "127.0.0.1:7070";
  std::string name;
  std::string directory;
  std::string listen = "127.0.0.1:0";
  std::string advertise;
  std::string metrics_listen;
  std::string address_file;
  std::string failpoints;
  std::vector<std::string> data_roots;
  uint32_t threads = 0;
  uint64_t request_bytes = server::ServerOptions{}.request_bytes;
  uint64_t log_direct_from_bytes = server::ServerOptions{}.log_direct_from_bytes;
  uint64_t tier_memtable_bytes = server::ServerOptions{}.tier_memtable_bytes;
  std::string device = "none";
  uint64_t pinned_bytes = uint64_t{4} << 30;
  std::string memory_bytes = "0", disk_bytes = "0", gpu_bytes = "0";
  std::string machine_id;
  std::string zone;
  std::string certs;
  bool insecure = false;
  bool leave_cluster = false;
};

std::vector<Metric> Collect(const server::Server& server) {
  std::vector<Metric> out;
  for (server::ServerMetric& m : server.Metrics()) {
    out.push_back({std::move(m.name), std::move(m.help), m.value, m.counter, std::move(m.labels)});
  }
  return out;
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "strata-server: %s\n", std::string(status.message()).c_str());
  return DaemonExitCode(status);
}

// Of a flag that was checked.
uint64_t BytesOf(const std::string& flag) { return ParseBytes(flag).value_or(0); }

// What is wrong with a flag that is a size; empty: nothing.
std::string CheckSize(const std::string& value) {
  return std::string(ParseBytes(value).status().message());
}

// What jobs may take of the GPU: all of it, unless it was given.
uint64_t GpuBytes(ops::gpu::CudaApi& device) {
  size_t left = 0, total = 0;
  return device.MemoryInfo(&left, &total).ok() ? total : 0;
}

int Run(const Flags& flags, const char* program) {
  if (flags.leave_cluster) {
    const auto left = server::LeaveCluster(flags.directory);
    if (!left.ok()) return Fail(left.status());
    std::printf("left cluster %s\n", left->empty() ? "(none)" : left->c_str());
    return 0;
  }
  TuneAllocator();
  if (absl::Status s = ArmFailpointsFromText(flags.failpoints); !s.ok()) return Fail(s);
  const auto tls = ProcessTls::Open({.folder = flags.certs,
                                     .insecure = flags.insecure,
                                     .role = Role::kServer,
                                     .name = flags.name});
  if (!tls.ok()) return Fail(tls.status());
  const BindScope scope = ScopeOf(*tls, flags.insecure);
  // Before anything is made on disk.
  if (absl::Status s = CheckBindAddress(flags.listen, scope); !s.ok()) {
    return Fail(absl::Status(s.code(), "--listen: " + std::string(s.message())));
  }
  auto host = AdvertisedHost(flags.listen, flags.advertise, flags.scheduler);
  if (!host.ok()) return Fail(host.status());
  // Before files are restricted to the data roots.
  const Machine machine = ThisMachine();
  auto paths = PathPolicy::Make(flags.data_roots);
  if (!paths.ok()) return Fail(paths.status());
  if (absl::Status s = RestrictFiles(*paths, {flags.directory}); !s.ok()) return Fail(s);
  auto daemon = Daemon::Start({program, flags.directory, flags.metrics_listen, flags.insecure,
                               flags.scheduler, flags.advertise,
                               *tls == nullptr ? nullptr : (*tls)->source()});
  if (!daemon.ok()) return Fail(daemon.status());
  KnownLease lease;
  auto scheduler = MakeNodeSchedulerClient(flags.scheduler, *tls, &lease, "server " + flags.name);
  GrpcTransportOptions transport_options;
  transport_options.scope = scope;
  transport_options.lease = &lease;
  transport_options.tls = *tls;
  auto transport = MakeGrpcTransport(transport_options);
  server::ServerOptions options;
  options.name = flags.name;
  options.scheduler = scheduler.get();
  options.transport = transport.get();
  if (*tls != nullptr) options.credentials = (*tls)->source();
  options.listen_address = flags.listen;
  options.advertise_host = *host;
  options.metrics_address = (*daemon)->metrics_address();
  options.directory = flags.directory;
  options.paths = *paths;
  options.threads = flags.threads;
  options.on_replaced = [&daemon](const absl::Status& why) { (*daemon)->Fail(why); };
  options.request_bytes = flags.request_bytes;
  options.log_direct_from_bytes = flags.log_direct_from_bytes;
  options.tier_memtable_bytes = flags.tier_memtable_bytes;
  options.memory_bytes = BytesOf(flags.memory_bytes);
  options.disk_bytes = BytesOf(flags.disk_bytes);
  options.machine_bytes = machine.memory_bytes;
  options.boot_id = machine.host;
  options.disk_id = DiskId(machine.host, flags.directory);
  options.machine_id = flags.machine_id.empty() ? machine.id : flags.machine_id;
  options.zone = flags.zone;
  // For good: messages that lie in its memory may be held until the process ends.
  static ops::gpu::CudaApi* device = nullptr;
  if (flags.device != "none") {
    auto opened = server::OpenServerDevice(flags.device);
    if (!opened.ok()) {
      return Fail(absl::Status(opened.status().code(), "--device " + flags.device + ": " +
                                                           std::string(opened.status().message())));
    }
    device = opened->release();
    // Nothing that it held can be trusted or reached: what is here is recovered by a new process.
    // An answer that tells of it would fail the job.
    device->WhenLost([&daemon](const absl::Status& why) { (*daemon)->Die(why); });
    device->LimitPinned(flags.pinned_bytes);
    static BlockSource* const messages =
        server::MakePinnedMessages(device, flags.pinned_bytes / 4).release();
    SetBlockSource(messages);
    options.device = device->properties().uuid;
    options.gpu_bytes = BytesOf(flags.gpu_bytes);
    options.machine_gpu_bytes = GpuBytes(*device);
    (*daemon)->Log("device uuid=" + options.device);
    options.make_gpu = [](const storage::gpu::GpuShape& shape) {
      return storage::gpu::MakeDeviceGpuBackend(device, shape,
                                                {.max_batch = server::kGpuDeviceBatch});
    };
  }
  auto server = server::Server::Start(options);
  if (!server.ok()) return Fail(server.status());
  (*daemon)->SetMetrics([&server] { return Collect(**server); });
  const std::string address = (*server)->address();
  const absl::Status end = (*daemon)->ServeUntilSignal(
      {flags.address_file, address,
       "server=" + flags.name + " address=" + address + " scheduler=" + flags.scheduler});
  server->reset();
  if (device != nullptr) device->WhenLost(nullptr);
  return end.ok() ? 0 : Fail(end);
}

}  // namespace
}  // namespace strata

int main(int argc, char** argv) {
  strata::AllowTls13Alone();
  strata::Flags flags;
  flags.name = "server-" + std::to_string(getpid());
  CLI::App app{"Strata server: owns shards of the parameters."};
  app.add_option("--scheduler", flags.scheduler, "Address of strata-scheduler")
      ->capture_default_str();
  app.add_option("--name", flags.name, "Stable name, unique in the cluster");
  app.add_option("--dir", flags.directory, "Folder of this process: its jobs, log and lock")
      ->required();
  app.add_option("--listen", flags.listen, "host:port of the data plane; port 0: any")
      ->capture_default_str();
  app.add_option("--advertise", flags.advertise,
                 "Host by which other machines reach this one; default: the host of --listen or, "
                 "where that is any (0.0.0.0), the address on the way to the scheduler");
  app.add_option("--metrics-listen", flags.metrics_listen, "host:port for Prometheus; port 0: any");
  app.add_option("--address-file", flags.address_file, "Written when ready: the data address");
  app.add_option("--threads", flags.threads, "Threads that run shards; 0: all cores");
  constexpr uint64_t kMostBytes = uint64_t{1} << 50;
  app.add_option("--request-bytes", flags.request_bytes,
                 "Bytes of requests held at once, at least one message of the longest")
      ->capture_default_str()
      ->check(CLI::Range(uint64_t{strata::kMaxMessageBytes}, kMostBytes));
  app.add_option("--log-direct-from-bytes", flags.log_direct_from_bytes,
                 "Update logs go around the page cache where appends are at least this long on "
                 "average; 0: always")
      ->capture_default_str()
      ->check(CLI::Range(uint64_t{0}, kMostBytes));
  app.add_option("--tier-memtable-bytes", flags.tier_memtable_bytes,
                 "Memory of one memtable of a job's SSD tier, at least 64 KiB; 0: 8 MiB of a row "
                 "file (two), 16 MiB of RocksDB (three)")
      ->capture_default_str()
      ->check(CLI::Range(strata::server::ServerOptions::kLeastMemtableBytes, uint64_t{1} << 40) |
              CLI::IsMember({"0"}));
  app.add_option("--pinned-bytes", flags.pinned_bytes,
                 "Bytes of pinned host memory of a process with a device: of its GPU tables, and, "
                 "a quarter at most, of messages")
      ->capture_default_str()
      ->check(CLI::Range(uint64_t{1} << 20, kMostBytes));
  app.add_option(
         "--memory-bytes", flags.memory_bytes,
         "Memory that jobs may take here, such as 8GiB: one that would need more of it than "
         "is free waits; 0: an equal share of the machine's memory among the servers on it")
      ->capture_default_str()
      ->check(strata::CheckSize);
  app.add_option(
         "--disk-bytes", flags.disk_bytes,
         "Disk that jobs may take under --dir for rows, logs and images; 0: an equal share of "
         "what is free there, with what jobs have, among the servers on that file system")
      ->capture_default_str()
      ->check(strata::CheckSize);
  app.add_option(
         "--gpu-bytes", flags.gpu_bytes,
         "Memory of the GPU that jobs may take; 0: an equal share of it among the servers that "
         "use it")
      ->capture_default_str()
      ->check(strata::CheckSize);
  app.add_option("--machine-id", flags.machine_id,
                 "Servers that name the same machine share its memory; default: what the kernel "
                 "says, or the control group (of a container, of a service) that limits it");
  app.add_option("--zone", flags.zone,
                 "What fails together with this server, as a rack or a site: copies of a shard lie "
                 "in different zones; default: its name")
      ->check(
          [](const std::string& zone) { return std::string(strata::CheckZone(zone).message()); });
  app.add_option(
         "--device", flags.device,
         "UUID of the GPU, or of the MIG slice, for jobs with a GPU tier (its beginning will "
         "do), first, none, or host: what would run on a GPU, on threads (for trying it)")
      ->capture_default_str()
      ->check([](const std::string& value) {
        return std::string(value.empty() ? "is empty; give a UUID, or leave it out" : "");
      });
  app.add_option("--data-root", flags.data_roots, strata::kDataRootHelp)
      ->type_name("DIR")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--failpoints", flags.failpoints, "For tests: name=action[@hit][*hits];...");
  app.add_flag("--leave-cluster", flags.leave_cluster,
               "Forget the cluster that this server belongs to, and end; refused while it holds "
               "jobs");
  app.add_option("--certs", flags.certs,
                 "Folder with ca.crt, tls.crt and tls.key of this process (strata certs issue), as "
                 "CERTS/server/NAME/current: TLS, and everybody is asked who he is");
  app.add_flag("--insecure", flags.insecure, "Allow binding beyond loopback without TLS");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  return strata::Run(flags, argv[0]);
}
