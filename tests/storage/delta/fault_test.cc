// What a delta does when the disk does not do what it should.
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/position.h"
#include "storage/delta/file.h"
#include "tests/seed.h"
#include "tests/storage/io/scripted_files.h"
#include "tests/temp_folder.h"

namespace strata::storage {
namespace {

using Call = ScriptedFiles::Call;
using absl::StatusCode;

constexpr uint64_t kRows = 40'000;  // three blocks

DeltaHeader Header() {
  DeltaHeader header;
  header.from = {10, {1, 2}};
  header.to = {20, {3, 4}};
  header.tables = {{TableId(0), TableKind::kHashed, 3, 2}};
  return header;
}

// Every call again until it works; says how often one did not. Nothing where that does not help.
absl::StatusOr<DeltaSummary> Write(const std::string& path, ScriptedFiles& files, int tries,
                                   std::vector<absl::Status>& failures) {
  absl::StatusOr<std::unique_ptr<DeltaWriter>> writer;
  const auto until_done = [&](const auto& call) {
    absl::Status s = call();
    for (int i = 1; !s.ok(); ++i) {
      failures.push_back(s);
      if (i == tries) break;
      s = call();
    }
    return s;
  };
  absl::Status s = until_done([&] {
    writer = DeltaWriter::Create(path, Header(), files);
    return writer.status();
  });
  const std::vector<uint8_t> row(12, 7);
  for (uint64_t p = 0; s.ok() && p < kRows; ++p) {
    s = until_done([&] { return (*writer)->Upsert(TableId(0), Position(p * 1000), row); });
  }
  if (!s.ok()) return s;
  absl::StatusOr<DeltaSummary> done;
  s = until_done([&] { return (done = (*writer)->Finish()).status(); });
  return s.ok() ? done : s;
}

TEST_CASE("what a disk refuses is written by the next call, once", "[delta]") {
  struct Case {
    Call call;
    int error;
    uint64_t nth;  // writes: header, blocks, end
    StatusCode code;
    const char* remedy;
  };
  const Case cases[] = {
      {Call::kOpen, EMFILE, 1, StatusCode::kResourceExhausted, "raise the limit of open files"},
      {Call::kWrite, ENOSPC, 1, StatusCode::kResourceExhausted, "free disk space"},
      {Call::kWrite, ENOSPC, 2, StatusCode::kResourceExhausted, "free disk space"},
      {Call::kWrite, EIO, 3, StatusCode::kUnavailable, "look at the disk"},
      {Call::kWrite, ENOSPC, 4, StatusCode::kResourceExhausted, "free disk space"},
      {Call::kWrite, EIO, 5, StatusCode::kUnavailable, "look at the disk"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.call, c.error, c.nth);
    TempFolder folder;
    ScriptedFiles files(1);
    const std::string path = folder.path() + "/delta";
    files.ShortWrite(50);
    files.Fail(c.call, c.error, c.nth, 2);
    std::vector<absl::Status> failures;
    const auto written = Write(path, files, 3, failures);
    INFO(written.status());
    REQUIRE(written.ok());
    REQUIRE(failures.size() == 2);
    for (const absl::Status& s : failures) {
      INFO(s);
      CHECK(s.code() == c.code);
      CHECK(std::string(s.message()).find(path) != std::string::npos);
      CHECK(std::string(s.message()).find(c.remedy) != std::string::npos);
    }
    CHECK(std::filesystem::file_size(path) == written->bytes);
    const auto read = VerifyDelta(path);
    INFO(read.status());
    REQUIRE(read.ok());
    CHECK(*read == *written);
    CHECK(read->upserts == kRows);
  }
}

TEST_CASE("a delta whose sync failed is never finished, but can be written anew",
          "[delta][seeds]") {
  for (const uint64_t seed : Seeds("delta_power", 1, 4)) {
    CAPTURE(seed);
    TempFolder folder;
    ScriptedFiles files(seed);
    const std::string directory = folder.path() + "/d", after = folder.path() + "/after";
    std::filesystem::create_directory(directory);
    std::filesystem::create_directory(after);
    files.Fail(Call::kSync, EIO);
    std::vector<absl::Status> failures;
    const auto failed = Write(directory + "/delta", files, 3, failures);
    CHECK(absl::IsUnavailable(failed.status()));
    CHECK(failures.size() == 3);
    CHECK(files.calls(Call::kSync) == 1);
    CHECK(std::string(failed.status().message()).find(directory + "/delta") != std::string::npos);
    const auto written = Write(directory + "/delta", files, 1, failures);
    INFO(written.status());
    REQUIRE(written.ok());
    CHECK(failures.size() == 3);
    REQUIRE(SyncFolder(directory, files).ok());
    files.PowerLoss(directory, after);
    const auto read = VerifyDelta(after + "/delta");
    INFO(read.status());
    CHECK(read.ok());
  }
}

}  // namespace
}  // namespace strata::storage
