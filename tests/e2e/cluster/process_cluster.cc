#include "tests/e2e/cluster/process_cluster.h"

#include <fcntl.h>
#include <google/protobuf/util/json_util.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/identity_files.h"
#include "proto/runtime/credentials/places.h"
#include "proto/runtime/transport/grpc_scheduler_client.h"
#include "proto/runtime/transport/process_tls.h"
#include "tests/e2e/cluster/metrics.h"
#include "tests/e2e/cluster/submit_again.h"

namespace strata::testing {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(2);
constexpr absl::Duration kCall = absl::Seconds(30);

[[noreturn]] void Throw(const std::string& text) { throw std::runtime_error(text); }

bool IsFinal(JobState state) { return state == SUCCEEDED || state == FAILED || state == CANCELLED; }

}  // namespace

std::string Program(const std::string& name) {
  const char* root = std::getenv("TEST_SRCDIR");
  if (root == nullptr) Throw("TEST_SRCDIR is not set: run this test through Bazel");
  return absl::StrCat(root, "/strata/", name);
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void AwaitThat(const std::string& what, const std::function<bool()>& done, absl::Duration limit) {
  const absl::Time deadline = absl::Now() + limit;
  while (!done()) {
    if (absl::Now() >= deadline) {
      Throw(absl::StrCat("after ", absl::FormatDuration(limit), " still not: ", what));
    }
    absl::SleepFor(kPoll);
  }
}

ChildProcess::ChildProcess(const std::vector<std::string>& argv, const std::string& log,
                           const std::string& home, std::vector<std::string> variables) {
  std::vector<char*> arguments;
  for (const std::string& a : argv) arguments.push_back(const_cast<char*>(a.c_str()));
  arguments.push_back(nullptr);
  variables.push_back("HOME=" + home);
  variables.push_back("XDG_CONFIG_HOME=" + home + "/.config");
  for (char** v = environ; *v != nullptr; ++v) {
    const std::string text = *v;
    if (text.rfind("HOME=", 0) != 0 && text.rfind("XDG_CONFIG_HOME=", 0) != 0) {
      variables.push_back(text);
    }
  }
  std::vector<char*> environment;
  for (std::string& v : variables) environment.push_back(v.data());
  environment.push_back(nullptr);
  const std::string err = log + ".err";
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) Throw("cannot fork");
  if (pid_ == 0) {
    // Only async-signal-safe calls from here on.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644), STDOUT_FILENO);
    dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644), STDERR_FILENO);
    if (chdir(home.c_str()) != 0) _exit(127);
    execve(arguments[0], arguments.data(), environment.data());
    _exit(127);
  }
}

ChildProcess::~ChildProcess() { Kill(); }

void ChildProcess::Signal(int number) {
  if (!Ended()) kill(pid_, number);
}

bool ChildProcess::Ended() {
  if (code_ >= 0) return true;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return false;
  code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return true;
}

int ChildProcess::Wait(absl::Duration limit) {
  AwaitThat(
      absl::StrCat("end of process ", pid_), [this] { return Ended(); }, limit);
  return code_;
}

void ChildProcess::Kill() {
  if (Ended()) return;
  kill(pid_, SIGKILL);
  int status = 0;
  waitpid(pid_, &status, 0);
  code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

absl::Duration ChildProcess::CpuTime() const {
  const std::string stat = ReadFile(absl::StrCat("/proc/", pid_, "/stat"));
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return absl::ZeroDuration();
  std::istringstream in(stat.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) in >> skipped;
  double user = 0, system = 0;  // fields 14 and 15, in ticks
  in >> user >> system;
  return absl::Seconds((user + system) / static_cast<double>(sysconf(_SC_CLK_TCK)));
}

bool ChildProcess::Stopped() const {
  const std::string stat = ReadFile(absl::StrCat("/proc/", pid_, "/stat"));
  const size_t name_end = stat.rfind(')');  // "PID (NAME) STATE ..."
  return name_end != std::string::npos && stat.compare(name_end, 3, ") T") == 0;
}

bool ChildProcess::WritesDirectly(const std::string& part) const {
  const std::string process = absl::StrCat("/proc/", pid_);
  std::error_code error;
  for (std::filesystem::directory_iterator it(process + "/fd", error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(it->path(), gone).string();
    if (gone || target.find(part) == std::string::npos) continue;
    const std::string info =
        ReadFile(absl::StrCat(process, "/fdinfo/", it->path().filename().string()));
    const size_t at = info.find("flags:");
    if (at == std::string::npos) continue;
    if ((std::strtoul(info.c_str() + at + 6, nullptr, 8) & O_DIRECT) != 0) return true;
  }
  return false;
}

ProcessCluster::ProcessCluster(const ProcessClusterOptions& options) : o_(options) {
  std::filesystem::create_directories(o_.folder);
  Start("scheduler");
  const std::string file = o_.folder + "/scheduler.address";
  AwaitThat("address of the scheduler", [&] {
    if (process("scheduler").Ended()) Throw(ReadFile(o_.folder + "/scheduler.log.err"));
    return std::filesystem::exists(file);
  });
  std::ifstream(file) >> address_;
  std::shared_ptr<ProcessTls> tls;
  if (!o_.certs.empty()) {
    auto opened = ProcessTls::Open({.folder = CertificateOf("tester")});
    if (!opened.ok()) Throw(std::string(opened.status().message()));
    tls = *std::move(opened);
  }
  client_ = MakeGrpcSchedulerClient(address_, tls);
  for (int i = 0; i < o_.servers; ++i) Start(absl::StrCat("server-", i));
  for (int i = 0; i < o_.workers; ++i) Start(absl::StrCat("worker-", i));
  AwaitRegistered();
}

ProcessCluster::~ProcessCluster() = default;

std::string ProcessCluster::CertificateOf(const std::string& name) const {
  const Role role = name == "scheduler"             ? Role::kScheduler
                    : name.rfind("server-", 0) == 0 ? Role::kServer
                    : name.rfind("worker-", 0) == 0 ? Role::kWorker
                                                    : Role::kOperator;
  const auto issued = IssueIdentity(o_.certs, {.role = role, .name = name}, absl::Now());
  if (!issued.ok() && !absl::IsAlreadyExists(issued.status())) {
    Throw(std::string(issued.status().message()));
  }
  return CurrentFolder(o_.certs, role, name);
}

void ProcessCluster::Start(const std::string& name, const std::string& failpoints,
                           const std::vector<std::string>& flags) {
  const std::string base = o_.folder + "/" + name;
  std::vector<std::string> argv;
  if (name == "scheduler") {
    argv = {Program("scheduler/strata-scheduler"),
            "--listen=" + (address_.empty() ? o_.scheduler_host + ":0" : address_),
            absl::StrCat("--lease-ms=", o_.lease_ms)};
    argv.insert(argv.end(), o_.scheduler_flags.begin(), o_.scheduler_flags.end());
  } else {
    const bool server = name.rfind("server-", 0) == 0;
    argv = {Program(server ? "server/strata-server" : "worker/strata-worker"), "--name=" + name,
            "--scheduler=" + address_, "--threads=1"};
    // The worker's address file then holds its metrics address.
    if (!server) argv.push_back("--metrics-listen=127.0.0.1:0");
    const std::vector<std::string>& own = server ? o_.server_flags : o_.worker_flags;
    argv.insert(argv.end(), own.begin(), own.end());
  }
  if (const auto place = o_.places.find(name); place != o_.places.end()) {
    const auto& [launcher, own] = place->second;
    argv.insert(argv.begin(), launcher.begin(), launcher.end());
    argv.insert(argv.end(), own.begin(), own.end());
  }
  if (!o_.certs.empty()) argv.push_back("--certs=" + CertificateOf(name));
  argv.insert(argv.end(), flags.begin(), flags.end());
  if (!failpoints.empty()) argv.push_back("--failpoints=" + failpoints);
  argv.push_back("--dir=" + base);
  argv.push_back("--address-file=" + base + ".address");
  processes_[name] = std::make_unique<ChildProcess>(argv, base + ".log", o_.folder, o_.variables);
}

void ProcessCluster::Kill(const std::string& name) { process(name).Kill(); }

void ProcessCluster::KillAndStart(const std::vector<std::string>& names) {
  for (const std::string& name : names) Kill(name);
  for (const std::string& name : names) Start(name);
}

bool ProcessCluster::Running(const std::string& name) { return !process(name).Ended(); }

void ProcessCluster::AwaitRegistered() {
  AwaitThat("all nodes registered", [this] {
    auto cluster = client_->GetCluster(kCall);
    if (!cluster.ok()) return false;
    for (auto& [name, child] : processes_) {
      if (name == "scheduler") continue;
      if (child->Ended()) {
        Throw(absl::StrCat(name, " has ended with ", child->Wait(), ": ",
                           ReadFile(o_.folder + "/" + name + ".log.err")));
      }
      bool found = false;
      for (const NodeStatus& node : cluster->nodes()) {
        found |= node.name() == name && node.alive() && node.pid() == child->pid();
      }
      if (!found) return false;
    }
    return true;
  });
}

std::string ProcessCluster::ServerAddress(const std::string& name) const {
  std::string address;
  std::ifstream(o_.folder + "/" + name + ".address") >> address;
  return address;
}

double ProcessCluster::ExamplesOf(const std::string& worker) const {
  return ScrapeOne(ServerAddress(worker), "strata_worker_examples_total");
}

double ProcessCluster::MetricOf(const std::string& process, const std::string& metric) {
  if (process == "scheduler") {
    const std::string log = ReadFile(o_.folder + "/scheduler/log/strata-scheduler.INFO");
    const std::string mark = " metrics=";  // of the line that says that it started
    const size_t at = log.rfind(mark);
    if (at == std::string::npos) return -1;
    const size_t begin = at + mark.size();
    return ScrapeOne(log.substr(begin, log.find(' ', begin) - begin), metric);
  }
  auto cluster = client_->GetCluster(kCall);
  if (!cluster.ok()) return -1;
  for (const NodeStatus& node : cluster->nodes()) {
    if (node.name() == process) return ScrapeOne(node.metrics_address(), metric);
  }
  return -1;
}

uint64_t ProcessCluster::Submit(const TrainingJob& job, bool resume, bool overwrite) {
  SubmitRequest request;
  *request.mutable_job() = job;
  request.set_request_id(absl::StrCat("request-", requests_++));
  request.set_resume(resume);
  request.set_overwrite(overwrite);
  const auto reply = SubmitAgain(*client_, request, kCall);
  if (!reply.ok()) Throw(std::string(reply.status().message()));
  return reply->job();
}

uint64_t ProcessCluster::SubmitAndLose(const TrainingJob& job, const std::string& node,
                                       const std::string& failpoint, int code) {
  Kill(node);
  Start(node, failpoint);
  AwaitRegistered();
  const uint64_t id = Submit(job);
  AwaitLoss(node, failpoint, code);
  return id;
}

uint64_t ProcessCluster::SubmitAndStop(const TrainingJob& job, const std::string& node,
                                       const std::string& failpoint) {
  Kill(node);
  Start(node, failpoint);
  AwaitRegistered();
  const uint64_t id = Submit(job);
  AwaitStopped(node);
  return id;
}

void ProcessCluster::AwaitStopped(const std::string& name) {
  AwaitThat(absl::StrCat(name, " to stop"), [&] {
    if (process(name).Ended()) Throw(ReadFile(o_.folder + "/" + name + ".log.err"));
    return process(name).Stopped();
  });
}

void ProcessCluster::LoseAgain(const std::string& node, const std::vector<std::string>& failpoints,
                               int code) {
  for (const std::string& failpoint : failpoints) {
    Start(node, failpoint);
    AwaitLoss(node, failpoint, code);
  }
}

void ProcessCluster::AwaitLoss(const std::string& node, const std::string& failpoint, int code) {
  AwaitThat(absl::StrCat("end of ", node, " at ", failpoint),
            [&] { return process(node).Ended(); });
  if (const int ended = process(node).Wait(); ended != code) {
    Throw(absl::StrCat(node, " has ended with ", ended, ", not with ", code, " at ", failpoint));
  }
}

JobStatus ProcessCluster::Status(uint64_t job) {
  JobRef ref;
  ref.set_job(job);
  const absl::Time deadline = absl::Now() + kCall;
  while (true) {
    auto status = client_->GetJob(ref, kCall);
    if (status.ok()) return *std::move(status);
    if (absl::Now() >= deadline) Throw(std::string(status.status().message()));
    absl::SleepFor(kPoll);
  }
}

JobStatus ProcessCluster::Await(uint64_t job, const std::function<bool(const JobStatus&)>& done,
                                absl::Duration limit) {
  const absl::Time deadline = absl::Now() + limit;
  while (true) {
    JobStatus status = Status(job);
    if (done(status)) return status;
    if (absl::Now() >= deadline || IsFinal(status.state())) {
      Throw(absl::StrCat("job ", job, " is ", JobState_Name(status.state()), " at step ",
                         status.step(), " of ", status.total_steps(), ": ", Conditions(status)));
    }
    absl::SleepFor(kPoll);
  }
}

JobStatus ProcessCluster::AwaitEnd(uint64_t job, absl::Duration limit) {
  return Await(
      job, [](const JobStatus& s) { return IsFinal(s.state()); }, limit);
}

JobStatus ProcessCluster::AwaitStep(uint64_t job, uint64_t step) {
  return Await(job, [step](const JobStatus& s) { return s.step() >= step; });
}

CommandResult ProcessCluster::Strata(const std::vector<std::string>& arguments) {
  return RunStrata(o_.folder, arguments);
}

CommandResult RunStrata(const std::string& folder, const std::vector<std::string>& arguments) {
  static int commands = 0;
  const std::string log = absl::StrCat(folder, "/command-", commands++);
  std::vector<std::string> argv = {Program("tools/cli/strata")};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  ChildProcess child(argv, log, folder);
  CommandResult result;
  result.exit_code = child.Wait(absl::Seconds(120));
  result.out = ReadFile(log);
  result.err = ReadFile(log + ".err");
  return result;
}

void WriteJobFile(const std::string& path, const TrainingJob& job) {
  std::string text;
  if (!google::protobuf::util::MessageToJsonString(job, &text).ok()) Throw("cannot write JSON");
  std::ofstream(path) << text;
}

std::string Conditions(const JobStatus& status) {
  std::string text;
  for (const JobCondition& c : status.conditions()) {
    absl::StrAppend(&text, "\n  ", c.reason(), ": ", c.message());
  }
  return text;
}

bool HasCondition(const JobStatus& status, const std::string& reason) {
  for (const JobCondition& c : status.conditions()) {
    if (c.reason() == reason) return true;
  }
  return false;
}

}  // namespace strata::testing
