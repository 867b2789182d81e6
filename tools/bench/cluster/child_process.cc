#include "tools/bench/cluster/child_process.h"

#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

extern char** environ;

namespace strata::bench {
namespace {

// Of a folder of /proc; 0 when there is none.
uint64_t ResidentBytesOf(const std::string& process) {
  unsigned long long pages = 0, resident = 0;
  std::ifstream file(absl::StrCat("/proc/", process, "/statm"));
  if (!(file >> pages >> resident)) return 0;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(
    const std::vector<std::string>& command) {
  std::vector<char*> argv;
  for (const std::string& a : command) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ);
  if (error != 0) {
    return absl::NotFoundError(
        absl::StrCat("cannot start ", command[0], ": ", std::strerror(error)));
  }
  return std::unique_ptr<ChildProcess>(new ChildProcess(pid));
}

absl::Status ChildProcess::Run(const std::vector<std::string>& command) {
  auto child = Start(command);
  if (!child.ok()) return child.status();
  const int status = (*child)->End(0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(command[0], " ended with status ", status));
}

ChildProcess::~ChildProcess() {
  if (pid_ != 0) End(SIGTERM);
}

int ChildProcess::End(int signal) {
  int status = 0;
  if (signal != 0) kill(pid_, signal);
  waitpid(pid_, &status, 0);
  pid_ = 0;
  return status;
}

void ChildProcess::Kill() { End(SIGKILL); }

absl::Duration ChildProcess::Terminate() {
  const absl::Time from = absl::Now();
  End(SIGTERM);
  return absl::Now() - from;
}

double ChildProcess::CpuSeconds() const {
  std::ifstream file(absl::StrCat("/proc/", pid_, "/stat"));
  std::string text((std::istreambuf_iterator<char>(file)), {});
  // Fields are counted after the name, which stands in brackets and may hold anything.
  const size_t at = text.rfind(')');
  unsigned long user = 0, system = 0;
  if (at == std::string::npos ||
      std::sscanf(text.c_str() + at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                  &user, &system) != 2) {
    return 0;
  }
  return static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

uint64_t ChildProcess::ResidentBytes() const { return ResidentBytesOf(absl::StrCat(pid_)); }

uint64_t OwnResidentBytes() { return ResidentBytesOf("self"); }

std::string BinaryBeside(const std::string& path) {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  return (self.parent_path().parent_path().parent_path() / path).string();
}

double OwnCpuSeconds() {
  rusage u;
  getrusage(RUSAGE_SELF, &u);
  return static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
         static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

absl::StatusOr<std::string> ReadAddressFile(const std::string& path) {
  const absl::Time give_up = absl::Now() + absl::Seconds(10);
  while (absl::Now() < give_up) {
    std::string address;
    if (std::ifstream(path) >> address) return address;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return absl::DeadlineExceededError(absl::StrCat("nothing was written to ", path));
}

}  // namespace strata::bench
