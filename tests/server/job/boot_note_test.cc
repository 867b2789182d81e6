// R17: a copy whose machine was started anew while its log was open is none, unless the log was
// closed before.
#include "server/job/boot_note.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "server/job/opening.h"
#include "tests/server/job/bench.h"
#include "tests/temp_folder.h"

namespace strata::server {
namespace {

TEST_CASE("a log that was open under another start of the machine may lack its end", "[boot]") {
  TempFolder folder;
  const std::string at = folder.path() + "/generation-1";
  std::filesystem::create_directories(at + "/log");
  CHECK(CheckLogEnd(at, "first").ok());  // of an earlier version
  REQUIRE(NoteLogOpen(at, "first").ok());
  CHECK(CheckLogEnd(at, "first").ok());  // a kill leaves what the system has
  const absl::Status lost = CheckLogEnd(at, "second");
  INFO(lost);
  CHECK(absl::IsDataLoss(lost));
  CHECK(absl::StrContains(lost.message(), at));
  CHECK(absl::StrContains(lost.message(), "boot id first, now second"));
  CHECK(CheckLogEnd(at, "").ok());  // not known
  REQUIRE(NoteLogClosed(at, "first").ok());
  CHECK(CheckLogEnd(at, "second").ok());
  REQUIRE(NoteLogOpen(at, "second").ok());
  CHECK(CheckLogEnd(at, "second").ok());
  CHECK(absl::IsDataLoss(CheckLogEnd(at, "third")));
}

TEST_CASE("what cannot be synced is not noted as closed", "[boot]") {
  TempFolder folder;
  const std::string at = folder.path() + "/generation-1";
  std::filesystem::create_directories(at);
  REQUIRE(NoteLogOpen(at, "first").ok());
  CHECK_FALSE(NoteLogClosed(at, "first").ok());  // its log is gone
  CHECK(absl::IsDataLoss(CheckLogEnd(at, "second")));
}

// A copy with three steps in its log, whose process has ended.
struct EndedCopy {
  explicit EndedCopy(bool killed) {
    bench.plan().copy = CopyPlan{"log-a", false};
    bench.plan().boot_id = "first";
    bench.Start();
    const std::string boot = bench.folder_.path() + "/kept";
    note = GenerationFolder(bench.folder_.path(), bench.plan().identity, bench.plan().generation,
                            bench.plan().server_index) +
           "/BOOT";
    REQUIRE(std::filesystem::exists(note));
    std::filesystem::copy_file(note, boot);
    bench.Stop();
    // A kill closes nothing.
    if (killed) std::filesystem::rename(boot, note);
    bench.plan().was_open = true;
  }
  absl::StatusOr<OpenedJob> Open() {
    return OpenJob(bench.plan(), bench.folder_.path(), &bench.timer_);
  }
  JobBench bench{1};
  std::string note;
};

TEST_CASE("a copy that was killed is recovered, and is lost where its machine was started anew",
          "[boot]") {
  EndedCopy copy(/*killed=*/true);
  SECTION("the same start") {
    const auto opened = copy.Open();
    REQUIRE(opened.ok());
    CHECK(opened->recovered);
  }
  SECTION("another") {
    copy.bench.plan().boot_id = "second";
    const auto opened = copy.Open();
    INFO(opened.status());
    REQUIRE(absl::IsDataLoss(opened.status()));
    CHECK(absl::StrContains(opened.status().message(), "the machine was started anew"));
    // A second try says the same: nothing was noted in between.
    CHECK(absl::IsDataLoss(copy.Open().status()));
  }
  SECTION("another, at level synced") {
    copy.bench.plan().boot_id = "second";
    copy.bench.plan().synced = true;
    CHECK(copy.Open().ok());
  }
  SECTION("another, and nobody knows yet that it was open") {
    copy.bench.plan().boot_id = "second";
    copy.bench.plan().was_open = false;
    const auto opened = copy.Open();
    REQUIRE(opened.ok());
    CHECK_FALSE(opened->recovered);
  }
}

TEST_CASE("a copy that was closed outlives another start of its machine", "[boot]") {
  EndedCopy copy(/*killed=*/false);
  copy.bench.plan().boot_id = "second";
  {
    const auto opened = copy.Open();
    REQUIRE(opened.ok());
    CHECK(opened->recovered);
  }
  // It was open again, under the second start, and nobody closed it.
  copy.bench.plan().boot_id = "third";
  CHECK(absl::IsDataLoss(copy.Open().status()));
}

}  // namespace
}  // namespace strata::server
