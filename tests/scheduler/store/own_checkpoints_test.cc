// Which checkpoints of its directory are a job's own, and what is said of those that it cannot go
// on from.
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/core/uid.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/runtime/files/may_pass.h"
#include "proto/runtime/files/plain_file.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/control.pb.h"
#include "scheduler/state/state.pb.h"
#include "scheduler/store/submission.h"
#include "tests/proto/runtime/files/one_failure.h"
#include "tests/proto/runtime/files/other_format.h"
#include "tests/scheduler/state/saved_jobs.h"
#include "tests/scheduler/store/written_checkpoints.h"
#include "tests/temp_folder.h"

namespace strata::scheduler {
namespace {

using testing::OneFailure;

constexpr JobIdentity kAnother = {{0, 1}, {0, 7}};

OwnCheckpoints Found(const TempFolder& folder, const JobIdentity& identity = kIdentity,
                     const std::vector<RemovalRecord>& replaced = {}) {
  auto own = FindOwnCheckpoints(folder.path(), identity, replaced);
  INFO(own.status());
  REQUIRE(own.ok());
  return *std::move(own);
}

TEST_CASE("a job's own checkpoints are all found, or it is said why not",
          "[scheduler][submission]") {
  const TempFolder temp;
  WriteCheckpoints(temp.path(), kIdentity);
  const bool manifest = GENERATE(true, false);
  {
    const OneFailure files(manifest ? OneFailure::Call::kOpen : OneFailure::Call::kLook,
                           manifest ? kNewestManifest : kNewestFile, EIO);
    const absl::Status failed = FindOwnCheckpoints(temp.path(), kIdentity).status();
    CHECK(files.over());
    CHECK(MayPass(failed));
    CHECK(Found(temp).complete.size() == 2);
  }
  // What is damaged stays so.
  REQUIRE(WritePlainFile(temp.path() + kNewestManifest, "x").ok());
  CHECK(Found(temp).complete.size() == 1);
  CHECK(FindOwnCheckpoints(temp.path() + "/none", kIdentity)->complete.empty());
  CHECK_FALSE(FindOwnCheckpoints(temp.path() + kNewestManifest, kIdentity).ok());
}

TEST_CASE("an adopted job's data are those of its own newest checkpoint, else of the newest there",
          "[scheduler][submission][daily]") {
  const TempFolder temp;
  WriteCheckpoints(temp.path(), kIdentity);
  for (const uint64_t step : {3, 4}) {
    const std::string folder = temp.path() + "/" + CheckpointFolderName(step);
    Manifest manifest = *ReadManifest(folder);
    manifest.mutable_schema()->mutable_data()->set_first_file(static_cast<uint32_t>(step));
    if (step == 4) manifest.set_job_uid(kIdentity.cluster.text());
    REQUIRE(WriteManifest(folder, manifest).ok());
  }
  const OwnCheckpoints own = Found(temp);
  CHECK(own.complete.size() == 1);
  CHECK(own.data.first_file() == 3);
  const OwnCheckpoints none = Found(temp, kAnother);
  CHECK(none.complete.empty());
  CHECK(none.data.first_file() == 4);
}

TEST_CASE("a job hears of damaged checkpoints that are newer than its own",
          "[scheduler][submission]") {
  const TempFolder temp;
  WriteCheckpoints(temp.path(), kIdentity);
  CHECK(Found(temp).damaged.empty());
  SECTION("of its manifest or of its files") {
    const bool manifest = GENERATE(true, false);
    if (manifest) {
      REQUIRE(WritePlainFile(temp.path() + kNewestManifest, "x").ok());
    } else {
      REQUIRE(std::filesystem::remove(temp.path() + kNewestFile));
    }
    const OwnCheckpoints own = Found(temp);
    INFO(own.damaged);
    CHECK(own.complete.size() == 1);
    CHECK(absl::StartsWith(own.damaged, absl::StrCat(temp.path(), kNewest, " (")));
    CHECK(absl::StrContains(own.damaged, temp.path() + (manifest ? kNewestManifest : kNewestFile)));
    CHECK(own.other_format.ok());
  }
  SECTION("not of older ones") {
    REQUIRE(std::filesystem::remove(temp.path() + kOlder + "/a.strata"));
    CHECK(Found(temp).complete.size() == 1);
    CHECK(Found(temp).damaged.empty());
  }
  SECTION("and of all where it has none: nobody can say whose they are") {
    REQUIRE(std::filesystem::remove(temp.path() + kOlder + "/a.strata"));
    const OwnCheckpoints none = Found(temp, kAnother);
    CHECK(none.complete.empty());
    CHECK(absl::StartsWith(none.damaged, absl::StrCat(temp.path(), kOlder, " (")));
  }
}

// The checkpoint in `from` of the test's directory, as one of `step`.
void MoveToStep(const TempFolder& temp, const std::string& from, uint64_t step) {
  Manifest manifest = *ReadManifest(temp.path() + from);
  manifest.set_step(step);
  const std::string to = absl::StrCat(temp.path(), "/", CheckpointFolderName(step));
  std::filesystem::rename(temp.path() + from, to);
  REQUIRE(WriteManifest(to, manifest).ok());
}

// Names of folders sort otherwise than their steps do where one has more than 12 digits.
TEST_CASE("which checkpoint is newer, steps say", "[scheduler][submission]") {
  constexpr uint64_t kMost = 999'999'999'999;  // of 12 digits
  const TempFolder temp;
  WriteCheckpoints(temp.path(), kIdentity);
  const bool newer = GENERATE(true, false);
  MoveToStep(temp, kOlder, newer ? kMost : kMost + 1);
  MoveToStep(temp, kNewest, newer ? kMost + 1 : kMost);
  const std::string damaged = temp.path() + "/" + CheckpointFolderName(newer ? kMost + 1 : kMost);
  REQUIRE(std::filesystem::remove(damaged + "/a.strata"));
  const OwnCheckpoints own = Found(temp);
  CHECK(own.complete.size() == 1);
  CHECK(absl::StartsWith(own.damaged, damaged + " (") == newer);
  CHECK(own.damaged.empty() == !newer);
}

TEST_CASE("a job does not go on from an older checkpoint than one of another format",
          "[scheduler][submission]") {
  const TempFolder temp;
  WriteCheckpoints(temp.path(), kIdentity);
  SECTION("that is newer than its own") {
    testing::PutOtherFormat(temp.path() + kNewest);
    const absl::Status refused = Found(temp).other_format;
    INFO(refused);
    CHECK(absl::IsFailedPrecondition(refused));
    for (const std::string& part :
         {absl::StrCat("spec.checkpoint.directory ", temp.path()), temp.path() + kNewestManifest,
          absl::StrCat("has format ", testing::kOtherFormat, "; this program reads format ",
                       kManifestFormat),
          absl::StrCat("; or move ", temp.path(), kNewest, " away, to go on from ", temp.path(),
                       kOlder)}) {
      CAPTURE(part);
      CHECK(absl::StrContains(refused.message(), part));
    }
    std::filesystem::rename(temp.path() + kNewest, temp.path() + "/away");
    CHECK(Found(temp).other_format.ok());
  }
  SECTION("but may pass over an older one") {
    testing::PutOtherFormat(temp.path() + kOlder);
    CHECK(Found(temp).other_format.ok());
    CHECK(Found(temp).damaged.empty());
  }
  SECTION("that may be its only one") {
    testing::PutOtherFormat(temp.path() + kOlder);
    const absl::Status refused = Found(temp, kAnother).other_format;
    INFO(refused);
    CHECK(absl::StrContains(refused.message(), absl::StrCat("; or move ", temp.path(), kOlder,
                                                            " away, to go on without it")));
    CHECK(absl::StrContains(Found(temp, kAnother).damaged, temp.path() + kOlder));
  }
}

TEST_CASE("nothing is said of what lay there before a job that overwrites",
          "[scheduler][submission]") {
  const TempFolder temp;
  WriteCheckpoints(temp.path(), kAnother);
  const std::string older = temp.path() + kOlder, newest = temp.path() + kNewest;
  const bool format = GENERATE(true, false), files = GENERATE(true, false);
  CAPTURE(format, files);
  if (format) {
    testing::PutOtherFormat(newest);
  } else {
    REQUIRE(WritePlainFile(temp.path() + kNewestManifest, "x").ok());
  }
  if (files) REQUIRE(std::filesystem::remove(older + "/a.strata"));
  SubmitRequest request;
  *request.mutable_job() = JobOf("adagrad", "adagrad", "adam");
  request.mutable_job()->mutable_spec()->mutable_checkpoint()->set_directory(temp.path());
  request.set_overwrite(true);
  const auto found = PrepareCheckpoints(request);
  INFO(found.status());
  REQUIRE(found.ok());
  REQUIRE(found->replaced.size() == 2);
  const OwnCheckpoints none = Found(temp, kIdentity, found->replaced);
  CHECK(none.complete.empty());
  CHECK(none.damaged.empty());
  CHECK(none.other_format.ok());
  // What has taken its place since may be the job's own.
  WriteCheckpoints(temp.path(), kIdentity);
  std::string damaged = newest;
  if (format) {
    REQUIRE(std::filesystem::remove(temp.path() + kNewestFile));
  } else if (files) {
    damaged = older;
    REQUIRE(std::filesystem::remove(older + "/a.strata"));
    REQUIRE(WritePlainFile(temp.path() + kNewestManifest, "x").ok());
  } else {
    damaged = older;
    testing::PutOtherFormat(older);
    REQUIRE(WritePlainFile(temp.path() + kNewestManifest, "x").ok());
  }
  const OwnCheckpoints own = Found(temp, kIdentity, found->replaced);
  INFO(own.damaged);
  CHECK(own.complete.size() == (format ? 1 : 0));
  CHECK(absl::StartsWith(own.damaged, damaged + " ("));
  CHECK(own.other_format.ok() == (format || files));
}

}  // namespace
}  // namespace strata::scheduler
