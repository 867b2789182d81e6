#include "proto/runtime/credentials/revoked_file.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/runtime/credentials/revocations.h"
#include "tests/temp_folder.h"

namespace strata {
namespace {

std::string Listed(char digit) {
  Revocations list;
  list.Add(std::string(32, digit), {"worker/w", absl::UnixEpoch()});
  return list.Text();
}

void Write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::trunc) << text;
}

TEST_CASE("a list that was replaced is read again, after a while, though nobody asks",
          "[revoked]") {
  const TempFolder folder;
  ManualTimer timer;
  const std::string path = folder.path() + "/revoked";
  Write(path, Listed('a'));
  auto file = RevokedFile::Open({.path = path, .timer = &timer});
  REQUIRE(file.ok());
  CHECK((*file)->Text() == Listed('a'));
  Write(path, Listed('b'));
  CHECK((*file)->Text() == Listed('a'));
  timer.AwaitAlarms(1);
  timer.Advance(absl::Seconds(10));
  (*file)->AwaitLooks(2);
  CHECK((*file)->Text() == Listed('b'));
}

TEST_CASE("a list that is damaged or gone is told once, and the one before stays", "[revoked]") {
  const TempFolder folder;
  ManualTimer timer;
  const std::string path = folder.path() + "/revoked";
  CHECK_FALSE(RevokedFile::Open({.path = path, .timer = &timer}).ok());
  Write(path, "damaged");
  CHECK(absl::IsDataLoss(RevokedFile::Open({.path = path, .timer = &timer}).status()));
  Write(path, Listed('a'));
  std::vector<absl::Status> told;
  auto file = RevokedFile::Open(
      {.path = path, .timer = &timer, .changed = [&](const absl::Status& now) {
         told.push_back(now);  // by the file's thread, while this one waits for its looks
       }});
  REQUIRE(file.ok());
  CHECK((*file)->problem().ok());
  uint64_t looks = 1;
  const auto look = [&] {
    timer.AwaitAlarms(1);
    timer.Advance(absl::Seconds(10));
    (*file)->AwaitLooks(++looks);
    CHECK((*file)->Text() == Listed('a'));
  };
  Write(path, Listed('b').substr(0, 40));
  look();
  look();
  CHECK(absl::IsDataLoss((*file)->problem()));
  CHECK(absl::StrContains((*file)->problem().message(), "--revoked " + path));
  Write(path, Listed('a'));
  look();
  CHECK((*file)->problem().ok());
  file->reset();
  REQUIRE(told.size() == 2);
  CHECK(absl::IsDataLoss(told[0]));
  CHECK(told[1].ok());
}

}  // namespace
}  // namespace strata
