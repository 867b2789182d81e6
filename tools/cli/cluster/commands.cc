#include "tools/cli/cluster/commands.h"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/runtime/base/clock.h"
#include "proto/runtime/credentials/certs_command.h"
#include "proto/runtime/files/path_policy.h"
#include "proto/runtime/transport/grpc_scheduler_client.h"
#include "proto/runtime/transport/process_tls.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/strata/control.pb.h"
#include "tools/cli/base/interrupt.h"
#include "tools/cli/base/job_text.h"
#include "tools/cli/base/security_text.h"
#include "tools/cli/cluster/cluster_certs.h"
#include "tools/cli/cluster/cluster_dir.h"
#include "tools/cli/cluster/last_words.h"
#include "tools/cli/cluster/process.h"
#include "tools/cli/cluster/supervisor.h"
#include "tools/cli/cluster/tail.h"
#include "tools/cli/context/choice.h"
#include "tools/cli/context/context_file.h"
#include "tools/cli/context/contexts.h"

namespace strata {
namespace {

constexpr absl::Duration kPollInterval = absl::Milliseconds(50);
// A process that had to be started this often will not come up by waiting.
constexpr uint32_t kRestartsBeforeGivingUp = 4;

// That of `up` without --dir.
ClusterDir DefaultDir() { return ClusterDir("./strata-run"); }

bool Runs(const ClusterDir& dir) {
  const absl::StatusOr<ClusterState> state = dir.ReadState();
  if (!state.ok()) return false;
  return IsRunning(state->supervisor) ||
         std::any_of(state->processes.begin(), state->processes.end(),
                     [](const ProcessState& p) { return IsRunning(p.id); });
}

// Without --dir the cluster that runs here counts before the one that was started last.
std::string FolderOf(const std::string& given) {
  if (!given.empty()) return ClusterDir(given).path();
  if (Runs(DefaultDir())) return DefaultDir().path();
  const std::string folder = FolderOfContext();
  return folder.empty() ? DefaultDir().path() : folder;
}

std::string DownCommand(const ClusterDir& dir) {
  return absl::StrCat("strata down", dir.path() == DefaultDir().path() ? "" : InFolder(dir.path()));
}

// A cluster that is down has no name.
void ForgetContext(const ClusterDir& dir) {
  const absl::StatusOr<Contexts> contexts = ReadContexts();
  absl::Status forgotten = contexts.status();
  if (contexts.ok() && HasContextOfFolder(*contexts, dir.path())) {
    forgotten = ChangeContexts([&](Contexts& all) {
      RemoveContextOfFolder(dir.path(), all);
      return absl::OkStatus();
    });
  }
  if (forgotten.ok()) return;
  std::fprintf(stderr, "strata: the cluster's context stays: %s\n",
               std::string(forgotten.message()).c_str());
}

// What a process that does not come up has said last.
absl::Status NotUp(const ClusterDir& dir, const std::string& name, const std::string& trouble,
                   const LogSizes& before) {
  return absl::InternalError(
      absl::StrCat(name, " does not come up (", trouble, "); ", EndOfLog(dir, name, before)));
}

// Registered nodes that are processes of this start: a scheduler that came back still knows those
// of the one before, until their leases end.
uint32_t CountAlive(const ClusterStatus& cluster, const ClusterState& state, NodeRole role) {
  uint32_t alive = 0;
  for (const NodeStatus& n : cluster.nodes()) {
    for (const ProcessState& p : state.processes) {
      alive += n.alive() && n.role() == role && n.name() == p.name && n.pid() == p.id.pid;
    }
  }
  return alive;
}

// Waits until all have registered; the cluster as the scheduler sees it then. `before`: the logs as
// this start found them.
absl::StatusOr<ClusterStatus> WaitUntilUp(const ClusterDir& dir, const UpOptions& options,
                                          const std::shared_ptr<ProcessTls>& tls,
                                          const ProcessId& supervisor, const LogSizes& before,
                                          std::string* scheduler) {
  const absl::Time deadline = Clock::Real()->Now() + absl::Seconds(options.timeout_seconds);
  const std::atomic<bool>& interrupted = CatchInterrupts();
  std::unique_ptr<SchedulerClient> client;
  std::string waiting_for = "the scheduler";
  std::string why;
  while (Clock::Real()->Now() < deadline) {
    if (interrupted.load()) return absl::CancelledError("interrupted");
    if (!IsRunning(supervisor)) return NotUp(dir, "supervisor", "it ended", before);
    absl::StatusOr<ClusterState> state = dir.ReadState();
    if (state.ok()) {
      for (const ProcessState& p : state->processes) {
        if (p.restarts >= kRestartsBeforeGivingUp) return NotUp(dir, p.name, p.trouble, before);
      }
      why = WhyNotUp(dir, *state, before);
      *scheduler = state->scheduler;
    }
    if (state.ok() && !scheduler->empty()) {
      if (client == nullptr) client = MakeGrpcSchedulerClient(*scheduler, tls);
      const absl::StatusOr<ClusterStatus> cluster = client->GetCluster(absl::Seconds(1));
      if (cluster.ok()) {
        const uint32_t servers = CountAlive(*cluster, *state, SERVER),
                       workers = CountAlive(*cluster, *state, WORKER);
        if (servers >= options.servers && workers >= options.workers) return *cluster;
        waiting_for =
            absl::StrCat(options.servers - std::min(servers, options.servers), " servers and ",
                         options.workers - std::min(workers, options.workers), " workers");
      }
    }
    absl::SleepFor(kPollInterval);
  }
  if (why.empty()) why = absl::StrCat("the logs are in ", dir.path(), "/logs");
  return absl::DeadlineExceededError(absl::StrCat("still waiting for ", waiting_for, " after ",
                                                  Duration(options.timeout_seconds), "; ", why));
}

// Stops the supervisor, which stops its processes; then whatever of them still runs (a supervisor
// that was killed leaves them).
absl::Status StopAll(const ClusterDir& dir, const ClusterState& state, absl::Duration limit) {
  const absl::Time deadline = Clock::Real()->Now() + limit;
  Signal(state.supervisor, SIGTERM);
  if (!WaitForEnd(state.supervisor, limit)) {
    return absl::DeadlineExceededError(absl::StrCat("the supervisor (process ",
                                                    state.supervisor.pid, ") has not ended after ",
                                                    Duration(absl::ToDoubleSeconds(limit))));
  }
  std::vector<ProcessState> left = state.processes;
  std::reverse(left.begin(), left.end());  // workers, servers, scheduler
  for (const ProcessState& p : left) {
    Signal(p.id, SIGTERM);
    if (WaitForEnd(p.id, std::max(deadline - Clock::Real()->Now(), absl::Seconds(1)))) continue;
    std::fprintf(stderr, "strata: %s (process %d) did not end; killing it\n", p.name.c_str(),
                 p.id.pid);
    Signal(p.id, SIGKILL);
    WaitForEnd(p.id, absl::Seconds(5));
  }
  dir.RemoveState();
  return absl::OkStatus();
}

absl::StatusOr<ProcessId> StartSupervisor(const ClusterDir& dir) {
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) return absl::InternalError(absl::StrCat("/proc/self/exe: ", error.message()));
  return StartProcess({self, "supervise", "--dir", dir.path()}, dir.LogPath("supervisor"));
}

// The processes have other working folders. "" stays.
absl::StatusOr<std::string> Absolute(const std::string& path) {
  if (path.empty()) return path;
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(path, error).string();
  if (error) return absl::NotFoundError(absl::StrCat(path, ": ", error.message()));
  return absolute;
}

absl::Status CheckFree(const ClusterDir& dir) {
  if (!dir.IsLocked() && !Runs(dir)) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat("a cluster is running in ", dir.path(),
                                               "; stop it with 'strata down --dir ", dir.path(),
                                               "', or give another --dir"));
}

absl::Status CheckPrograms(const UpOptions& options) {
  for (const char* program : {"strata-scheduler", "strata-server", "strata-worker"}) {
    absl::StatusOr<std::string> path = FindProgram(options.bin_dir, program);
    if (!path.ok()) return path.status();
  }
  return absl::OkStatus();
}

absl::StatusOr<ClusterConfig> ConfigFor(const UpOptions& options) {
  absl::StatusOr<std::string> bin_dir = Absolute(options.bin_dir);
  if (!bin_dir.ok()) return bin_dir.status();
  ClusterConfig config = {*bin_dir,        options.servers,        options.workers,
                          options.devices, options.worker_devices, {}};
  for (const std::string& root : options.data_roots) {
    absl::StatusOr<std::string> absolute = Absolute(root);
    if (!absolute.ok()) return absolute.status();
    config.data_roots.push_back(*std::move(absolute));
  }
  config.insecure = options.insecure;
  config.zones = options.zones;
  return config;
}

// A cluster that is up, as its user reaches it.
struct Reached {
  ClusterStatus cluster;
  std::string scheduler;  // host:port
  std::string certs;      // folder of the user's certificate; empty: without TLS
};

// Starts the processes of a folder that has its configuration, and waits for them.
absl::StatusOr<Reached> StartAll(const ClusterDir& dir, const UpOptions& options,
                                 const std::string& certs) {
  const auto tls = ProcessTls::Open({.folder = certs});
  if (!tls.ok()) return tls.status();
  const LogSizes before = SizesOfLogs(dir);
  absl::StatusOr<ProcessId> supervisor = StartSupervisor(dir);
  if (!supervisor.ok()) return supervisor.status();
  Reached reached{{}, "", certs};
  auto cluster = WaitUntilUp(dir, options, *tls, *supervisor, before, &reached.scheduler);
  if (cluster.ok()) {
    reached.cluster = *std::move(cluster);
    return reached;
  }
  ClusterState started = dir.ReadState().value_or(ClusterState{});
  started.supervisor = *supervisor;
  const absl::Status stopped = StopAll(dir, started, absl::Seconds(30));
  if (!stopped.ok()) std::fprintf(stderr, "strata: %s\n", std::string(stopped.message()).c_str());
  return cluster.status();
}

// Steps: 1 nothing is missing, 2 the folder, where nobody else starts one and nothing runs, and its
// configuration, 3 certificates (MakeClusterCerts), 4 the processes (StartAll).
absl::StatusOr<Reached> Up(const UpOptions& options, const ClusterDir& dir) {
  absl::Status status = PathPolicy::Make(options.data_roots).status();
  if (status.ok()) status = CheckPrograms(options);
  if (status.ok()) status = dir.Make();
  if (status.ok()) status = dir.LockStart();
  if (status.ok()) status = CheckFree(dir);
  if (!status.ok()) return status;
  dir.RemoveState();
  const absl::StatusOr<ClusterConfig> config = ConfigFor(options);
  if (!config.ok()) return config.status();
  status = dir.WriteConfig(*config);
  if (!status.ok()) return status;
  absl::StatusOr<std::string> certs = std::string();
  if (!options.insecure) certs = MakeClusterCerts(dir, *config, Clock::Real()->Now());
  if (!certs.ok()) return certs.status();
  return StartAll(dir, options, *certs);
}

}  // namespace

ExitCode RunUp(const UpOptions& options) {
  if (!options.devices.empty() && options.devices.size() != options.servers) {
    std::fprintf(stderr, "strata: --devices: %zu for %u servers; name one for each, or no list\n",
                 options.devices.size(), options.servers);
    return kExitUsage;
  }
  if (!options.zones.empty() && options.zones.size() != options.servers) {
    std::fprintf(stderr, "strata: --zones: %zu for %u servers; name one for each, or no list\n",
                 options.zones.size(), options.servers);
    return kExitUsage;
  }
  if (!options.worker_devices.empty() && options.worker_devices.size() != options.workers) {
    std::fprintf(stderr,
                 "strata: --worker-devices: %zu for %u workers; name one for each, or no list\n",
                 options.worker_devices.size(), options.workers);
    return kExitUsage;
  }
  const ClusterDir dir(options.dir);
  const absl::StatusOr<Reached> up = Up(options, dir);
  if (absl::IsCancelled(up.status())) {
    std::fprintf(stderr, "strata: interrupted; everything was stopped again\n");
    return kExitInterrupted;
  }
  if (!up.ok()) return ReportError(up.status());
  const std::string& scheduler = up->scheduler;
  const absl::Status written = ChangeContexts([&](Contexts& contexts) {
    return UseContextOfFolder(dir.path(), scheduler, up->certs, contexts);
  });
  if (!written.ok()) {
    std::fprintf(stderr, "strata: %s; name the cluster with --scheduler %s%s%s\n",
                 std::string(written.message()).c_str(), scheduler.c_str(),
                 up->certs.empty() ? "" : " --certs ", up->certs.c_str());
  }
  if (options.json) {
    std::printf("{\"scheduler\":\"%s\",\"cluster\":%s}\n", scheduler.c_str(),
                ClusterJson(up->cluster).c_str());
    return kExitOk;
  }
  const std::string security = SecurityText(up->cluster, Clock::Real()->Now(), up->certs);
  std::printf("%s%s", ClusterTable(up->cluster).c_str(), security.c_str());
  std::fprintf(stderr,
               "The cluster is up: scheduler %s, everything in %s.\n"
               "Submit a job: strata submit -f job.yaml --wait   Stop: %s\n",
               scheduler.c_str(), dir.path().c_str(), DownCommand(dir).c_str());
  return kExitOk;
}

ExitCode RunDown(const DownOptions& options) {
  const ClusterDir dir(FolderOf(options.dir));
  absl::StatusOr<ClusterState> state = dir.ReadState();
  if (!state.ok()) {
    ForgetContext(dir);
    return ReportError(absl::NotFoundError(absl::StrCat("no cluster is running in ", dir.path())));
  }
  const absl::Status status = StopAll(dir, *state, absl::Seconds(options.timeout_seconds));
  if (!status.ok()) return ReportError(status);
  ForgetContext(dir);
  if (options.json) {
    nlohmann::ordered_json stopped = nlohmann::ordered_json::array();
    for (const ProcessState& p : state->processes) stopped.push_back(p.name);
    const nlohmann::ordered_json json = {{"dir", dir.path()}, {"stopped", std::move(stopped)}};
    std::printf("%s\n", json.dump().c_str());
  }
  std::fprintf(stderr, "The cluster in %s is down; its logs and data are still there.\n",
               dir.path().c_str());
  return kExitOk;
}

ExitCode RunLogs(const LogsOptions& options) {
  const ClusterDir dir(FolderOf(options.dir));
  absl::StatusOr<std::vector<std::string>> found = LogNames(dir.path() + "/logs");
  if (!found.ok()) {
    return ReportError(absl::NotFoundError(absl::StrCat(
        "no logs in ", dir.path(), "/logs; processes of other machines keep theirs there")));
  }
  const std::vector<std::string>& names = options.names.empty() ? *found : options.names;
  for (const std::string& name : names) {
    if (std::count(found->begin(), found->end(), name) == 0) {
      return ReportError(absl::NotFoundError(absl::StrCat("no process '", name, "' in ", dir.path(),
                                                          "; there are: ", JoinNames(*found))));
    }
  }
  Tail tail(dir.path() + "/logs", names, options.lines,
            options.json ? Tail::Format::kJson : Tail::Format::kText);
  tail.Print(stdout);
  const std::atomic<bool>& interrupted = CatchInterrupts();
  while (options.follow && !interrupted.load()) {
    absl::SleepFor(absl::Milliseconds(200));
    tail.Print(stdout);
  }
  return kExitOk;
}

ExitCode RunSupervise(const SuperviseOptions& options) {
  // glog's own setting, inherited by the daemons: what they log also goes to logs/NAME.log.
  setenv("GLOG_alsologtostderr", "1", 1);
  // Theirs, unlike that of commands, is for a log.
  unsetenv("GRPC_VERBOSITY");
  const absl::Status status =
      Supervise(ClusterDir(options.dir), SupervisorOptions{}, CatchInterrupts());
  return status.ok() ? kExitOk : ReportError(status);
}

}  // namespace strata
