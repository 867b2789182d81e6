// What `strata` draws on a terminal, and what it prints where stderr is none.
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <regex>
#include <string>
#include <vector>

#include "tests/bad_input/user.h"

namespace strata {
namespace {

constexpr char kErase[] = "\r\x1b[K";
constexpr char kTrain[] = "train -f job.yaml --set spec.training.epochs=1000";

// `strata train` with stderr on a terminal of so many columns and these variables, until it has
// shown `marker`; then Ctrl-C is typed there. All that the terminal got.
std::string OnTerminal(const User& user, const std::string& variables, unsigned short columns,
                       const std::string& marker) {
  winsize size{};
  size.ws_row = 24;
  size.ws_col = columns;
  const std::string command = "cd '" + user.folder() + "' && HOME='" + user.folder() +
                              "' exec env -u NO_COLOR " + variables + " '" +
                              ProgramPath("tools/cli/strata") + "' " + kTrain + " >out";
  int terminal = -1;
  const pid_t pid = forkpty(&terminal, nullptr, nullptr, &size);
  REQUIRE(pid >= 0);
  if (pid == 0) {
    termios terms{};
    tcgetattr(STDIN_FILENO, &terms);
    terms.c_lflag &= ~static_cast<tcflag_t>(ECHO);  // what is typed is not shown
    tcsetattr(STDIN_FILENO, TCSANOW, &terms);
    alarm(60);  // survives exec: a hang ends by a signal
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  std::string shown;
  bool typed = false;
  char block[4096];
  // The other end closed is an error here, not an end of file.
  for (ssize_t n; (n = read(terminal, block, sizeof(block))) > 0;) {
    shown.append(block, static_cast<size_t>(n));
    if (typed || shown.find(marker) == std::string::npos) continue;
    typed = write(terminal, "\x03", 1) == 1;
  }
  close(terminal);
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  INFO(shown);
  CHECK(typed);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 130);
  CHECK(user.Read("out").empty());  // data are not mixed with what is drawn
  return shown;
}

// The rewritten lines: what stands between an erased line and the next one, or its end.
std::vector<std::string> Drawn(const std::string& shown) {
  std::vector<std::string> lines;
  const size_t erase = sizeof(kErase) - 1;
  for (size_t at = shown.find(kErase); at != std::string::npos; at = shown.find(kErase, at)) {
    at += erase;
    lines.push_back(shown.substr(at, shown.find_first_of("\r\n", at) - at));
  }
  return lines;
}

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class Training : public User {
 public:
  Training() {
    Write("train.libfm", GoodLines(20000));
    WriteJob();
  }
};

TEST_CASE("a terminal gets one line with a bar, drawn anew, and conditions in a dim colour",
          "[progress]") {
  const Training user;
  const std::string shown = OnTerminal(user, "TERM=xterm", 160, "examples/s");
  INFO(shown);
  CHECK(Has(shown, "\x1b[2mjob Training: "));
  CHECK(Has(shown, "\x1b[0m\r\n"));
  const std::regex bar("\\[#*\\.*\\] +\\d+%  step \\d+/\\d+  [\\d,]+ examples/s(  .*)?");
  size_t bars = 0;
  for (const std::string& line : Drawn(shown)) {
    if (!Has(line, "examples/s")) continue;
    ++bars;
    INFO(line);
    CHECK(std::regex_match(line, bar));
    CHECK(line.find(']') == 31);  // 30 columns of bar
  }
  CHECK(bars > 0);
  CHECK(Has(shown, "\r\nInterrupted"));  // below the bar, not over it
}

TEST_CASE("NO_COLOR takes the colour, and the width of the terminal is kept", "[progress]") {
  const Training user;
  const std::string shown = OnTerminal(user, "TERM=xterm NO_COLOR=1", 30, "  step ");
  INFO(shown);
  CHECK(Has(shown, "job Training: "));
  for (size_t at = shown.find('\x1b'); at != std::string::npos; at = shown.find('\x1b', at + 1)) {
    CHECK(shown.substr(at, 3) == "\x1b[K");  // nothing but lines being erased
  }
  size_t lines = 0;
  for (const std::string& line : Drawn(shown)) {
    if (!Has(line, "  step ")) continue;
    ++lines;
    CHECK(line.size() == 29);  // cut: the last column stays free
  }
  CHECK(lines > 0);
}

TEST_CASE("an empty NO_COLOR is none, as everywhere", "[progress]") {
  const Training user;
  CHECK(Has(OnTerminal(user, "TERM=xterm NO_COLOR=", 160, "examples/s"), "\x1b[2mjob Training: "));
}

TEST_CASE("a terminal that can do nothing gets plain lines, and so does a file", "[progress]") {
  const Training user;
  const auto check_plain = [](const std::string& text) {
    INFO(text);
    CHECK(Has(text, "job Training: "));
    CHECK(text.find_first_of("\r\x1b") == std::string::npos);
    CHECK(text.back() == '\n');
  };
  std::string shown = OnTerminal(user, "TERM=dumb", 160, "Training: ");
  // A terminal begins each line of its own accord.
  for (size_t at; (at = shown.find("\r\n")) != std::string::npos;) shown.erase(at, 1);
  check_plain(shown);
  const ProgramResult r =
      user.Interrupted(kTrain, "Training: ", [](const User&, pid_t pid) { kill(pid, SIGINT); });
  CHECK(r.exit_code == 130);
  check_plain(r.err);
}

}  // namespace
}  // namespace strata
