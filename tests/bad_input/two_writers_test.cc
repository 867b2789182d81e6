// Two programs that write to one place, and one that comes after another was killed: nothing
// half-written has the final name, and who comes second says so in one line.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/bad_input/user.h"
#include "tests/tools/cluster/import/written_arrays.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using testing::BytesOf;
using testing::Npy;

// `strata ARGUMENTS` in the user's folder, which has an end of its standard input. Once made, it
// holds the lock on what it writes. One thread.
class Writer {
 public:
  Writer(const User& user, const std::string& arguments) {
    int in[2];
    REQUIRE(pipe2(in, O_CLOEXEC) == 0);
    const std::string command = "cd '" + user.folder() + "' && HOME=. exec '" +
                                ProgramPath("tools/cli/strata") + "' " + arguments +
                                " >first.out 2>first.err";
    pid_ = fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      dup2(in[0], STDIN_FILENO);
      alarm(60);  // survives exec: a hang ends by a signal
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
    close(in[0]);
    input_ = in[1];
    while (!HasLock()) {
      const bool alive = waitpid(pid_, nullptr, WNOHANG) == 0;
      INFO(user.Read("first.err"));
      REQUIRE(alive);
      std::this_thread::yield();
    }
  }
  ~Writer() {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    Wait();
  }

  void Kill() {
    REQUIRE(kill(pid_, SIGKILL) == 0);
    CHECK(Wait() == 1000);
  }
  // `text` is all of its standard input. Its exit code.
  int Finish(const std::string& text) {
    REQUIRE(write(input_, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    return Wait();
  }

 private:
  // Whether it has locked a file (flock).
  bool HasLock() const {
    std::ifstream locks("/proc/locks");
    for (std::string number, type, kind, mode, pid, rest;
         locks >> number >> type >> kind >> mode;) {
      locks >> pid;
      std::getline(locks, rest);
      if (type == "FLOCK" && pid == std::to_string(pid_)) return true;
    }
    return false;
  }
  int Wait() {
    close(input_);
    int status = 0;
    REQUIRE(waitpid(pid_, &status, 0) == pid_);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
  }

  pid_t pid_ = 0;
  int input_ = -1;
};

std::vector<std::string> Names(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// `strata ARGUMENTS` is killed by the kernel when a file of its own passes `blocks` of 512 bytes.
void RunUntilKilled(const User& user, const std::string& arguments, int blocks) {
  const std::string line = "cd '" + user.folder() + "' && HOME=. && ulimit -c 0 && ulimit -f " +
                           std::to_string(blocks) + " && exec '" + ProgramPath("tools/cli/strata") +
                           "' " + arguments + " >killed.out 2>killed.err </dev/null";
  const int status = std::system(line.c_str());
  INFO(user.Read("killed.err"));
  REQUIRE(WIFSIGNALED(status));
  REQUIRE(WTERMSIG(status) == SIGXFSZ);
}

void WriteJobOfItems(const User& user) {
  user.Write("job.yaml",
             "apiVersion: strata/v1\nkind: TrainingJob\nmetadata: {name: job}\n"
             "spec: {data: {format: libfm, train: [train.libfm]}, "
             "model: {type: fm, embeddingDim: 2}}\n");
  user.Write("train.libfm", GoodLines(50));
  std::string keys;
  for (int i = 0; i < 2000; ++i) keys += std::to_string(i) + "\n";
  user.Write("keys.txt", keys);
  user.Write("rows.npy", Npy("<f4", "(2000, 2)", BytesOf(std::vector<float>(4000, 0.5f))));
  // Eight gigabytes of zeros that take no room: reading them takes longer than the test.
  const std::string head = Npy("<f4", "(1000000000, 2)", "");
  user.Write("many.npy", head);
  fs::resize_file(user.Path("many.npy"), head.size() + (uint64_t{8} * 1000000000));
}

constexpr char kImport[] = "import -f job.yaml --raw-keys --keys keys.txt -o pretrained --rows ";

TEST_CASE("one import writes to a folder, and the next takes over what a killed one left",
          "[bad_input][import]") {
  const User user;
  WriteJobOfItems(user);
  const std::string options = kImport, import = options + "rows.npy";
  {
    Writer first(user, options + "many.npy");
    CheckOneLine(user.Strata(import), 2,
                 {"pretrained is being written by another import", "wait for its end"});
    first.Kill();
  }
  CHECK_FALSE(fs::exists(user.Path("pretrained/MANIFEST.json")));
  // Of another one its unfinished file.
  RunUntilKilled(user, import, 8);
  CHECK(Names(user.Path("pretrained")).size() == 2);
  // Somebody else's is not taken for theirs.
  user.Write("pretrained/mine", "x");
  CheckOneLine(user.Strata(import), 2, {"pretrained has something in it; name an empty or new"});
  CHECK(Names(user.Path("pretrained")).size() == 3);
  fs::remove(user.Path("pretrained/mine"));
  CheckSays(user.Strata(import), 0, {"2,000 rows"});
  CHECK(Names(user.Path("pretrained")) ==
        std::vector<std::string>{"MANIFEST.json", "shard-00000.strata"});
  CheckSays(user.Strata("checkpoint verify pretrained"), 0, {"is whole"});
  CheckOneLine(user.Strata(import), 2, {"pretrained has something in it; name an empty or new"});
  CHECK(Names(user.Path("pretrained")).size() == 2);
}

TEST_CASE("one predict writes to a file, and the next takes over what a killed one left",
          "[bad_input][predict]") {
  const User user;
  user.Write("train.libfm", GoodLines(50));
  user.WriteJob();
  REQUIRE(user.Strata("train -f job.yaml --set spec.checkpoint.directory=c").exit_code == 0);
  const std::string predict = "predict --checkpoint c train.libfm -o scores";
  const std::string scores = user.Strata("predict --checkpoint c train.libfm").out;
  const auto refused = [&] {
    CheckOneLine(user.Strata(predict), 2,
                 {"another process writes", "scores now; wait for its end, or name another file"});
    CHECK_FALSE(fs::exists(user.Path("scores")));
  };
  {
    Writer first(user, "predict --checkpoint c - -o scores");
    refused();
    CHECK(first.Finish(GoodLines(1)) == 0);
    CHECK(user.Read("scores") == scores.substr(0, scores.find('\n') + 1));
    fs::remove(user.Path("scores"));
  }
  {
    Writer first(user, "predict --checkpoint c - -o scores");
    refused();
    first.Kill();
  }
  REQUIRE(fs::exists(user.Path("scores.tmp")));
  user.Write("scores.tmp", scores + scores);
  CHECK(user.Strata(predict).exit_code == 0);
  CHECK(user.Read("scores") == scores);
  CHECK_FALSE(fs::exists(user.Path("scores.tmp")));
}

TEST_CASE("one generate writes to a file, and the next takes over what a killed one left",
          "[bad_input][generate]") {
  const User user;
  fs::create_directory(user.Path("data"));
  for (const std::string kind : {"criteo", "movielens"}) {
    INFO(kind);
    const std::string generate = "generate " + kind + " --output data/" + kind + " --rows ";
    {
      Writer first(user, generate + "1000000000");
      CheckOneLine(user.Strata(generate + "10"), 2,
                   {"data/" + kind + " is being written by another process", "wait for its end"});
      CHECK_FALSE(fs::exists(user.Path("data/" + kind)));
      first.Kill();
    }
    CHECK_FALSE(fs::exists(user.Path("data/" + kind)));
    REQUIRE(fs::exists(user.Path("data/" + kind + ".part")));
    CHECK(user.Strata(generate + "10").exit_code == 0);
    const std::string text = user.Read("data/" + kind);
    CHECK(std::count(text.begin(), text.end(), '\n') == (kind == "criteo" ? 10 : 11));
  }
  CHECK(Names(user.Path("data")) ==
        std::vector<std::string>{"_movielens.teacher.json", "criteo", "movielens"});
}

TEST_CASE("one export writes to a folder", "[bad_input][export]") {
  const User user;
  user.Write("train.libfm", GoodLines(50));
  user.WriteJob();
  REQUIRE(user.Strata("train -f job.yaml --set spec.checkpoint.directory=c").exit_code == 0);
  const std::string exporting = "export --checkpoint c --output arrays";
  REQUIRE(user.Strata(exporting).exit_code == 0);
  const std::vector<std::string> names = Names(user.Path("arrays"));
  // As another export holds it.
  const int other = open(user.Path("arrays").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  REQUIRE((other >= 0 && flock(other, LOCK_EX | LOCK_NB) == 0));
  for (const char* more : {"", " --overwrite"}) {
    CheckOneLine(user.Strata(exporting + more), 2,
                 {"arrays is being written by another export", "wait for its end"});
    CHECK(Names(user.Path("arrays")) == names);
  }
  close(other);
  CheckSays(user.Strata(exporting + " --overwrite"), 0, {"exported"});
  CHECK(Names(user.Path("arrays")) == names);
}

}  // namespace
}  // namespace strata
