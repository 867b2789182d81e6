// The program as it is run: wrong usage, no device, and everything on host threads.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/temp_folder.h"

namespace strata::gpu_check {
namespace {

namespace fs = std::filesystem;

struct Said {
  int exit_code = 0;
  std::string out, err;
};

std::string Read(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// No device, whatever this machine has.
Said Run(const std::string& folder, const std::string& arguments) {
  const std::string program =
      std::string(std::getenv("TEST_SRCDIR")) + "/strata/tools/gpu/gpu_check";
  const int status = std::system(("cd " + folder + " && CUDA_VISIBLE_DEVICES= " + program + " " +
                                  arguments + " >said.out 2>said.err")
                                     .c_str());
  return {WEXITSTATUS(status), Read(folder + "/said.out"), Read(folder + "/said.err")};
}

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("wrong usage is told", "[gpu_check]") {
  const TempFolder folder;
  CHECK(Run(folder.path(), "").exit_code == 2);
  CHECK(Has(Run(folder.path(), "").err, "--out is missing"));
  CHECK(Run(folder.path(), "--out x --budget_seconds none").exit_code == 2);
  const Said negative = Run(folder.path(), "--out x --budget_seconds -3");
  CHECK(negative.exit_code == 2);
  CHECK(Has(negative.err, "--budget_seconds: -3 is no number of seconds above 0"));
  const Said unnamed = Run(folder.path(), "--out x --device ''");
  CHECK(unnamed.exit_code == 2);
  CHECK(Has(unnamed.err, "--device: is empty"));
  CHECK(Run(folder.path(), "--out x --host --device GPU-1").exit_code == 2);
  CHECK(Run(folder.path(), "--out x --host --cublas some.so").exit_code == 2);
  CHECK(Run(folder.path(), "there").exit_code == 2);
  CHECK(Run(folder.path(), "--part none").exit_code == 2);
  CHECK(Run(folder.path(), "--out x --parts ''").exit_code == 2);
  for (const char* flag : {"--parts", "--skip"}) {
    const Said unknown = Run(folder.path(), std::string("--out x ") + flag + " mlp,mpl");
    INFO(unknown.err);
    CHECK(unknown.exit_code == 2);
    CHECK(unknown.out.empty());
    CHECK(Has(unknown.err, std::string("gpu_check: ") + flag + ": there is no part 'mpl'; give"));
    for (const char* part : {"racecheck", "mlp", "find-or-insert", "pool_test"}) {
      CHECK(Has(unknown.err, part));
    }
  }
  CHECK(Run(folder.path(), "--out x --skip device").exit_code == 2);
  CHECK_FALSE(fs::exists(folder.path() + "/x"));
  const Said help = Run(folder.path(), "--help");
  CHECK(help.exit_code == 0);
  CHECK(Has(help.out, "--budget_seconds"));
  CHECK(Has(help.out, "--parts"));
  CHECK(Has(help.out, "--skip"));
  const Said tests = Run(folder.path(), "--list-tests");
  CHECK(tests.exit_code == 0);
  CHECK(Has(tests.out, "//tests/ops/cuda/rows:pool_test\n"));
}

TEST_CASE("without a device it says so, and exits with 77", "[gpu_check]") {
  const TempFolder folder;
  const Said said = Run(folder.path(), "--out results");
  INFO(said.out << said.err);
  CHECK(said.exit_code == 77);
  CHECK(Has(said.out, "no device: "));
  CHECK(Has(said.out, "there is no device\n"));
  const auto json = nlohmann::json::parse(Read(folder.path() + "/results/gpu_check.json"));
  CHECK(json["device_found"] == false);
  CHECK(json["finished"] == true);
  CHECK(json["exit_code"] == 77);
  for (const auto& part : json["parts"]) CHECK(part["state"] == "skipped");
}

// What is in a folder, in order.
std::vector<std::string> Files(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

std::string Tar(const std::string& folder, const std::string& arguments) {
  const std::string line = "cd " + folder + " && tar " + arguments + " >said.tar";
  CHECK(std::system(line.c_str()) == 0);
  return Read(folder + "/said.tar");
}

TEST_CASE("--out holds a report and one archive, of the parts that were chosen", "[gpu_check]") {
  const TempFolder folder;
  const std::vector<std::string> both = {"gpu_check.json", "gpu_check.tar"};
  fs::create_directories(folder.path() + "/results/running/tmp/left");  // by one that was killed
  std::ofstream(folder.path() + "/results/running/bar-apply.log") << "of the last run";
  Said said = Run(folder.path(), "--out results --host --parts coalesce,bar\\ gather,pool_test");
  INFO(said.out << said.err);
  CHECK(said.exit_code == 0);
  CHECK(Files(folder.path() + "/results") == both);
  CHECK(Tar(folder.path(), "-tf results/gpu_check.tar") ==
        "device.log\nbar-gather.log\nbar-coalesce.log\n");
  CHECK(Has(Tar(folder.path(), "-xOf results/gpu_check.tar bar-gather.log"), "rows of 256 B"));
  const auto json = nlohmann::json::parse(Read(folder.path() + "/results/gpu_check.json"));
  std::vector<std::string> names;
  for (const auto& part : json["parts"]) names.push_back(part["name"]);
  CHECK(names == std::vector<std::string>{"device", "test pool_test", "bar gather", "bar coalesce",
                                          "memcheck pool_test", "racecheck pool_test"});
  said = Run(folder.path(), "--out results --parts bar");
  CHECK(said.exit_code == 77);
  CHECK(Files(folder.path() + "/results") == both);
  CHECK(Tar(folder.path(), "-tf results/gpu_check.tar") == "device.log\n");
}

TEST_CASE("a folder for results that cannot be written is told before anything is tried",
          "[gpu_check]") {
  const TempFolder folder;
  std::ofstream(folder.path() + "/file") << "x";
  fs::create_directories(folder.path() + "/taken/gpu_check.json.new");
  fs::create_directories(folder.path() + "/archived/gpu_check.tar");
  for (const auto& [out, what] : {std::pair("file", "--out: file"),
                                  std::pair("file/below", "--out: file/below: Not a directory"),
                                  std::pair("taken", "--out: taken/gpu_check.json: Is a directory"),
                                  std::pair("archived", "--out: archived/gpu_check.tar: Is a dir"),
                                  std::pair("/proc/none", "--out: /proc/none")}) {
    const Said said = Run(folder.path(), std::string("--host --out ") + out);
    INFO(said.err);
    CHECK(said.exit_code == 2);
    CHECK(Has(said.err, what));
    CHECK(Has(said.err, "name a folder that this user can write to"));
    CHECK(said.out.empty());
  }
}

// The log of a part is a pipe, which the program waits to open.
TEST_CASE("a report that cannot be written any more ends the run", "[gpu_check]") {
  const TempFolder folder;
  const std::string results = folder.path() + "/results";
  const std::string log = results + "/running/bar-gather.log";
  fs::create_directories(results + "/running");
  REQUIRE(mkfifo(log.c_str(), 0600) == 0);
  auto ended = std::async(std::launch::async, [&] {
    return Run(folder.path(), "--out results --host --parts gather,apply");
  });
  const int begun = open(log.c_str(), O_RDONLY);
  fs::create_directories(results + "/gpu_check.json.new");
  const int kept = open(log.c_str(), O_WRONLY);
  const Said said = ended.get();
  close(begun);
  close(kept);
  INFO(said.out << said.err);
  CHECK(said.exit_code == 1);
  CHECK(Has(said.err, "results/gpu_check.json: Is a directory; what is after bar gather was not"));
  CHECK(Has(said.out, "passed   device"));
  CHECK_FALSE(Has(said.out, "bar apply"));
  const auto json = nlohmann::json::parse(Read(results + "/gpu_check.json"));
  CHECK(json["finished"] == false);
}

TEST_CASE("who is killed in the first part leaves a report of this run", "[gpu_check]") {
  const TempFolder folder;
  const std::string results = folder.path() + "/results", log = results + "/running/device.log";
  fs::create_directories(results + "/running");
  std::ofstream(results + "/gpu_check.json") << "of the last run";
  REQUIRE(mkfifo(log.c_str(), 0600) == 0);
  auto ended = std::async(std::launch::async,
                          [&] { return Run(folder.path(), "--out results --budget_seconds 6"); });
  const int begun = open(log.c_str(), O_RDONLY);
  const std::string so_far = Read(results + "/gpu_check.json");
  const int kept = open(log.c_str(), O_WRONLY);  // so that the program can open it to read
  (void)ended.get();
  close(begun);
  close(kept);
  const auto json = nlohmann::json::parse(so_far, nullptr, false);
  REQUIRE(json.is_object());
  CHECK(json["finished"] == false);
  CHECK(json["parts"].empty());
}

TEST_CASE("on host threads every bar runs", "[gpu_check]") {
  const TempFolder folder;
  const Said said = Run(folder.path(), "--out results --host");
  INFO(said.out << said.err);
  CHECK(said.exit_code == 0);
  CHECK(said.out.size() <= 12000);
  CHECK(Has(said.out, "rows of 256 B, 1 a bag"));
  CHECK_FALSE(Has(said.out, "MISSED"));
  CHECK(Has(said.out, "cuBLASLt "));
  const auto json = nlohmann::json::parse(Read(folder.path() + "/results/gpu_check.json"));
  CHECK(json["device_found"] == true);
  int bars = 0;
  for (const auto& part : json["parts"]) {
    const std::string name = part["name"];
    INFO(name << ": " << part["reason"]);
    CHECK(part["state"] != "failed");
    if (name.rfind("bar ", 0) != 0) continue;
    CHECK(part["state"] == "passed");
    CHECK_FALSE(part["lines"].empty());
    ++bars;
  }
  CHECK(bars == 7);
  CHECK(Has(said.out, "uniform keys, 10 % of rows in HBM"));
}

TEST_CASE("a budget in which nothing runs is no success", "[gpu_check]") {
  const TempFolder folder;
  for (const std::string budget : {"0.5", "6"}) {  // nothing; the search for a device alone
    const Said said = Run(folder.path(), "--out results --host --budget_seconds " + budget);
    INFO(said.out << said.err);
    CHECK(said.exit_code == 3);
    CHECK(Has(said.err, "bar mlp: skipped: no time: "));
    CHECK(Has(said.out, "; nothing is proven\n"));
    const auto json = nlohmann::json::parse(Read(folder.path() + "/results/gpu_check.json"));
    CHECK(json["exit_code"] == 3);
    CHECK(json["proven"] == false);
    for (const auto& part : json["parts"]) {
      const std::string name = part["name"];
      if (name.rfind("bar ", 0) == 0) CHECK(part["no_time"] == true);
    }
  }
}

// The log of a part is a pipe, which the program waits to open.
TEST_CASE("each result is in the report before the next part begins", "[gpu_check]") {
  const TempFolder folder;
  const std::string results = folder.path() + "/results";
  const std::string log = results + "/running/bar-coalesce.log";
  fs::create_directories(results + "/running");
  REQUIRE(mkfifo(log.c_str(), 0600) == 0);
  auto ended = std::async(std::launch::async, [&] {
    return Run(folder.path(), "--out results --host --parts gather,apply,coalesce,find").exit_code;
  });
  const int begun = open(log.c_str(), O_RDONLY);
  const std::string so_far = Read(results + "/gpu_check.json");
  const int kept = open(log.c_str(), O_WRONLY);  // so that the program can open it to read
  CHECK(ended.get() == 1);                       // what the part told is lost
  close(begun);
  close(kept);
  const auto json = nlohmann::json::parse(so_far, nullptr, false);
  REQUIRE(json.is_object());
  CHECK(json["finished"] == false);
  CHECK(json["parts"].back()["name"] == "bar apply");
  CHECK(json["parts"].back()["state"] == "passed");
  const auto last = nlohmann::json::parse(Read(results + "/gpu_check.json"));
  CHECK(last["finished"] == true);
  CHECK(last["exit_code"] == 1);
}

}  // namespace
}  // namespace strata::gpu_check
