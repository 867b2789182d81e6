#include "proto/runtime/credentials/revoked_file.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "proto/runtime/base/manual_clock.h"
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

TEST_CASE("a list that was replaced is read again, after a while", "[revoked]") {
  const TempFolder folder;
  ManualClock clock;
  const std::string path = folder.path() + "/revoked";
  Write(path, Listed('a'));
  auto file = RevokedFile::Open({.path = path, .clock = &clock});
  REQUIRE(file.ok());
  CHECK((*file)->Text() == Listed('a'));
  Write(path, Listed('b'));
  CHECK((*file)->Text() == Listed('a'));
  clock.Advance(absl::Seconds(10));
  CHECK((*file)->Text() == Listed('b'));
}

TEST_CASE("a list that is damaged or gone is told, and the one before stays", "[revoked]") {
  const TempFolder folder;
  ManualClock clock;
  const std::string path = folder.path() + "/revoked";
  CHECK_FALSE(RevokedFile::Open({.path = path, .clock = &clock}).ok());
  Write(path, Listed('a'));
  std::vector<std::string> problems;
  auto file =
      RevokedFile::Open({.path = path, .clock = &clock, .problem = [&](const absl::Status& why) {
                           problems.emplace_back(why.message());
                         }});
  REQUIRE(file.ok());
  for (const std::string& text : {Listed('b').substr(0, 40), std::string()}) {
    Write(path, text);
    clock.Advance(absl::Seconds(10));
    CHECK((*file)->Text() == Listed('a'));
  }
  REQUIRE(problems.size() == 2);
  CHECK(absl::StrContains(problems[0], "--revoked " + path));
}

}  // namespace
}  // namespace strata
