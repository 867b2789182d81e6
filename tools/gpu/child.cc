#include "tools/gpu/child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <future>
#include <sstream>
#include <thread>

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

absl::StatusOr<pid_t> Spawn(const ChildOptions& options) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, options.log_path.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
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
  auto pid = Spawn(options);
  if (!pid.ok()) return pid.status();
  // Waits without taking the process away, so that its number is not used again before the kill.
  std::future<void> ended = std::async(std::launch::async, [pid = *pid] {
    siginfo_t info;
    while (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
  });
  ChildResult result;
  const auto limit = std::chrono::duration<double>(options.limit_seconds);
  result.timed_out = ended.wait_for(limit) != std::future_status::ready;
  (void)kill(-*pid, SIGKILL);  // itself, and what it started
  ended.wait();
  int status = 0;
  while (waitpid(*pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  result.output = Tail(options.log_path);
  return result;
}

std::string HowItEnded(const ChildResult& result, double limit_seconds) {
  if (result.timed_out) return absl::StrFormat("not done within %.0f s", limit_seconds);
  if (result.exit_code < 0) return absl::StrCat("killed by signal ", result.signal);
  return absl::StrCat("exit code ", result.exit_code);
}

}  // namespace strata::gpu_check
