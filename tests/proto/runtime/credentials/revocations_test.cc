#include "proto/runtime/credentials/revocations.h"

#include <catch2/catch.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/runtime/credentials/checked_lines.h"
#include "tests/proto/runtime/credentials/made_certificates.h"

namespace strata {
namespace {

using testing::CheckText;
using testing::TestTime;

const std::string kOne(32, '1'), kTwo = absl::StrCat("00", std::string(30, 'f'));

Revocations Both() {
  Revocations revocations;
  CHECK(revocations.Add(kOne, {"server/alpha", TestTime()}));
  CHECK(revocations.Add(kTwo,
                        {"reader/b", TestTime() + absl::Seconds(1), TestTime() + absl::Hours(1)}));
  return revocations;
}

TEST_CASE("a list of revoked certificates is its text and back", "[credentials]") {
  const Revocations both = Both();
  CHECK(both.Contains(kOne));
  CHECK(both.Contains(kTwo));
  CHECK_FALSE(both.Contains(std::string(32, '2')));
  CHECK_FALSE(both.Contains(""));
  const auto back = Revocations::Parse(both.Text());
  REQUIRE(back.ok());
  CHECK(back->Text() == both.Text());
  CHECK(back->all().at(kOne).who == "server/alpha");
  CHECK(back->all().at(kOne).until == absl::InfiniteFuture());
  CHECK(back->all().at(kTwo).since == TestTime() + absl::Seconds(1));
  CHECK(back->all().at(kTwo).until == TestTime() + absl::Hours(1));
  CHECK(Revocations::Parse(Revocations().Text())->all().empty());
}

TEST_CASE("what was revoked first stays as it was", "[credentials]") {
  Revocations revocations = Both();
  CHECK_FALSE(revocations.Add(kOne, {"worker/other", TestTime() + absl::Hours(1)}));
  CHECK(revocations.Text() == Both().Text());
}

TEST_CASE("a list that is not whole is refused, and never a shorter one", "[credentials]") {
  const std::string text = Both().Text();
  REQUIRE(Revocations::Parse(text).ok());
  for (size_t bytes = 0; bytes < text.size(); ++bytes) {
    const auto parsed = Revocations::Parse(text.substr(0, bytes));
    INFO(bytes);
    CHECK(absl::IsDataLoss(parsed.status()));
  }
  for (size_t i = 0; i < text.size(); ++i) {
    std::string flipped = text;
    flipped[i] = static_cast<char>(flipped[i] ^ 1);
    INFO(i);
    CHECK(absl::IsDataLoss(Revocations::Parse(flipped).status()));
  }
  CHECK(absl::IsDataLoss(Revocations::Parse(text + "\n").status()));
  CHECK(absl::IsDataLoss(Revocations::Parse(text + text).status()));
  CheckText(Revocations::Parse("").status().message(), {"list of revoked", "ends too early"});
}

TEST_CASE("lists of version 1, without an end of each, are read", "[credentials]") {
  const std::string text =
      absl::StrCat("strata revocations 1\n", kOne, " server/alpha 2026-01-01T00:00:00Z\n");
  const auto read = Revocations::Parse(WithChecksum(text));
  REQUIRE(read.ok());
  REQUIRE(read->all().size() == 1);
  CHECK(read->all().at(kOne).since == TestTime());
  CHECK(read->all().at(kOne).until == absl::InfiniteFuture());
  const std::string three = absl::StrCat("strata revocations 3\n");
  CHECK(absl::IsDataLoss(Revocations::Parse(WithChecksum(three)).status()));
}

TEST_CASE("revoked certificates are listed until a day after they expire", "[credentials]") {
  Revocations both = Both();
  both.DropExpired(TestTime() + absl::Hours(25) - absl::Seconds(1));
  CHECK(both.all().size() == 2);
  both.DropExpired(TestTime() + absl::Hours(25));
  CHECK(both.Contains(kOne));  // nobody knows when
  CHECK_FALSE(both.Contains(kTwo));
}

TEST_CASE("serial numbers are told by their digits", "[credentials]") {
  CHECK(IsSerial(kOne));
  CHECK(IsSerial(std::string(34, 'a')));
  for (const std::string& bad : {std::string(), std::string(31, '1'), std::string(32, 'A'),
                                 std::string(32, ' '), std::string(65, '1')}) {
    CHECK_FALSE(IsSerial(bad));
  }
}

}  // namespace
}  // namespace strata
