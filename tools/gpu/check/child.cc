#include "tools/gpu/check/child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <future>
#include <sstream>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace strata::gpu_check {
namespace {

constexpr std::streamoff kMostOutput = 4 << 20;

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// This process's, where `added` does not say otherwise.
std::vector<std::string> Environment(const std::vector<std::string>& added) {
  std::vector<std::string> all = added;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string text = *at;
    const std::string name = text.substr(0, text.find('=') + 1);
    bool replaced = false;
    for (const std::string& a : added) replaced = replaced || a.compare(0, name.size(), name) == 0;
    if (!replaced) all.push_back(text);
  }
  return all;
}

void Reap(pid_t pid, int* status) {
  while (waitpid(pid, status, 0) < 0 && errno == EINTR) {
  }
}

// The first process of a new group, which kills that group when the thread that made it is gone: so
// nothing goes on, and holds a device, when this program itself is killed, in whatever way.
[[noreturn]] void Guard(pid_t parent, int ready) {
  sigset_t gone;
  sigemptyset(&gone);
  sigaddset(&gone, SIGTERM);
  sigprocmask(SIG_BLOCK, &gone, nullptr);
  const bool guards = setpgid(0, 0) == 0 && prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 &&
                      getppid() == parent && write(ready, "", 1) == 1;
  int signal = 0;
  if (guards && sigwait(&gone, &signal) == 0) (void)kill(0, SIGKILL);
  _exit(1);
}

absl::StatusOr<pid_t> StartGuard() {
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot make a pipe: ", std::strerror(errno)));
  }
  const pid_t parent = getpid();
  const pid_t guard = fork();
  const int error = errno;
  if (guard == 0) Guard(parent, ready[1]);
  close(ready[1]);
  char byte = 0;
  const bool guards = guard > 0 && read(ready[0], &byte, 1) == 1;
  close(ready[0]);
  if (guards) return guard;
  if (guard > 0) Reap(guard, nullptr);
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot start a process: ", guard < 0 ? std::strerror(error) : "it ended"));
}

absl::StatusOr<pid_t> Spawn(const ChildOptions& options, pid_t group) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, options.log_path.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, group);
  const std::vector<std::string> environment = Environment(options.environment);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, options.argv[0].c_str(), &actions, &attributes,
                                Pointers(options.argv).data(), Pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    return absl::NotFoundError(absl::StrCat("cannot start ", options.argv[0], " (log ",
                                            options.log_path, "): ", std::strerror(error)));
  }
  return pid;
}

// Over when the process is. Waits without taking it away, so that its number is not used again
// before the kill. The thread of a process that never ends stays with it.
std::future<void> EndOf(pid_t pid) {
  std::promise<void> ended;
  std::future<void> end = ended.get_future();
  std::thread([pid, ended = std::move(ended)]() mutable {
    siginfo_t info;
    while (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
    ended.set_value();
  }).detach();
  return end;
}

bool IsOver(const std::future<void>& end, double limit_seconds) {
  const auto limit = std::chrono::duration<double>(limit_seconds);
  return end.wait_for(limit) == std::future_status::ready;
}

// Adds a line to the log. Where that finds no room, neither did the child, which need not have
// noticed.
absl::Status EndLog(const std::string& path, const std::string& line) {
  const int file = open(path.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return absl::OkStatus();
  const bool full =
      write(file, line.data(), line.size()) < 0 && (errno == ENOSPC || errno == EDQUOT);
  close(file);
  if (!full) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("what it said is lost: there is no room for ", path));
}

std::string Tail(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  const std::streamoff bytes = in.tellg();
  if (!in || bytes <= 0) return "";
  in.seekg(bytes > kMostOutput ? bytes - kMostOutput : 0);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

absl::StatusOr<ChildResult> RunChild(const ChildOptions& options) {
  const auto guard = StartGuard();
  if (!guard.ok()) return guard.status();
  auto pid = Spawn(options, *guard);
  if (!pid.ok()) {
    (void)kill(*guard, SIGKILL);
    Reap(*guard, nullptr);
    return pid.status();
  }
  const std::future<void> ended = EndOf(*pid);
  ChildResult result;
  result.timed_out = !IsOver(ended, options.limit_seconds);
  (void)kill(-*guard, SIGKILL);  // itself, what it started, and the guard
  (void)kill(*pid, SIGKILL);     // also where it has left the group
  Reap(*guard, nullptr);
  result.given_up = !IsOver(ended, options.give_up_seconds);
  int status = 0;
  if (!result.given_up) Reap(*pid, &status);
  if (!result.given_up && WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (!result.given_up && WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  result.output = Tail(options.log_path);
  const absl::Status kept =
      EndLog(options.log_path, absl::StrCat("[", HowItEnded(result, options), "]\n"));
  if (!kept.ok()) return kept;
  return result;
}

std::string HowItEnded(const ChildResult& result, const ChildOptions& options) {
  if (result.given_up) {
    return absl::StrFormat(
        "not done within %.0f s, nor gone %.0f s after it was killed: stuck in the driver",
        options.limit_seconds, options.give_up_seconds);
  }
  if (result.timed_out) return absl::StrFormat("not done within %.0f s", options.limit_seconds);
  if (result.exit_code < 0) return absl::StrCat("killed by signal ", result.signal);
  return absl::StrCat("exit code ", result.exit_code);
}

}  // namespace strata::gpu_check
