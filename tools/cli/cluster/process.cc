#include "tools/cli/cluster/process.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "proto/runtime/base/clock.h"
#include "tools/cli/base/text_file.h"

namespace strata {

absl::StatusOr<ProcessId> FindProcess(pid_t pid) {
  absl::StatusOr<std::string> stat = ReadTextFile(absl::StrCat("/proc/", pid, "/stat"));
  const absl::Status gone = absl::NotFoundError(absl::StrCat("no process ", pid));
  if (!stat.ok()) return gone;
  // The name, field 2, is in parentheses and may hold anything: count from the last one.
  const size_t name_end = stat->rfind(')');
  if (name_end == std::string::npos) return gone;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(*stat).substr(name_end + 1), ' ', absl::SkipEmpty());
  constexpr size_t kState = 0, kStartTime = 19;  // fields 3 and 22
  ProcessId process{pid, 0};
  if (fields.size() <= kStartTime || fields[kState] == "Z" || fields[kState] == "X" ||
      !absl::SimpleAtoi(fields[kStartTime], &process.start_ticks)) {
    return gone;
  }
  return process;
}

namespace {

// A signal that comes before execv would go to a handler of the parent's, which the child has until
// then, and be forgotten. Async-signal-safe.
void ForgetHandlers() {
  for (int s = 1; s < NSIG; ++s) {
    struct sigaction action;
    if (sigaction(s, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    if (action.sa_handler != SIG_DFL) signal(s, SIG_DFL);
  }
}

}  // namespace

bool IsRunning(const ProcessId& process) {
  absl::StatusOr<ProcessId> found = FindProcess(process.pid);
  return process.pid > 0 && found.ok() && *found == process;
}

absl::StatusOr<ProcessId> StartProcess(const std::vector<std::string>& argv,
                                       const std::string& log_path) {
  if (access(argv[0].c_str(), X_OK) != 0) return FileError(argv[0], errno);
  const int log = open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log < 0) return FileError(log_path, errno);
  std::vector<char*> arguments;
  for (const std::string& a : argv) arguments.push_back(const_cast<char*>(a.c_str()));
  arguments.push_back(nullptr);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = fork();
  const int error = errno;
  if (pid != 0) pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) {
    close(log);
    return FileError("cannot start a process", error);
  }
  if (pid == 0) {
    // Only async-signal-safe calls from here on.
    ForgetHandlers();
    setsid();
    const int null = open("/dev/null", O_RDONLY);
    dup2(null, STDIN_FILENO);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  close(log);
  absl::StatusOr<ProcessId> started = FindProcess(pid);
  // It may have ended already; its parent, we, will learn that by waiting for it.
  return started.ok() ? *started : ProcessId{pid, 0};
}

void Signal(const ProcessId& process, int signal) {
  if (IsRunning(process)) kill(process.pid, signal);
}

bool WaitForEnd(const ProcessId& process, absl::Duration limit) {
  const absl::Time deadline = Clock::Real()->Now() + limit;
  while (IsRunning(process)) {
    if (Clock::Real()->Now() >= deadline) return false;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return true;
}

}  // namespace strata
