#include "worker/metrics/line_file.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/skip.h"
#include "tests/small_disk.h"
#include "tests/temp_folder.h"

namespace strata {
namespace {

std::string Read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_CASE("lines are appended to what is there", "[line_file]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/lines";
  std::ofstream(path) << "old\n";
  LineFile file(path);
  REQUIRE(file.Open().ok());
  REQUIRE(file.Append("a").ok());
  REQUIRE(file.Append("b").ok());
  CHECK(Read(path) == "old\na\nb\n");
  CHECK(file.waiting_lines() == 0);
  CHECK(file.lost_lines() == 0);
}

TEST_CASE("a place that is none is an error by name", "[line_file]") {
  const TempFolder folder;
  LineFile file(folder.path() + "/no/lines");
  const absl::Status s = file.Open();
  CHECK(absl::IsFailedPrecondition(s));
  CHECK(s.message() == "cannot write " + folder.path() + "/no/lines: No such file or directory");
}

TEST_CASE("what a full disk does not take is written when it does, whole and in order",
          "[line_file]") {
  const TempFolder folder;
  SmallDisk disk(folder.path() + "/disk", 64 << 10);
  if (!disk.mounted()) STRATA_SKIP(disk.reason());
  const std::string path = disk.path() + "/lines";
  LineFile file(path);
  std::string all;
  // Lines that do not divide a page: the first that is refused is refused in its middle.
  const auto append = [&](int i) {
    const std::string line = std::to_string(i) + std::string(1000, 'x');
    all += line + "\n";
    return file.Append(line);
  };
  REQUIRE(append(0).ok());
  disk.Fill();
  absl::Status s;
  int n = 1;
  while (s.ok()) s = append(n++);
  CHECK(absl::IsResourceExhausted(s));
  CHECK(s.message() == "cannot write " + path + ": No space left on device");
  CHECK(file.waiting_lines() == 1);
  const std::string there = Read(path);
  CHECK(there == all.substr(0, there.size()));
  CHECK(there.back() == '\n');
  for (int i = 0; i < 20; ++i) CHECK(absl::IsResourceExhausted(append(n++)));
  CHECK(file.waiting_lines() == 21);
  CHECK(Read(path) == there);
  disk.Free();
  CHECK(append(n++).ok());
  CHECK(file.waiting_lines() == 0);
  CHECK(Read(path) == all);
}

TEST_CASE("more than may wait loses the oldest, and counts them", "[line_file]") {
  const TempFolder folder;
  SmallDisk disk(folder.path() + "/disk", 64 << 10);
  if (!disk.mounted()) STRATA_SKIP(disk.reason());
  LineFile file(disk.path() + "/lines");
  REQUIRE(file.Append("first").ok());
  disk.Fill();
  const std::string line(LineFile::kMaxWaitingBytes / 4, 'x');
  for (int i = 0; i < 6; ++i) CHECK(!file.Append(std::to_string(i) + line).ok());
  CHECK(file.waiting_lines() == 3);
  CHECK(file.lost_lines() == 3);
}

}  // namespace
}  // namespace strata
