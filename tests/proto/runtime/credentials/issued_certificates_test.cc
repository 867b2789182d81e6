#include "proto/runtime/credentials/issued_certificates.h"

#include <catch2/catch.hpp>
#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/proto/runtime/credentials/made_certificates.h"

namespace strata {
namespace {

using testing::CheckText;
using testing::TestTime;

const std::string kOne(32, '1'), kTwo(32, '2');

IssuedCertificates Both() {
  IssuedCertificates issued;
  issued.Add(kOne, {"server/alpha", TestTime()});
  issued.Add(kTwo, {"reader/b", TestTime() + absl::Hours(1)});
  return issued;
}

TEST_CASE("a list of issued certificates is its text and back", "[credentials]") {
  const auto back = IssuedCertificates::Parse(Both().Text());
  REQUIRE(back.ok());
  CHECK(back->Text() == Both().Text());
  REQUIRE(back->all().size() == 2);
  CHECK(back->all().at(kOne).who == "server/alpha");
  CHECK(back->all().at(kTwo).until == TestTime() + absl::Hours(1));
  CHECK(IssuedCertificates::Parse(IssuedCertificates().Text())->all().empty());
}

TEST_CASE("issued certificates are known until a day after they expire", "[credentials]") {
  IssuedCertificates issued = Both();
  issued.DropExpired(TestTime() + absl::Hours(24) - absl::Seconds(1));
  CHECK(issued.all().size() == 2);
  issued.DropExpired(TestTime() + absl::Hours(24));
  REQUIRE(issued.all().size() == 1);
  CHECK(issued.all().begin()->first == kTwo);
}

TEST_CASE("a list of issued ones that is not whole is refused", "[credentials]") {
  const std::string text = Both().Text();
  for (size_t bytes = 0; bytes < text.size(); ++bytes) {
    INFO(bytes);
    CHECK(absl::IsDataLoss(IssuedCertificates::Parse(text.substr(0, bytes)).status()));
    std::string flipped = text;
    flipped[bytes] = static_cast<char>(flipped[bytes] ^ 1);
    CHECK(absl::IsDataLoss(IssuedCertificates::Parse(flipped).status()));
  }
  CHECK(absl::IsDataLoss(IssuedCertificates::Parse(absl::StrCat(text, text)).status()));
  CheckText(IssuedCertificates::Parse("").status().message(), {"list of issued", "ends too early"});
}

}  // namespace
}  // namespace strata
