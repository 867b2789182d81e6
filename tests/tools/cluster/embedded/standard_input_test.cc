#include "tools/cluster/embedded/standard_input.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "tests/worker/data/files/scratch_file.h"

namespace strata {
namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST_CASE("what comes through a pipe lies in the file", "[standard_input]") {
  const ScratchFolder folder;
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::string text;
  for (int i = 0; text.size() < 2'000'000; ++i) text += std::to_string(i) + " ";
  std::thread writer([&] {
    size_t at = 0;
    while (at < text.size()) at += static_cast<size_t>(write(ends[1], &text[at], text.size() - at));
    close(ends[1]);
  });
  const absl::Status s = SpoolInput(ends[0], folder.Path("a"), nullptr);
  writer.join();
  close(ends[0]);
  INFO(s.ToString());
  CHECK(s.ok());
  CHECK(ReadAll(folder.Path("a")) == text);
  // An existing file is not overwritten.
  CHECK(SpoolInput(0, folder.Path("a"), nullptr).message() ==
        "cannot copy standard input to " + folder.Path("a") + " (0 bytes so far): File exists");
}

TEST_CASE("a stop ends the wait for input that does not come", "[standard_input]") {
  const ScratchFolder folder;
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::atomic<bool> stop{true};
  CHECK(absl::IsCancelled(SpoolInput(ends[0], folder.Path("a"), &stop)));
  close(ends[0]);
  close(ends[1]);
}

TEST_CASE("no room for standard input names the place", "[standard_input]") {
  const ScratchFolder folder;
  const int in = open(folder.Write("in", std::string(1'000'000, 'x')).c_str(), O_RDONLY);
  REQUIRE(in >= 0);
  rlimit before;
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit small = {500'000, before.rlim_max};
  std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  const absl::Status s = SpoolInput(in, folder.Path("a"), nullptr);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  close(in);
  CHECK(absl::IsResourceExhausted(s));
  CHECK(s.message() ==
        "cannot copy standard input to " + folder.Path("a") +
            " (500000 bytes so far): File too large; make room there, or set TMPDIR to a folder "
            "with room for all of it");
}

TEST_CASE("a folder is no standard input", "[standard_input]") {
  const ScratchFolder folder;
  const int in = open(folder.Path("").c_str(), O_RDONLY);
  REQUIRE(in >= 0);
  CHECK(SpoolInput(in, folder.Path("a"), nullptr).message() ==
        "standard input cannot be read: Is a directory");
  close(in);
}

}  // namespace
}  // namespace strata
