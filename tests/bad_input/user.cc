#include "tests/bad_input/user.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace strata {
namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

int ExitCodeOf(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 1000; }

}  // namespace

std::string ProgramPath(const std::string& target) {
  return std::string(std::getenv("TEST_SRCDIR")) + "/strata/" + target;
}

std::string GoodLines(int lines) {
  std::string text;
  for (int i = 0; i < lines; ++i) {
    text += i % 3 == 0 ? "1" : "-1";
    text += " " + std::to_string(i % 7) + ":1 " + std::to_string(100 + i % 11) + ":0.5\n";
  }
  return text;
}

User::~User() {
  if (up_) Strata("down --dir run --timeout 30");
}

void User::Write(const std::string& name, const std::string& text) const {
  std::ofstream(Path(name), std::ios::binary) << text;
}

std::string User::Read(const std::string& name) const { return ReadAll(Path(name)); }

namespace {

// `prefix`: a command that runs the one behind it.
ProgramResult RunIn(const std::string& folder, const std::string& program,
                    const std::string& arguments, const std::string& prefix = "") {
  const std::string command = "cd '" + folder + "' && HOME='" + folder +
                              "' XDG_CONFIG_HOME= timeout -k 5 60 " + prefix + "'" + program +
                              "' </dev/null " + arguments + " >out 2>err";
  ProgramResult result;
  result.exit_code = ExitCodeOf(std::system(command.c_str()));
  result.out = ReadAll(folder + "/out");
  result.err = ReadAll(folder + "/err");
  return result;
}

}  // namespace

ProgramResult User::Strata(const std::string& arguments) const {
  return RunIn(folder(), ProgramPath("tools/cli/strata"), arguments);
}

std::optional<ProgramResult> User::StrataWithoutPrivileges(const std::string& arguments) const {
  std::string prefix;
  if (geteuid() == 0) {
    prefix = "setpriv --bounding-set=-dac_override,-dac_read_search ";
    if (std::system((prefix + "true 2>/dev/null").c_str()) != 0) return std::nullopt;
  }
  return RunIn(folder(), ProgramPath("tools/cli/strata"), arguments, prefix);
}

ProgramResult User::Daemon(const std::string& role, const std::string& arguments) const {
  return RunIn(folder(), ProgramPath(role + "/strata-" + role), arguments);
}

ProgramResult User::Interrupted(const std::string& arguments, const std::string& marker,
                                const std::function<void(const User&, pid_t)>& then) const {
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  const std::string command = "cd '" + folder() + "' && HOME='" + folder() +
                              "' XDG_CONFIG_HOME= exec '" + ProgramPath("tools/cli/strata") + "' " +
                              arguments + " >interrupted.out </dev/null";
  const pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    dup2(ends[1], STDERR_FILENO);
    alarm(200);  // survives exec: a hang ends by a signal
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  close(ends[1]);
  ProgramResult result;
  bool done = false;
  char block[4096];
  for (ssize_t n; (n = read(ends[0], block, sizeof(block))) > 0;) {
    result.err.append(block, static_cast<size_t>(n));
    if (!done && result.err.find(marker) != std::string::npos) {
      done = true;
      then(*this, pid);
    }
  }
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  CHECK(done);
  result.exit_code = ExitCodeOf(status);
  result.out = Read("interrupted.out");
  return result;
}

void User::LinkPrograms() {
  std::filesystem::create_directory(Path("bin"));
  for (const char* role : {"scheduler", "server", "worker"}) {
    const std::string program = std::string("strata-") + role;
    std::filesystem::create_symlink(ProgramPath(std::string(role) + "/" + program),
                                    Path("bin/" + program));
  }
  up_ = true;
}

ProgramResult User::Up(const std::string& arguments) {
  LinkPrograms();
  ProgramResult r = Strata("up --dir run " + arguments + " --bin-dir bin");
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  return r;
}

pid_t User::PidOf(const std::string& name) const {
  return std::atoi(Read("run/pids/" + name + ".pid").c_str());
}

std::string User::Scheduler() const {
  std::string address = Read("run/scheduler/address");
  while (!address.empty() && address.back() == '\n') address.pop_back();
  return address;
}

void User::WriteJob(const std::string& more) const {
  Write("job.yaml",
        "apiVersion: strata/v1\n"
        "kind: TrainingJob\n"
        "metadata: {name: job}\n"
        "spec:\n"
        "  data: {format: libfm, train: [train.libfm]}\n"
        "  model: {type: lr}\n"
        "  training: {lanes: 4, batchSize: 8}\n" +
            more);
}

std::string WhatIsWrongWith(const std::string& message, const std::vector<std::string>& must_say) {
  for (const std::string& part : must_say) {
    if (message.find(part) == std::string::npos) return "does not say: " + part;
  }
  for (const char* inner : {".cc:", "terminate called", "what():", "*** ", "    @ ",
                            "INTERNAL:", "Check failed", "std::", "absl::"}) {
    if (message.find(inner) != std::string::npos) return std::string("shows our inside: ") + inner;
  }
  return "";
}

void CheckSays(const ProgramResult& r, int exit_code, const std::vector<std::string>& says) {
  INFO(r.out << r.err);
  CHECK(r.exit_code == exit_code);
  CHECK(WhatIsWrongWith(r.out + r.err, says) == "");
}

void CheckOneLine(const ProgramResult& r, int exit_code, const std::vector<std::string>& says) {
  INFO(r.out << r.err);
  CHECK(r.exit_code == exit_code);
  std::vector<std::string> errors;
  std::istringstream lines(r.out + r.err);
  for (std::string line; std::getline(lines, line);) {
    const bool told = line.rfind("strata: ", 0) == 0 || line.find(" failed: ") != line.npos;
    if (told) errors.push_back(line);
  }
  CHECK(errors.size() == 1);
  if (!errors.empty()) CHECK(WhatIsWrongWith(errors[0], says) == "");
  // A usage error is all that there is to say.
  if (exit_code == 2) CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
}

std::string FailureOf(const ProgramResult& result) {
  const std::string start = "job job failed: ";
  const size_t at = result.out.find(start);
  if (at == std::string::npos) return "";
  return result.out.substr(at, result.out.find('\n', at) - at);
}

void CheckRefused(const User& user, const std::string& command,
                  const std::vector<std::string>& says) {
  const ProgramResult r = user.Strata(command);
  INFO(command << "\n" << r.out << r.err);
  CHECK(r.exit_code == 1);
  CHECK(WhatIsWrongWith(FailureOf(r), says) == "");
  CHECK(WhatIsWrongWith(r.err, {}) == "");
}

}  // namespace strata
