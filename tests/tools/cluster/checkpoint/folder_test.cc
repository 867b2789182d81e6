// Names of folders sort as text otherwise than their steps do where one has more than 12 digits.
#include "tools/cluster/checkpoint/folder.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/runtime/files/plain_file.h"
#include "proto/strata/checkpoint.pb.h"
#include "tests/temp_folder.h"
#include "tools/cluster/checkpoint/repair.h"

namespace strata {
namespace {

constexpr uint64_t kStep = 999'999'999'999, kNext = kStep + 1;

// A whole checkpoint without a row.
std::string Make(const TempFolder& temp, uint64_t step) {
  const std::string folder = absl::StrCat(temp.path(), "/", CheckpointFolderName(step));
  Manifest manifest;
  manifest.set_step(step);
  manifest.set_model_hash(ModelHashText({CheckpointFile()}, step));
  REQUIRE(WriteManifest(folder, manifest).ok());
  return folder;
}

std::string MakeDamaged(const TempFolder& temp, uint64_t step) {
  const std::string folder = Make(temp, step);
  REQUIRE(WritePlainFile(absl::StrCat(folder, "/", kManifestName), "x").ok());
  return folder;
}

TEST_CASE("a damaged checkpoint of a smaller step hides none of a greater one", "[checkpoint]") {
  const TempFolder temp;
  const std::string newest = Make(temp, kNext);
  MakeDamaged(temp, kStep);
  const auto found = FindCheckpoint(temp.path());
  INFO(found.status());
  REQUIRE(found.ok());
  CHECK(found->folder == newest);
  const auto report = RepairCheckpoints(temp.path(), RepairMode::kMoveDamaged);
  REQUIRE(report.ok());
  CHECK(report->damaged.empty());
  REQUIRE(report->newest.has_value());
  CHECK(report->newest->directory == newest);
}

TEST_CASE("a damaged checkpoint of a greater step is told, not passed over", "[checkpoint]") {
  const TempFolder temp;
  const std::string whole = Make(temp, kStep), newest = MakeDamaged(temp, kNext);
  const absl::Status damaged = FindCheckpoint(temp.path()).status();
  INFO(damaged);
  CHECK(absl::IsDataLoss(damaged));
  CHECK(absl::StrContains(damaged.message(), newest));
  CHECK(absl::StrContains(damaged.message(), absl::StrCat("the newest whole one is ", whole, " ")));
  const auto report = RepairCheckpoints(temp.path(), RepairMode::kOnlyLook);
  REQUIRE(report.ok());
  REQUIRE(report->damaged.size() == 1);
  CHECK(report->damaged[0].folder == newest);
}

TEST_CASE("checkpoints without a manifest are told in the order of their steps", "[checkpoint]") {
  const TempFolder temp;
  Make(temp, 1);
  std::vector<std::string> without;
  for (const uint64_t step : {kNext, uint64_t{7}, kStep}) {
    std::filesystem::create_directory(absl::StrCat(temp.path(), "/", CheckpointFolderName(step)));
  }
  // None of a checkpoint's.
  for (const char* name : {"/step-mine", "/step-8"}) {
    std::filesystem::create_directory(temp.path() + name);
  }
  for (const uint64_t step : {uint64_t{7}, kStep, kNext}) {
    without.push_back(absl::StrCat(temp.path(), "/", CheckpointFolderName(step)));
  }
  const auto report = RepairCheckpoints(temp.path(), RepairMode::kOnlyLook);
  REQUIRE(report.ok());
  CHECK(report->incomplete == without);
}

}  // namespace
}  // namespace strata
