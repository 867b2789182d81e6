// The supervisor with real processes: programs that sleep until they are told to end.
#include "tools/cli/cluster/supervisor.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/runtime/base/clock.h"
#include "proto/runtime/base/manual_clock.h"
#include "proto/runtime/credentials/identity_files.h"
#include "tests/temp_folder.h"
#include "tools/cli/base/text_file.h"
#include "tools/cli/cluster/cluster_certs.h"
#include "tools/cli/cluster/cluster_dir.h"
#include "tools/cli/cluster/process.h"

namespace strata {
namespace {

void WriteProgram(const std::string& path, const std::string& script) {
  REQUIRE(WriteTextFile(path, "#!/bin/bash\n" + script).ok());
  REQUIRE(chmod(path.c_str(), 0755) == 0);
}

// Waits for a state that other processes bring about; fails the test after a minute.
void Await(const std::function<bool()>& condition) {
  const absl::Time deadline = absl::Now() + absl::Minutes(1);
  while (!condition()) {
    REQUIRE(absl::Now() < deadline);
    std::this_thread::yield();
  }
}

// A supervisor at work in a thread, on programs that note their arguments and wait for SIGTERM.
class Fixture {
 public:
  explicit Fixture(const std::string& worker_script = kWait, Clock* clock = Clock::Real())
      : folder_(scratch_.path()), dir_(folder_ + "/run") {
    WriteProgram(folder_ + "/bin/strata-scheduler",
                 "while [[ $1 != --address-file ]]; do shift; done\n"
                 "echo 127.0.0.1:4711 > $2.new; mv $2.new $2\n" +
                     std::string(kWait));
    WriteProgram(folder_ + "/bin/strata-server", "echo \"$@\"\n" + std::string(kWait));
    WriteProgram(folder_ + "/bin/strata-worker", "echo \"$@\"\n" + worker_script);
    REQUIRE(dir_.Make().ok());
    const ClusterConfig config{folder_ + "/bin", 1, 1};
    REQUIRE(dir_.WriteConfig(config).ok());
    REQUIRE(MakeClusterCerts(dir_, config, clock->Now()).ok());  // as `strata up`
    SupervisorOptions options;
    options.clock = clock;
    options.first_backoff = absl::Milliseconds(1);
    options.max_backoff = absl::Milliseconds(10);
    options.stop_limit = absl::Seconds(5);
    thread_ = std::thread([this, options] { result_ = Supervise(dir_, options, stop_); });
  }
  ~Fixture() { Stop().IgnoreError(); }

  absl::Status Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    return result_;
  }
  const ClusterDir& dir() const { return dir_; }

  // State of a process; pid 0 while it does not run.
  ProcessState Find(const std::string& name) const {
    const absl::StatusOr<ClusterState> state = dir_.ReadState();
    if (state.ok()) {
      for (const ProcessState& p : state->processes) {
        if (p.name == name) return p;
      }
    }
    return {};
  }

  static constexpr char kWait[] = "trap 'exit 0' TERM; while :; do sleep 0.05; done\n";

 private:
  const TempFolder scratch_;
  const std::string folder_;
  const ClusterDir dir_;
  std::atomic<bool> stop_{false};
  absl::Status result_;
  std::thread thread_;
};

TEST_CASE("processes are started with their arguments and stopped", "[supervisor]") {
  Fixture f;
  Await([&] { return f.Find("worker-0").id.pid != 0; });
  const ProcessId scheduler = f.Find("scheduler").id, server = f.Find("server-0").id,
                  worker = f.Find("worker-0").id;
  CHECK(IsRunning(scheduler));
  CHECK(IsRunning(server));
  CHECK(f.dir().ReadState()->scheduler == "127.0.0.1:4711");
  CHECK(*ReadTextFile(f.dir().PidPath("worker-0")) == std::to_string(worker.pid) + "\n");
  const std::string expected = "--dir " + f.dir().path() + "/server-0 --certs " + f.dir().path() +
                               "/certs/server/server-0/current "
                               "--scheduler 127.0.0.1:4711 --name server-0 "
                               "--metrics-listen 127.0.0.1:0 --listen 127.0.0.1:0\n";
  Await([&] { return ReadTextFile(f.dir().LogPath("server-0")).value_or("") == expected; });
  CHECK(f.dir().IsLocked());
  REQUIRE(f.Stop().ok());
  CHECK_FALSE(IsRunning(scheduler));
  CHECK_FALSE(IsRunning(server));
  CHECK_FALSE(IsRunning(worker));
  CHECK(absl::IsNotFound(f.dir().ReadState().status()));
}

TEST_CASE("a killed process is started again, others are left alone", "[supervisor]") {
  Fixture f;
  Await([&] { return f.Find("worker-0").id.pid != 0; });
  const ProcessId server = f.Find("server-0").id, worker = f.Find("worker-0").id;
  Signal(server, SIGKILL);
  Await([&] {
    const ProcessState now = f.Find("server-0");
    return now.id.pid != 0 && !(now.id == server);
  });
  CHECK(f.Find("server-0").restarts == 1);
  CHECK(f.Find("worker-0").id == worker);
  CHECK(IsRunning(worker));
}

TEST_CASE("a process that cannot live is tried again, and its end is told", "[supervisor]") {
  Fixture f("exit 3\n");
  Await([&] { return f.Find("worker-0").restarts >= 3; });
  Await([&] { return f.Find("worker-0").trouble == "ended with exit code 3"; });
}

TEST_CASE("certificates are renewed while the cluster is up, and nobody is started anew for it",
          "[supervisor]") {
  ManualClock clock;
  Fixture f(Fixture::kWait, &clock);
  const auto mine = [&](const std::string& process) {
    const auto loaded = LoadCredentials(ProcessCertsFolder(f.dir(), process));
    INFO(loaded.status());
    REQUIRE(loaded.ok());
    return loaded->certificate.facts;
  };
  Await([&] { return f.Find("worker-0").id.pid != 0; });
  const ProcessId server = f.Find("server-0").id;
  // Twice as long as a certificate is good for.
  for (int renewal = 1; renewal <= 4; ++renewal) {
    const std::string serial = mine("worker-0").serial;
    clock.Advance(absl::Hours(24) * (kClusterCertDays - kRenewAtDays - 1));
    clock.Advance(absl::Hours(24));
    Await([&] { return mine("worker-0").serial != serial; });
    CHECK(mine("worker-0").valid.until == clock.Now() + absl::Hours(24) * kClusterCertDays);
  }
  Await([&] { return mine("scheduler").valid.until > clock.Now() + absl::Hours(24) * 80; });
  CHECK(f.Find("server-0").id == server);
}

TEST_CASE("a second supervisor in the same folder is refused", "[supervisor]") {
  Fixture f;
  Await([&] { return f.dir().IsLocked(); });
  const absl::Status second = Supervise(f.dir(), {}, std::atomic<bool>{true});
  CHECK(absl::IsAlreadyExists(second));
  CHECK(second.message() == "a cluster is running in " + f.dir().path() +
                                "; stop it with 'strata down --dir " + f.dir().path() +
                                "', or give another --dir");
}

TEST_CASE("missing programs are named", "[supervisor]") {
  CHECK(FindProgram("/nowhere", "strata-server").status().message() ==
        "no program /nowhere/strata-server; say with --bin-dir where strata-server is");
}

TEST_CASE("a process is known by its start time, not by its number alone", "[process]") {
  absl::StatusOr<ProcessId> self = FindProcess(getpid());
  REQUIRE(self.ok());
  CHECK(IsRunning(*self));
  ProcessId stranger = *self;
  stranger.start_ticks += 1;
  CHECK_FALSE(IsRunning(stranger));
  Signal(stranger, SIGKILL);  // must not reach us
  CHECK_FALSE(IsRunning(ProcessId{}));

  const TempFolder folder;
  absl::StatusOr<ProcessId> child = StartProcess({"/bin/sleep", "60"}, folder.path() + "/log");
  REQUIRE(child.ok());
  CHECK(IsRunning(*child));
  Signal(*child, SIGKILL);
  siginfo_t info;
  REQUIRE(waitid(P_PID, static_cast<id_t>(child->pid), &info, WEXITED | WNOWAIT) == 0);
  CHECK_FALSE(IsRunning(*child));  // a zombie runs no more
  CHECK(waitpid(child->pid, nullptr, 0) == child->pid);
  CHECK(absl::IsNotFound(StartProcess({"/nowhere/x"}, "/dev/null").status()));
}

}  // namespace
}  // namespace strata
