// Archives of logs, as tar reads them.
#include "tools/gpu/check/log_archive.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/status/status.h"
#include "tests/temp_folder.h"

namespace strata::gpu_check {
namespace {

std::string Read(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// What a command says in the folder.
std::string Said(const TempFolder& folder, const std::string& command) {
  const std::string line = "cd " + folder.path() + " && " + command + " >said 2>&1";
  CHECK(std::system(line.c_str()) == 0);
  return Read(folder.path() + "/said");
}

void Write(const TempFolder& folder, const std::string& name, const std::string& text) {
  std::ofstream(folder.path() + "/" + name) << text;
}

TEST_CASE("each log that was added is there, and the archive is whole", "[gpu_check]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/logs.tar";
  Write(folder, "logs.tar", std::string(100'000, 'x'));  // of the last run
  auto archive = LogArchive::Create(path);
  REQUIRE(archive.ok());
  CHECK(Said(folder, "tar -tf logs.tar").empty());
  // None, less and more than a block, whole blocks, and more than is read at once.
  const size_t sizes[] = {0, 1, 511, 512, 513, 65536, 200'000};
  std::string names;
  for (const size_t size : sizes) {
    const std::string name = "part-" + std::to_string(size) + ".log";
    std::string text;
    for (size_t i = 0; i < size; ++i) text += static_cast<char>('a' + i % 23);
    Write(folder, "log", text);
    REQUIRE((*archive)->Add(folder.path() + "/log", name).ok());
    names += name + "\n";
    CHECK(Said(folder, "tar -tf logs.tar") == names);
    CHECK(Said(folder, "tar -xOf logs.tar " + name) == text);
    CHECK(std::filesystem::file_size(path) % 512 == 0);
  }
  CHECK(Said(folder, "tar -xOf logs.tar part-513.log").size() == 513);
}

TEST_CASE("what is no log is passed over", "[gpu_check]") {
  const TempFolder folder;
  auto archive = LogArchive::Create(folder.path() + "/logs.tar");
  REQUIRE(archive.ok());
  REQUIRE(mkfifo((folder.path() + "/pipe").c_str(), 0600) == 0);
  for (const char* name : {"/none", "/pipe", ""}) {
    CHECK((*archive)->Add(folder.path() + name, "some.log").ok());
  }
  CHECK(Said(folder, "tar -tf logs.tar").empty());
}

TEST_CASE("an archive that cannot be written is told, and has what it had", "[gpu_check]") {
  const TempFolder folder;
  CHECK(LogArchive::Create(folder.path()).status().message() == folder.path() + ": Is a directory");
  CHECK(LogArchive::Create("/dev/full").status().message() == "/dev/full: No space left on device");
  const std::string path = folder.path() + "/logs.tar";
  auto archive = LogArchive::Create(path);
  REQUIRE(archive.ok());
  Write(folder, "log", "kept");
  REQUIRE((*archive)->Add(folder.path() + "/log", "first.log").ok());
  Write(folder, "log", std::string(100'000, 'x'));
  // No file may grow beyond this: a disk that is full.
  struct rlimit before = {};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  struct rlimit small = before;
  small.rlim_cur = 20'000;
  std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  const absl::Status full = (*archive)->Add(folder.path() + "/log", "second.log");
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  CHECK(full.message() == path + ": File too large");
  CHECK(Said(folder, "tar -tf logs.tar") == "first.log\n");
  REQUIRE((*archive)->Add(folder.path() + "/log", "second.log").ok());
  CHECK(Said(folder, "tar -tf logs.tar") == "first.log\nsecond.log\n");
}

}  // namespace
}  // namespace strata::gpu_check
