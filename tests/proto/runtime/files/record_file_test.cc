#include "proto/runtime/files/record_file.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "proto/strata/checkpoint.pb.h"
#include "tests/temp_folder.h"

namespace strata {
namespace {

TEST_CASE("a record comes back as it was written, or is told to be damaged", "[record_file]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/r";
  HeldJob read;
  CHECK(absl::IsNotFound(ReadRecordFile(path, "note", &read)));
  HeldJob written;
  written.set_root("/a \"b\"\n/ü");
  written.set_job(~uint64_t{0});
  REQUIRE(WriteRecordFile(path, written).ok());
  REQUIRE(ReadRecordFile(path, "note", &read).ok());
  CHECK(read.SerializeAsString() == written.SerializeAsString());
  std::ifstream in(path, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string bad = whole;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    for (const std::string& bytes : {bad, whole.substr(0, i)}) {
      std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
      const absl::Status s = ReadRecordFile(path, "note", &read);
      CAPTURE(i);
      CHECK(absl::IsDataLoss(s));
      CHECK(absl::StartsWith(s.message(), "note " + path));
    }
  }
}

TEST_CASE("another format is refused with both numbers", "[record_file]") {
  CHECK(CheckFormat("note", "/p", 3, 3).ok());
  for (const uint64_t found : {2, 4}) {
    const absl::Status s = CheckFormat("note", "/p", found, 3);
    CHECK(s.code() == absl::StatusCode::kUnimplemented);
    for (const std::string& part :
         {std::string("note /p"), "format " + std::to_string(found), std::string("format 3")}) {
      CHECK(absl::StrContains(s.message(), part));
    }
  }
}

}  // namespace
}  // namespace strata
