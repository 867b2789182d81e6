// Base images that a copy which joins cannot load: whose they are is told, the next one gets a new
// one, and nobody is sent damaged ones for ever.
#include <catch2/catch.hpp>
#include <cstdint>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/strata/control.pb.h"
#include "server/job/chain_link.h"
#include "server/job/job_folder.h"
#include "server/snapshot/image_files.h"
#include "tests/server/job/bench.h"
#include "tests/server/job/copies.h"

namespace strata::server {
namespace {

// The newest image of the first shard of copy 0.
std::string ImageOf(Copies& copies) {
  JobBench& bench = copies[0];
  const std::string folder = GenerationFolder(bench.folder_.path(), bench.identity(), Generation(1),
                                              bench.plan().server_index);
  const auto images = ListImages(folder);
  REQUIRE(images.ok());
  for (const ImageName& name : *images) {
    if (name.shard == bench.plan().shards[0].id) return folder + "/" + ImageFileName(name);
  }
  return "";
}

void Damage(const std::string& path) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  REQUIRE(file);
  file.seekg(0, std::ios::end);
  const auto middle = file.tellg() / 2;
  file.seekg(middle);
  const char byte = static_cast<char>(file.get() ^ 0x40);
  file.seekp(middle);
  file.put(byte);
}

// Who was being copied to is given up; copy 1 begins under another log id.
void JoinAnew(Copies& copies, int number) {
  copies.Kill(1);
  copies.Tell(0, 2, {0});
  copies.SetLog(1, absl::StrCat("log-anew-", number));
  copies.Open(1, /*joins=*/true);
  copies.Tell(0, 2, {0}, 1);
  copies.Tell(1, 2, {0}, 1);
  copies.Pass();
}

// Copy 0 with five steps and an image of each shard, which copy 1 has loaded.
void MakeImages(Copies& copies) {
  copies.Open(0);
  copies.Tell(0, 1, {0});
  copies.OpenSession(0);
  for (uint64_t step = 1; step <= 5; ++step) copies.Push(0, step);
  copies.Run();
  copies.Open(1, /*joins=*/true);
  copies.Tell(0, 2, {0}, 1);
  copies.Tell(1, 2, {0}, 1);
  copies.Pass();
  REQUIRE(copies.Report(1).ends_size() == 3);
}

std::string ImageTrouble(Copies& copies) {
  const ServerJobReport report = copies.Job(0)->Report();
  for (const Trouble& trouble : report.troubles()) {
    if (trouble.reason() == "ImageDamaged") return trouble.message();
  }
  return "";
}

TEST_CASE("an image that was refused is named and written anew, and the next copy loads that",
          "[chain][images]") {
  Copies copies(2);
  MakeImages(copies);
  const std::string image = ImageOf(copies);
  Damage(image);
  JoinAnew(copies, 1);
  const ServerJobReport lost = copies.Job(1)->Report();
  INFO(lost.message());
  CHECK(lost.state() == ServerJobReport::LOST);
  CHECK(absl::StrContains(lost.message(), "that server s0 sent is damaged"));
  const std::string trouble = ImageTrouble(copies);
  INFO(trouble);
  CHECK(absl::StrContains(trouble, absl::StrCat("server s1, to which the base image ", image)));
  CHECK(absl::StrContains(trouble, "a new one is written"));
  JoinAnew(copies, 2);
  CHECK(copies.Job(1)->Report().state() == ServerJobReport::OPEN);
  REQUIRE(copies.Report(1).ends_size() == 3);
  CHECK(copies.Report(1).ends(0).step() == 5);
  CHECK(ImageTrouble(copies).empty());
}

TEST_CASE("after three images in a row none is sent for a while, and it is told",
          "[chain][images]") {
  Copies copies(2);
  MakeImages(copies);
  for (uint32_t i = 1; i <= ChainLink::kMostRefused; ++i) {
    Damage(ImageOf(copies));
    JoinAnew(copies, static_cast<int>(i));
    CHECK(copies.Job(1)->Report().state() == ServerJobReport::LOST);
  }
  CHECK(absl::StrContains(ImageTrouble(copies), "no other is sent for 5m"));
  JoinAnew(copies, 9);
  CHECK(copies.Job(1)->Report().state() == ServerJobReport::OPEN);
  CHECK(copies.Report(1).ends_size() < 3);
  // Training goes on meanwhile.
  copies.Push(0, 6);
  CHECK(copies.Clock(0) == 6);
  // Who waits, or comes later, gets the next one.
  copies.Pass(ChainLink::kRest);
  copies.Pass();
  CHECK(copies.Job(1)->Report().state() == ServerJobReport::OPEN);
  REQUIRE(copies.Report(1).ends_size() == 3);
  CHECK(copies.Report(1).ends(0).step() == 6);
  CHECK(ImageTrouble(copies).empty());
}

}  // namespace
}  // namespace strata::server
