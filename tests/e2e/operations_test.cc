// scheduler/OPERATIONS.md's commands, typed as they stand from top to bottom: blocks marked "sh". A
// machine is a folder, which is the home there, and an address on loopback. What is put in the
// place of the page's: addresses and the shared folder. `ssh` is a program that runs its command in
// the folder of the machine. Before two of the sections machines are lost: their processes are
// killed, and their folders removed.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr char kPage[] = "scheduler/OPERATIONS.md";
// Sections before which a machine is lost.
struct Loss {
  const char* section;
  const char* machine;
};
constexpr Loss kLosses[] = {{"Replace a lost server machine", "beta"},
                            {"Bring the scheduler back from the copy", "main"}};

struct Block {
  int line = 0;  // of the page: its first
  std::string section;
  std::string text;
};

struct Page {
  std::vector<Block> blocks;
  std::vector<int> unmarked;  // lines outside of blocks marked "sh" that are commands of ours
};

Page ReadPage(const std::string& text) {
  Page page;
  std::istringstream lines(text);
  std::string line, section, block;  // `block`: the line that opened it
  bool inside = false;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (absl::StartsWith(line, "```")) {
      inside = !inside;
      block = line;
      if (inside && block == "```sh") page.blocks.push_back({number + 1, section, ""});
    } else if (!inside && absl::StartsWith(line, "## ")) {
      section = line.substr(3);
    } else if (inside && block == "```sh") {
      absl::StrAppend(&page.blocks.back().text, line, "\n");
    } else if (inside && absl::StartsWith(line, "strata")) {
      page.unmarked.push_back(number);
    }
  }
  return page;
}

// Whoever types a job's name next reads first that it trains; so a job is given time to start.
std::string Typed(std::string text) {
  if (!absl::StrContains(text, "strata submit") || absl::StrContains(text, "--wait")) return text;
  const size_t end = text.find('\n', text.find("strata submit"));
  return text.insert(end + 1,
                     "until strata status clicks --json | grep -q '\"step\":[1-9]'; do\n"
                     "  sleep 0.05\ndone\n");
}

class Machines {
 public:
  explicit Machines(const std::string& folder) : folder_(folder), net_(NetOf(folder)) {
    // Daemons outlive the shell that started them; their ends are seen here.
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    fs::create_directories(folder_ + "/bin");
    fs::create_directories(folder_ + "/shared");
    for (const char* program : {"tools/cli/strata", "scheduler/strata-scheduler",
                                "server/strata-server", "worker/strata-worker"}) {
      const std::string path = Program(program);
      fs::create_symlink(path, folder_ + "/bin/" + fs::path(path).filename().string());
    }
    for (const char* machine : {"desk", "main", "alpha", "beta", "gamma", "w1", "w2"}) {
      fs::create_directories(Home(machine));
    }
    const std::string ssh = folder_ + "/bin/ssh";
    std::ofstream(ssh) << "#!/bin/bash\nhost=$1\nshift\ncd \"$MACHINES/$host\" || exit 255\n"
                       << "HOME=$PWD XDG_CONFIG_HOME=$PWD/.config exec bash -c \"$*\"\n";
    fs::permissions(ssh, fs::perms::owner_all);
  }
  ~Machines() {
    std::error_code error;
    for (const auto& machine : fs::directory_iterator(folder_ + "/machines", error)) {
      End(machine.path().filename().string());
    }
  }

  std::string Home(const std::string& machine) const { return folder_ + "/machines/" + machine; }

  // Exit code of a shell on `desk` that is given `text`; kHangs: it did not end, and was ended.
  static constexpr int kHangs = 124;
  int Type(const std::string& text, const std::string& said) {
    const std::string script = folder_ + "/typed";
    std::ofstream(script) << "export MACHINES=" << folder_ << "/machines PATH=" << folder_
                          << "/bin:$PATH\n"
                          << absl::StrReplaceAll(text, {{"10.0.0.", net_ + "."},
                                                        {"exec strata-scheduler",
                                                         "exec strata-scheduler --lease-ms 2000"},
                                                        {"/mnt/strata", folder_ + "/shared"}});
    ChildProcess shell({"/bin/bash", "-e", "-u", "-o", "pipefail", script}, said, Home("desk"));
    try {
      AwaitThat(
          "end of a block",
          [&] {
            Reap();
            return shell.Ended();
          },
          absl::Seconds(100));
    } catch (const std::runtime_error&) {
      return kHangs;
    }
    return shell.Wait();
  }

  // What the processes have said on stderr.
  std::string Said() const {
    std::string all;
    for (const auto& machine : fs::directory_iterator(folder_ + "/machines")) {
      absl::StrAppend(&all, machine.path().filename().string(), ": ",
                      ReadFile(machine.path().string() + "/out"), "\n");
    }
    return all;
  }

  // For good.
  void Lose(const std::string& machine) {
    End(machine);
    fs::remove_all(Home(machine));
    fs::create_directory(Home(machine));  // the one that takes its place
  }

 private:
  // Of 127.0.0.0/8 each folder has a net of its own, so that ports may be those of the page.
  static std::string NetOf(const std::string& folder) {
    const size_t drawn = std::hash<std::string>()(folder);
    return absl::StrCat("127.", 1 + drawn / 256 % 254, ".", drawn % 256);
  }
  // What was started on a machine, by the file that the page has it noted in.
  void End(const std::string& machine) {
    pid_t pid = 0;
    std::ifstream(Home(machine) + "/pid") >> pid;
    std::error_code error;
    const fs::path at = fs::read_symlink(absl::StrCat("/proc/", pid, "/cwd"), error);
    if (pid <= 0 || error || at != fs::canonical(Home(machine))) return;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  void Reap() {
    for (const auto& machine : fs::directory_iterator(folder_ + "/machines")) {
      pid_t pid = 0;
      std::ifstream(machine.path() / "pid") >> pid;
      if (pid > 0) waitpid(pid, nullptr, WNOHANG);
    }
  }

  const std::string folder_;
  const std::string net_;
};

Json ReadJson(const std::string& path) {
  INFO(path);
  const Json json = Json::parse(ReadFile(path), nullptr, /*allow_exceptions=*/false);
  REQUIRE(json.is_object());
  return json;
}

bool Tells(const Json& status, const std::string& reason) {
  for (const Json& condition : status["conditions"]) {
    if (condition["reason"] == reason) return true;
  }
  return false;
}

TEST_CASE("the commands of OPERATIONS.md work as they stand", "[e2e][operations]") {
  const Page page = ReadPage(ReadFile(Program(kPage)));
  auto folder = ScratchFolder::Make("strata-operations");
  REQUIRE(folder.ok());
  Machines machines(fs::canonical(folder->path()).string());

  std::set<std::string> lost;
  for (const Block& block : page.blocks) {
    for (const Loss& loss : kLosses) {
      if (block.section == loss.section && lost.insert(loss.machine).second) {
        machines.Lose(loss.machine);
      }
    }
    const std::string said = absl::StrCat(folder->path(), "/said-", block.line);
    const int code = machines.Type(Typed(block.text), said);
    INFO(kPage << ", line " << block.line << "\n"
               << ReadFile(said) << ReadFile(said + ".err") << machines.Said());
    REQUIRE(code == 0);
  }
  CHECK(lost.size() == std::size(kLosses));
  const Json undisturbed = ReadJson(machines.Home("desk") + "/undisturbed.json");
  const Json replaced = ReadJson(machines.Home("desk") + "/replaced.json");
  CHECK(undisturbed["state"] == "succeeded");
  CHECK(replaced["state"] == "succeeded");
  CHECK(replaced["rollbacks"] == 0);
  CHECK(replaced["modelHash"] == undisturbed["modelHash"]);
  for (const char* reason : {"Promoted", "CopyBegun", "Replicated"}) {
    INFO(reason << replaced["conditions"]);
    CHECK(Tells(replaced, reason));
  }
}

TEST_CASE("OPERATIONS.md shows commands in the marked blocks only", "[operations]") {
  const Page page = ReadPage(ReadFile(Program(kPage)));
  CHECK(page.unmarked == std::vector<int>());
  CHECK(page.blocks.size() > 10);
}

TEST_CASE("the page is read as it is meant", "[operations]") {
  const Page page = ReadPage(
      "## One\n```sh\nstrata a\n# b\n```\n```\nstrata lost\n```\n## Two\n"
      "```sh\nls\n```\n```yaml\nkey: strata\n```\nstrata words\n");
  REQUIRE(page.blocks.size() == 2);
  CHECK(page.blocks[0].line == 3);
  CHECK(page.blocks[0].section == "One");
  CHECK(page.blocks[0].text == "strata a\n# b\n");
  CHECK(page.blocks[1].section == "Two");
  CHECK(page.unmarked == std::vector<int>{7});
  CHECK(Typed("strata submit -f x\nb\n").find("until strata status") == 19);
  CHECK(Typed("strata submit --wait\nb\n") == "strata submit --wait\nb\n");
}

}  // namespace
}  // namespace strata::testing
