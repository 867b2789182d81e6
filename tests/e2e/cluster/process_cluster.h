// The real programs as processes on loopback, in a folder of their own, for tests that end them at
// bad moments. Not thread-safe; every failure of the set-up itself throws.
#ifndef STRATA_TESTS_E2E_CLUSTER_PROCESS_CLUSTER_H_
#define STRATA_TESTS_E2E_CLUSTER_PROCESS_CLUSTER_H_

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"

namespace strata::testing {

// Path of a program that the test has as data, for example "server/strata-server".
std::string Program(const std::string& name);

struct CommandResult {
  int exit_code = -1;  // 128 + signal when a signal ended it
  std::string out;
  std::string err;
};

// A program that runs; ended by SIGKILL with its owner, or when this process ends.
class ChildProcess {
 public:
  // stdout and stderr are appended to `log` and `log` + ".err". `variables`: "NAME=value" each,
  // beside those of this process.
  ChildProcess(const std::vector<std::string>& argv, const std::string& log,
               const std::string& home, std::vector<std::string> variables = {});
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int number);
  // Whether it has a file open for direct writes whose path contains `part`.
  bool WritesDirectly(const std::string& part) const;
  // Whether it has ended; reaps it.
  bool Ended();
  // Whether a signal has stopped it.
  bool Stopped() const;
  // Waits for its end, at most `limit`, and throws then. Exit code, or 128 + signal.
  int Wait(absl::Duration limit = absl::Seconds(60));
  // SIGKILL and wait.
  void Kill();
  // Processor time that it has used so far.
  absl::Duration CpuTime() const;

 private:
  pid_t pid_ = 0;
  int code_ = -1;
};

// Where a process runs, if not beside the others: what its command line begins with, and flags.
struct ProcessPlace {
  std::vector<std::string> launcher;  // becomes the process itself, as nsenter does
  std::vector<std::string> flags;
};

struct ProcessClusterOptions {
  int servers = 2;
  int workers = 2;
  std::string folder;  // scratch; made where missing
  int lease_ms = 2000;
  std::vector<std::string> server_flags;  // of every server, at every start
  std::vector<std::string> worker_flags;  // likewise
  std::vector<std::string> variables;     // of every process: "NAME=value"
  // A folder of certificates (`strata certs init`): each process is started with one of its name,
  // issued where it is missing, and this process asks as operator "tester". Empty: without.
  std::string certs = {};
  std::vector<std::string> scheduler_flags = {};
  std::string scheduler_host = "127.0.0.1";
  std::map<std::string, ProcessPlace> places = {};  // by name
};

class ProcessCluster {
 public:
  // Starts scheduler, servers and workers; returns when all have registered.
  explicit ProcessCluster(const ProcessClusterOptions& options);
  ~ProcessCluster();

  // Named "scheduler", "server-0", ..., "worker-0", ...; a restart keeps name, folder and, for the
  // scheduler, the port. `failpoints` as in proto/runtime/base/failpoints.h.
  // `flags`: of this start.
  void Start(const std::string& name, const std::string& failpoints = "",
             const std::vector<std::string>& flags = {});
  // kill -9; does nothing where it has ended already.
  void Kill(const std::string& name);
  ChildProcess& process(const std::string& name) { return *processes_.at(name); }
  bool Running(const std::string& name);
  // Kills them all, then starts them all, each as it was.
  void KillAndStart(const std::vector<std::string>& names);
  // Waits until the scheduler sees all nodes that run, with the process numbers they have now.
  void AwaitRegistered();
  // Waits until it has ended by itself (a failpoint).
  void AwaitEnd(const std::string& name) { process(name).Wait(); }

  SchedulerClient& scheduler() { return *client_; }
  const std::string& address() const { return address_; }
  const std::string& folder() const { return o_.folder; }
  std::string ServerAddress(const std::string& name) const;

  // strata_worker_examples_total as a scrape of the worker shows it; -1 when nothing answers.
  double ExamplesOf(const std::string& worker) const;
  // The same of any process that was started with --metrics-listen, and of any metric.
  double MetricOf(const std::string& process, const std::string& metric);

  // Number of the job. Throws where it is refused.
  uint64_t Submit(const TrainingJob& job, bool resume = false, bool overwrite = false);
  // Submits while the server or worker `node` runs anew with `failpoint`, of which it ends with
  // `code`; it stays down. Number of the job. Throws where the process ends in another way.
  uint64_t SubmitAndLose(const TrainingJob& job, const std::string& node,
                         const std::string& failpoint, int code = 128 + SIGKILL);
  // Submits while the server or worker `node` runs anew with `failpoint`, whose action is stop, and
  // waits until it has stopped: what follows is sure to meet the job before its end, however busy
  // the machine is. `node` goes on by SIGCONT. Number of the job.
  uint64_t SubmitAndStop(const TrainingJob& job, const std::string& node,
                         const std::string& failpoint);
  // Waits until a signal has stopped it: one of another process, or its failpoint's.
  void AwaitStopped(const std::string& name);
  // Starts the server or worker `node` with each failpoint in turn, of which it ends with `code`;
  // it stays down. Throws where the process ends in another way.
  void LoseAgain(const std::string& node, const std::vector<std::string>& failpoints,
                 int code = 128 + SIGKILL);
  // Status of the job; tries for 30 s while the scheduler does not answer.
  JobStatus Status(uint64_t job);
  // Polls until `done`; throws after `limit` with the conditions of the job.
  JobStatus Await(uint64_t job, const std::function<bool(const JobStatus&)>& done,
                  absl::Duration limit = absl::Seconds(120));
  JobStatus AwaitEnd(uint64_t job, absl::Duration limit = absl::Seconds(120));
  JobStatus AwaitStep(uint64_t job, uint64_t step);

  // `strata ARGUMENTS...`, waited for; HOME is the scratch folder.
  CommandResult Strata(const std::vector<std::string>& arguments);

  // --certs of a process, or of operator `name`; issues the certificate where there is none.
  std::string CertificateOf(const std::string& name) const;

 private:
  void AwaitLoss(const std::string& node, const std::string& failpoint, int code);

  const ProcessClusterOptions o_;
  std::string address_;
  std::unique_ptr<SchedulerClient> client_;
  std::map<std::string, std::unique_ptr<ChildProcess>> processes_;
  int requests_ = 0;
};

// `strata ARGUMENTS...` without a cluster; HOME and the working folder are `folder`.
CommandResult RunStrata(const std::string& folder, const std::vector<std::string>& arguments);

// A job file for `strata`.
void WriteJobFile(const std::string& path, const TrainingJob& job);

// All conditions as text, for messages of tests.
std::string Conditions(const JobStatus& status);
bool HasCondition(const JobStatus& status, const std::string& reason);
std::string ReadFile(const std::string& path);
// Waits until `done`, polling; throws after `limit` naming `what`.
void AwaitThat(const std::string& what, const std::function<bool()>& done,
               absl::Duration limit = absl::Seconds(60));

}  // namespace strata::testing

#endif  // STRATA_TESTS_E2E_CLUSTER_PROCESS_CLUSTER_H_
