#include "proto/runtime/files/device_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <string>

#include "absl/status/status.h"

namespace strata {
namespace {

TEST_CASE("what a process has open is written where it stands, a file at its end", "[files]") {
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  DeviceFile file;
  CHECK_FALSE(file.is_open());
  REQUIRE(file.Open("/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(ends[1])).ok());
  CHECK(file.is_open());
  REQUIRE(file.Append("one\n").ok());
  char text[8] = {};  // it is out
  CHECK(read(ends[0], text, sizeof(text)) == 4);
  CHECK(std::string(text) == "one\n");
  REQUIRE(file.Finish().ok());
  CHECK_FALSE(file.is_open());
  // Nobody reads any more; the process's own end stays open.
  std::signal(SIGPIPE, SIG_IGN);
  DeviceFile left;
  REQUIRE(left.Open("/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(ends[1])).ok());
  close(ends[0]);
  CHECK_FALSE(left.reader_left());
  CHECK_FALSE(left.Append("two\n").ok());
  CHECK(left.reader_left());
  close(ends[1]);
}

TEST_CASE("a device that takes nothing is told by its name", "[files]") {
  DeviceFile file;
  REQUIRE(file.Open("/dev/full").ok());
  const absl::Status s = file.Append("x");
  CHECK(absl::IsInternal(s));
  CHECK(s.message() == "cannot write to /dev/full: No space left on device");
  CHECK_FALSE(file.reader_left());
  DeviceFile none;
  CHECK(none.Open("/no/such/device").message() ==
        "cannot write /no/such/device: No such file or directory");
  CHECK_FALSE(none.is_open());
}

}  // namespace
}  // namespace strata
