// `strata predict` between pipes: scores come while lines do, memory does not grow with them, and
// whoever ends it finds nothing left behind.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>

#include "tests/bad_input/user.h"
#include "tests/skip.h"
#include "tests/small_disk.h"

namespace strata {
namespace {

// `strata ARGUMENTS` in the user's folder, with both ends in the test's hands. TMPDIR is `tmp`
// there, unless told otherwise. One thread; another may write.
class Piped {
 public:
  Piped(const User& user, const std::string& arguments)
      : Piped(user, arguments, user.Path("tmp")) {}
  Piped(const User& user, const std::string& arguments, const std::string& tmp) {
    std::filesystem::create_directory(tmp);
    int in[2], out[2];
    REQUIRE((pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0));
    const std::string command = "cd '" + user.folder() + "' && HOME=. TMPDIR='" + tmp + "' exec '" +
                                ProgramPath("tools/cli/strata") + "' " + arguments + " 2>err";
    pid_ = fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      alarm(60);  // survives exec: a hang ends by a signal
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    to_ = in[1];
    from_ = out[0];
  }
  ~Piped() {
    CloseInput();
    CloseOutput();
    if (pid_ > 0) Wait();
  }

  pid_t pid() const { return pid_; }

  void Write(const std::string& text) const {
    for (size_t at = 0; at < text.size();) {
      const ssize_t put = write(to_, text.data() + at, text.size() - at);
      REQUIRE(put > 0);
      at += static_cast<size_t>(put);
    }
  }
  // Waits for it; empty: the end.
  std::string ReadLine() {
    while (true) {
      const size_t end = buffer_.find('\n', seen_);
      if (end != std::string::npos) {
        std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        seen_ = 0;
        return line;
      }
      seen_ = buffer_.size();
      char block[1 << 16];
      const ssize_t n = read(from_, block, sizeof(block));
      if (n <= 0) return "";
      buffer_.append(block, static_cast<size_t>(n));
    }
  }
  void CloseInput() { Close(to_); }
  void CloseOutput() { Close(from_); }
  // Its exit code, or 128 and the signal that ended it.
  int Wait() {
    int status = 0;
    REQUIRE(waitpid(pid_, &status, 0) == pid_);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  // Memory that it has now.
  uint64_t ResidentBytes() const {
    std::ifstream in("/proc/" + std::to_string(pid_) + "/statm");
    uint64_t pages = 0, resident = 0;
    in >> pages >> resident;
    return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  }

 private:
  static void Close(int& fd) {
    if (fd >= 0) close(fd);
    fd = -1;
  }

  pid_t pid_ = 0;
  int to_ = -1, from_ = -1;
  std::string buffer_;
  size_t seen_ = 0;
};

// With a checkpoint in `c`.
struct Predictor : User {
  Predictor() {
    Write("train.libfm", GoodLines(50));
    WriteJob();
    REQUIRE(Strata("train -f job.yaml --set spec.checkpoint.directory=c").exit_code == 0);
  }
  bool LeftNothing() const { return std::filesystem::is_empty(Path("tmp")); }
};

TEST_CASE("a score comes with its line, not with the end of the input", "[predict]") {
  const Predictor user;
  std::istringstream lines(GoodLines(50)), scores(user.Strata("predict --checkpoint c "
                                                              "train.libfm")
                                                      .out);
  Piped piped(user, "predict --checkpoint c -");
  for (std::string line, score; std::getline(lines, line) && std::getline(scores, score);) {
    piped.Write(line + "\n");
    CHECK(piped.ReadLine() == score);
  }
  piped.Write("3:1");  // no label, no line end
  piped.CloseInput();
  const std::string last = piped.ReadLine();
  CHECK((last.size() > 1 && last[0] == ','));
  CHECK(piped.ReadLine().empty());
  CHECK(piped.Wait() == 0);
  CHECK(user.Read("err").find("scored 51 lines, 50 with a label: AUC ") == 0);
  CHECK(user.LeftNothing());
}

TEST_CASE("lines score the same in pieces and all together, whatever their values", "[predict]") {
  const User user;
  std::string text;
  for (int i = 0; i < 300; ++i) {
    const int a = i * 7919 % 40, b = i * 104729 % 39;
    text += (a + b) % 3 == 0 ? "1" : "0";
    text += " 0:" + std::to_string(a) + ":0.3 1:" + std::to_string(100 + b) + ":0.7\n";
  }
  user.Write("train.libfm", text);
  user.WriteJob("  checkpoint: {directory: c}\n");
  REQUIRE(user.Strata("train -f job.yaml --set spec.data.format=libffm --set spec.model.type=fm "
                      "--set spec.model.embeddingDim=4 --set spec.training.epochs=3")
              .exit_code == 0);
  // A line without its first field: what is read with it has to name the fields of each feature.
  user.Write("all", text + "1 1:105:0.7\n");
  std::istringstream lines(text), scores(user.Strata("predict --checkpoint c all").out);
  Piped piped(user, "predict --checkpoint c -");
  std::string line, score, together, apart;
  for (size_t piece = 1; lines; piece = piece % 5 + 1) {
    std::string some;
    size_t count = 0;
    for (; count < piece && std::getline(lines, line); ++count) some += line + "\n";
    piped.Write(some);
    for (; count > 0 && std::getline(scores, score); --count) {
      together += score + "\n";
      apart += piped.ReadLine() + "\n";
    }
  }
  CHECK(together.size() > 300);
  CHECK(apart == together);
}

TEST_CASE("memory does not grow with the lines", "[predict]") {
  const Predictor user;
  Piped piped(user, "predict --checkpoint c --scores-only -");
  std::string text;
  for (int i = 0; i < 2000; ++i) text += std::to_string(i) + ":1 " + std::to_string(i + 9) + ":1\n";
  // Both sides at once, as in a pipeline. Returns what it takes at the end.
  const auto pass = [&](int times) {
    std::thread writer([&] {
      for (int i = 0; i < times; ++i) piped.Write(text);
    });
    size_t wrong = 0;
    for (int i = 0; i < times * 2000; ++i) wrong += piped.ReadLine().empty() ? 1 : 0;
    writer.join();
    CHECK(wrong == 0);
    return piped.ResidentBytes();
  };
  const uint64_t before = pass(10);
  const uint64_t after = pass(200);
  INFO(before << " bytes, " << after << " after 400000 lines more");
  // 400,000 lines are 5 MB of text, and 3 MB of what the quality would keep of each.
  CHECK(after < before + (uint64_t{3} << 20));
  piped.CloseInput();
  CHECK(piped.Wait() == 0);
}

TEST_CASE("predict ends as its reader leaves, and leaves nothing", "[predict]") {
  const Predictor user;
  Piped piped(user, "predict --checkpoint c -");
  piped.Write("1 3:1\n");
  CHECK(piped.ReadLine().size() > 2);
  piped.CloseOutput();
  piped.Write("1 3:1\n");
  CHECK(piped.Wait() == 128 + SIGPIPE);
  CHECK(user.Read("err").empty());
  CHECK(user.LeftNothing());
}

TEST_CASE("an interruption ends the wait for a line, and leaves nothing", "[predict]") {
  const Predictor user;
  for (const int signal : {SIGINT, SIGTERM}) {
    Piped piped(user, "predict --checkpoint c - -o scores");
    piped.Write("1 3:1\n");
    // The name that scores have on their way tells that it is at work.
    while (!std::filesystem::exists(user.Path("scores.tmp"))) std::this_thread::yield();
    REQUIRE(kill(piped.pid(), signal) == 0);
    CHECK(piped.Wait() == 130);
    CHECK(user.Read("err") == "strata: interrupted\n");
    CHECK(user.LeftNothing());
    CHECK_FALSE(std::filesystem::exists(user.Path("scores")));
    CHECK_FALSE(std::filesystem::exists(user.Path("scores.tmp")));
  }
}

TEST_CASE("a disk without room for the rows, or for the scores, is told", "[predict]") {
  const Predictor user;
  SmallDisk disk(user.Path("disk"), 128 << 10);
  if (!disk.mounted()) STRATA_SKIP(disk.reason());
  // Far more rows than fit in what memory is given and on the disk.
  std::string many;
  for (int i = 0; i < 8000; ++i) many += std::to_string(i % 2) + " " + std::to_string(i) + ":1\n";
  user.Write("train.libfm", many);
  const ProgramResult trained = user.Strata(
      "train -f job.yaml --set spec.checkpoint.directory=big "
      "--set spec.model.type=fm --set spec.model.embeddingDim=64");
  REQUIRE(trained.exit_code == 0);
  {
    Piped piped(user, "predict --checkpoint big --dram-bytes 1MiB train.libfm", user.Path("disk"));
    CHECK(piped.Wait() == 1);
    const std::string said = user.Read("err");
    INFO(said);
    CHECK(WhatIsWrongWith(said, {"No space left on device", "--dram-bytes", "$TMPDIR"}) == "");
    CHECK(std::count(said.begin(), said.end(), '\n') == 1);
    CHECK(std::filesystem::is_empty(user.Path("disk")));
  }
  // The same model, where there is room.
  const ProgramResult fits = user.Strata("predict --checkpoint big --dram-bytes 1MiB train.libfm");
  CHECK(fits.exit_code == 0);
  CHECK(fits.out == user.Strata("predict --checkpoint big train.libfm").out);
  CheckSays(user.Strata("predict --checkpoint big train.libfm train.libfm -o disk/scores"), 2,
            {"disk/scores", "No space left on device"});
  CHECK(std::filesystem::is_empty(user.Path("disk")));
}

TEST_CASE("what predict tells of lines without labels", "[predict]") {
  const Predictor user;
  user.Write("bare", "3:1\n102:1\n");
  user.Write("bad", "3:1\nx\n1 102:1\n");
  const ProgramResult bare = user.Strata("predict --checkpoint c bare");
  CHECK(bare.exit_code == 0);
  CHECK(bare.err == "scored 2 lines; none has a label\n");
  const ProgramResult json = user.Strata("predict --checkpoint c bare -o scores --json");
  const auto said = nlohmann::json::parse(json.out);
  CHECK((said.at("lines") == 2 && said.at("labelledLines") == 0 && said.at("auc").is_null()));
  CHECK((said.at("logloss").is_null() && said.at("measuredLines") == 2));
  CheckSays(user.Strata("predict --checkpoint c bad"), 2,
            {"bad:2:1: label \"x\"", "--max-bad-lines"});
  const ProgramResult bad = user.Strata("predict --checkpoint c bad --max-bad-lines 1");
  CHECK(bad.exit_code == 0);
  CHECK(bad.err.find("scored 2 lines, left out 1 bad ones, 1 with a label: AUC ") == 0);
  CheckSays(user.Strata("predict --checkpoint c - - <bare"), 2, {"'-'", "more than once"});
  CheckSays(user.Strata("predict --checkpoint c -"), 2, {"standard input is empty"});
  // It speaks of its own options, not of the job's fields.
  const ProgramResult none = user.Strata("predict --checkpoint c none");
  CheckSays(none, 2, {"input file none does not exist; check its path"});
  const ProgramResult small = user.Strata("predict --checkpoint c bare --dram-bytes 1");
  CheckSays(small, 2, {"--dram-bytes is too small: ", "set it to at least"});
  CHECK(small.err.find("spec.") == std::string::npos);
}

}  // namespace
}  // namespace strata
