#include "tools/cli/cluster/supervisor.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "tools/cli/base/text_file.h"
#include "tools/cli/cluster/cluster_certs.h"
#include "tools/cli/cluster/restart_backoff.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

// One process that is to run for ever.
struct Charge {
  std::string name;
  std::string program;  // path
  ProcessId id;         // pid 0: does not run
  absl::Time started;
  absl::Time start_at = absl::InfinitePast();
  RestartBackoff backoff;
  uint32_t restarts = 0;
  std::string trouble;
  std::string device;  // --device; "": none
  std::string zone;    // --zone; "": its name
};

std::string DescribeEnd(int wait_status) {
  if (WIFSIGNALED(wait_status)) return absl::StrCat("killed by signal ", WTERMSIG(wait_status));
  return absl::StrCat("ended with exit code ", WEXITSTATUS(wait_status));
}

// The state behind Supervise. Charges are in starting order: scheduler, servers, workers.
class Supervisor {
 public:
  Supervisor(const ClusterDir& dir, const SupervisorOptions& options)
      : dir_(dir), options_(options), looked_at_certs_(WallNow()) {}

  absl::Status Prepare(const ClusterConfig& config) {
    config_ = config;
    absl::Status status = Add(config, "scheduler", "strata-scheduler");
    for (uint32_t i = 0; status.ok() && i < config.servers; ++i) {
      status = Add(config, absl::StrCat("server-", i), "strata-server");
      if (status.ok() && i < config.devices.size()) charges_.back().device = config.devices[i];
      if (status.ok() && i < config.zones.size()) charges_.back().zone = config.zones[i];
    }
    for (uint32_t i = 0; status.ok() && i < config.workers; ++i) {
      status = Add(config, absl::StrCat("worker-", i), "strata-worker");
      if (status.ok() && i < config.worker_devices.size()) {
        charges_.back().device = config.worker_devices[i];
      }
    }
    return status;
  }

  // One round: renews certificates, learns of ends, starts what is due.
  void Round() {
    LookAtCerts();
    Reap();
    ReadAddress();
    for (Charge& charge : charges_) {
      const bool waits_for_scheduler = &charge != &charges_[0] && address_.empty();
      if (charge.id.pid == 0 && !waits_for_scheduler && options_.clock->Now() >= charge.start_at) {
        Start(charge);
      }
    }
    if (changed_) WriteState();
  }

  void Stop() {
    // In groups, so that servers can still write what workers sent, and the scheduler hear of it.
    for (const char* group : {"worker-", "server-", "scheduler"}) {
      for (Charge& c : charges_) {
        if (c.name.rfind(group, 0) == 0 && c.id.pid != 0) kill(c.id.pid, SIGTERM);
      }
      // They end in the machine's time.
      const absl::Time deadline = Clock::Real()->Now() + options_.stop_limit;
      while (AnyRuns(group) && Clock::Real()->Now() < deadline) {
        Reap();
        absl::SleepFor(absl::Milliseconds(10));
      }
      for (Charge& c : charges_) {
        if (c.name.rfind(group, 0) != 0 || c.id.pid == 0) continue;
        std::fprintf(stderr, "event=killed name=%s reason=did_not_end\n", c.name.c_str());
        kill(c.id.pid, SIGKILL);
        waitpid(c.id.pid, nullptr, 0);
        c.id = {};
      }
    }
    dir_.RemoveState();
  }

 private:
  absl::Time WallNow() const { return options_.clock->Wall(options_.clock->Now()); }

  // By the wall clock, which goes on while the machine sleeps, and may be set back.
  void LookAtCerts() {
    const absl::Time now = WallNow();
    const absl::Duration since = now - looked_at_certs_;
    if (config_.insecure || (absl::ZeroDuration() <= since && since < options_.look_at_certs)) {
      return;
    }
    looked_at_certs_ = now;
    const absl::Status made = MakeClusterCerts(dir_, config_, now).status();
    if (made.ok()) return;
    std::fprintf(stderr, "event=certificates_not_renewed error=\"%s\" next=retry_in_%s\n",
                 std::string(made.message()).c_str(),
                 absl::FormatDuration(options_.look_at_certs).c_str());
  }

  absl::Status Add(const ClusterConfig& config, std::string name, const std::string& program) {
    absl::StatusOr<std::string> path = FindProgram(config.bin_dir, program);
    if (!path.ok()) return path.status();
    const RestartBackoff::Options pauses = {options_.first_backoff, options_.max_backoff,
                                            options_.healthy_after};
    charges_.push_back(
        {.name = std::move(name), .program = *path, .backoff = RestartBackoff(pauses)});
    return absl::OkStatus();
  }

  std::vector<std::string> Arguments(const Charge& c) const {
    std::vector<std::string> argv = {c.program, "--dir", dir_.ProcessPath(c.name)};
    if (!config_.insecure) argv.insert(argv.end(), {"--certs", ProcessCertsFolder(dir_, c.name)});
    const auto add = [&argv](std::initializer_list<std::string> more) {
      argv.insert(argv.end(), more);
    };
    if (&c == &charges_[0]) {
      add({"--listen", address_.empty() ? "127.0.0.1:0" : address_});
      if (!config_.insecure) {
        add({"--revoked", absl::StrCat(dir_.CertsPath(), "/ca/revoked")});
        add({"--admins", ClusterUser()});
      }
      add({"--address-file", dir_.AddressPath()});
      AddDataRoots(argv);
      return argv;
    }
    add({"--scheduler", address_, "--name", c.name, "--metrics-listen", "127.0.0.1:0"});
    if (c.name.rfind("server-", 0) == 0) add({"--listen", "127.0.0.1:0"});
    if (!c.device.empty()) add({"--device", c.device});
    if (!c.zone.empty()) add({"--zone", c.zone});
    AddDataRoots(argv);
    return argv;
  }

  void AddDataRoots(std::vector<std::string>& argv) const {
    for (const std::string& root : config_.data_roots)
      argv.insert(argv.end(), {"--data-root", root});
  }

  void Start(Charge& c) {
    std::error_code ignored;  // the process itself says why its folder cannot be used
    fs::create_directories(dir_.ProcessPath(c.name), ignored);
    absl::StatusOr<ProcessId> id = StartProcess(Arguments(c), dir_.LogPath(c.name));
    changed_ = true;
    c.started = options_.clock->Now();
    if (!id.ok()) {
      Backoff(c, std::string(id.status().message()));
      return;
    }
    c.id = *id;
    c.trouble.clear();
    std::fprintf(stderr, "event=started name=%s pid=%d restarts=%u\n", c.name.c_str(), c.id.pid,
                 c.restarts);
    absl::Status written = WriteTextFile(dir_.PidPath(c.name), absl::StrCat(c.id.pid, "\n"));
    if (!written.ok())
      std::fprintf(stderr, "event=error %s\n", std::string(written.message()).c_str());
  }

  void Backoff(Charge& c, const std::string& trouble) {
    const absl::Time now = options_.clock->Now();
    c.id = {};
    c.trouble = trouble;
    c.start_at = now + c.backoff.OnEnd(now - c.started);
    ++c.restarts;
    changed_ = true;
  }

  void Reap() {
    for (Charge& c : charges_) {
      int status = 0;
      if (c.id.pid == 0 || waitpid(c.id.pid, &status, WNOHANG) != c.id.pid) continue;
      std::fprintf(stderr, "event=ended name=%s pid=%d how=\"%s\"\n", c.name.c_str(), c.id.pid,
                   DescribeEnd(status).c_str());
      unlink(dir_.PidPath(c.name).c_str());
      Backoff(c, DescribeEnd(status));
    }
  }

  // The scheduler's port is its own choice the first time, and kept from then on.
  void ReadAddress() {
    if (!address_.empty()) return;
    absl::StatusOr<std::string> text = ReadTextFile(dir_.AddressPath());
    if (!text.ok()) return;
    address_ = std::string(absl::StripAsciiWhitespace(*text));
    changed_ = changed_ || !address_.empty();
  }

  bool AnyRuns(const std::string& group) const {
    for (const Charge& c : charges_) {
      if (c.name.rfind(group, 0) == 0 && c.id.pid != 0) return true;
    }
    return false;
  }

  void WriteState() {
    ClusterState state;
    state.supervisor = FindProcess(getpid()).value_or(ProcessId{});
    state.scheduler = address_;
    for (const Charge& c : charges_) {
      state.processes.push_back({c.name, c.id, c.restarts, c.trouble});
    }
    const absl::Status written = dir_.WriteState(state);
    changed_ = !written.ok();  // a full disk: tried again next round
  }

  const ClusterDir& dir_;
  const SupervisorOptions options_;
  std::vector<Charge> charges_;
  ClusterConfig config_;
  absl::Time looked_at_certs_;  // `strata up` has just made them
  std::string address_;
  bool changed_ = true;
};

}  // namespace

absl::StatusOr<std::string> FindProgram(const std::string& bin_dir, const std::string& program) {
  std::vector<std::string> places;
  if (!bin_dir.empty()) {
    places.push_back(bin_dir + "/" + program);
  } else {
    std::error_code error;
    const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
    places.push_back((here / program).string());
    // Bazel's layout: tools/cli/strata beside server/strata-server.
    const std::string folder = program.substr(program.find('-') + 1);
    places.push_back((here / ".." / ".." / folder / program).lexically_normal().string());
  }
  for (const std::string& place : places) {
    std::error_code error;
    const fs::path absolute = fs::absolute(place, error);
    if (!error && access(place.c_str(), X_OK) == 0) return absolute.string();
  }
  return absl::NotFoundError(absl::StrCat("no program ", absl::StrJoin(places, " or "),
                                          "; say with --bin-dir where ", program, " is"));
}

absl::Status Supervise(const ClusterDir& dir, const SupervisorOptions& options,
                       const std::atomic<bool>& stop) {
  absl::Status status = dir.Lock();
  if (!status.ok()) return status;
  absl::StatusOr<ClusterConfig> config = dir.ReadConfig();
  if (!config.ok()) return config.status();
  Supervisor supervisor(dir, options);
  status = supervisor.Prepare(*config);
  if (!status.ok()) return status;
  unlink(dir.AddressPath().c_str());  // of an earlier scheduler
  while (!stop.load()) {
    supervisor.Round();
    absl::SleepFor(absl::Milliseconds(20));
  }
  supervisor.Stop();
  return absl::OkStatus();
}

}  // namespace strata
