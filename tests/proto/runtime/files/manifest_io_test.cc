#include "proto/runtime/files/manifest_io.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "proto/core/checksum.h"
#include "proto/core/uid.h"
#include "tests/temp_folder.h"

namespace strata {
namespace {

void Put(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::string Get(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// A checkpoint of two files in directory/step-N.
std::string Make(const std::string& directory, uint64_t step) {
  const std::string folder = directory + "/" + CheckpointFolderName(step);
  Manifest manifest;
  manifest.set_step(step);
  manifest.mutable_job()->mutable_metadata()->set_name("job");
  manifest.mutable_evaluation()->set_auc(0.1 + 0.2);
  for (const std::string name : {"a.seg", "b.seg"}) {
    const std::string text = name + std::to_string(step);
    Put(folder + "/" + name, text);
    CheckpointFile* file = manifest.add_files();
    file->set_name(name);
    file->set_bytes(text.size());
    file->set_crc32c(Crc32c({reinterpret_cast<const uint8_t*>(text.data()), text.size()}));
    file->set_hash_high(~uint64_t{0});
    file->set_hash_low(~uint64_t{0});
  }
  REQUIRE(WriteManifest(folder, manifest).ok());
  return folder;
}

TEST_CASE("a manifest is read as it was written", "[manifest]") {
  TempFolder f;
  const std::string folder = Make(f.path(), 42);
  REQUIRE(folder == f.path() + "/step-000000000042");
  auto manifest = ReadManifest(folder);
  INFO(manifest.status());
  REQUIRE(manifest.ok());
  REQUIRE(manifest->format() == 4);
  REQUIRE(manifest->step() == 42);
  REQUIRE(manifest->evaluation().auc() == 0.1 + 0.2);
  REQUIRE(manifest->files(1).hash_high() == ~uint64_t{0});
  REQUIRE(VerifyCheckpointFiles(folder, *manifest).ok());
  REQUIRE_FALSE(std::filesystem::exists(folder + "/MANIFEST.json.tmp"));
}

TEST_CASE("a flipped bit in any byte of a manifest or of its files is seen", "[manifest]") {
  TempFolder f;
  const std::string folder = Make(f.path(), 1);
  const std::string path = folder + "/MANIFEST.json";
  const std::string whole = Get(path);
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string bad = whole;
    bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
    Put(path, bad);
    const absl::Status status = ReadManifest(folder).status();
    REQUIRE(absl::IsDataLoss(status));
    REQUIRE(std::string(status.message()).find(path) != std::string::npos);
  }
  for (size_t size = 0; size < whole.size(); size += 7) {
    Put(path, whole.substr(0, size));
    REQUIRE(absl::IsDataLoss(ReadManifest(folder).status()));
  }
  Put(path, whole);
  const Manifest manifest = *ReadManifest(folder);
  const std::string segment = Get(folder + "/b.seg");
  for (size_t i = 0; i < segment.size() * 8; ++i) {
    std::string bad = segment;
    bad[i / 8] = static_cast<char>(bad[i / 8] ^ (1 << (i % 8)));
    Put(folder + "/b.seg", bad);
    const absl::Status status = VerifyCheckpointFiles(folder, manifest);
    REQUIRE(absl::IsDataLoss(status));
    REQUIRE(std::string(status.message()).find("b.seg") != std::string::npos);
  }
  std::filesystem::remove(folder + "/b.seg");
  REQUIRE(absl::IsDataLoss(VerifyCheckpointFiles(folder, manifest)));
}

TEST_CASE("a directory lists what is complete, ascending, and what is damaged", "[manifest]") {
  TempFolder f;
  REQUIRE(ListCheckpoints(f.path() + "/none")->empty_directory);
  REQUIRE_FALSE(NewestCheckpoint(f.path() + "/none")->has_value());
  REQUIRE(ListCheckpoints(f.path())->empty_directory);
  for (uint64_t step : {9, 100, 20}) Make(f.path(), step);
  Put(f.path() + "/step-000000000300/a.seg", "no manifest: given up");
  Put(f.path() + "/notes.txt", "");
  Put(Make(f.path(), 200) + "/a.seg", "truncated or longer");
  Put(f.path() + "/step-000000000400/MANIFEST.json", "{}");
  std::filesystem::rename(Make(f.path(), 500), f.path() + "/step-000000000501");
  auto list = ListCheckpoints(f.path());
  REQUIRE(list->complete.size() == 3);
  REQUIRE(list->complete[0].step == 9);
  REQUIRE(list->complete[2].step == 100);
  REQUIRE(list->damaged.size() == 3);
  REQUIRE(list->damaged[0].folder == f.path() + "/step-000000000200");
  REQUIRE_FALSE(list->empty_directory);
  REQUIRE((*NewestCheckpoint(f.path()))->step == 100);
}

// Names of 12 digits and of 13 sort otherwise.
TEST_CASE("a directory's newest checkpoint is the one of the greatest step", "[manifest]") {
  TempFolder f;
  constexpr uint64_t kMost = 999'999'999'999;  // of 12 digits
  for (const uint64_t step : {kMost, kMost + 1}) Make(f.path(), step);
  CHECK((*NewestCheckpoint(f.path()))->step == kMost + 1);
  for (const uint64_t step : {kMost, kMost + 1}) {
    Put(f.path() + "/" + CheckpointFolderName(step) + "/MANIFEST.json", "{}");
  }
  const auto list = ListCheckpoints(f.path());
  REQUIRE(list->damaged.size() == 2);
  CHECK(list->damaged[0].step == kMost);
  CHECK(list->damaged[1].step == kMost + 1);
  CHECK(list->damaged[1].folder == f.path() + "/step-1000000000000");
}

TEST_CASE("removal takes what the manifest names and nothing else", "[manifest]") {
  TempFolder f;
  const std::string folder = Make(f.path(), 1);
  Put(folder + "/mine", "x");
  REQUIRE(RemoveCheckpoint(folder).ok());
  REQUIRE(std::filesystem::exists(folder + "/mine"));
  REQUIRE_FALSE(std::filesystem::exists(folder + "/a.seg"));
  REQUIRE_FALSE(std::filesystem::exists(folder + "/MANIFEST.json"));
  REQUIRE(RemoveCheckpoint(folder).ok());  // no manifest: nothing to do
  REQUIRE(RemoveCheckpoint(Make(f.path(), 2)).ok());
  REQUIRE_FALSE(std::filesystem::exists(f.path() + "/step-000000000002"));
  const std::string damaged = Make(f.path(), 3);
  Put(damaged + "/MANIFEST.json", "{}\n");
  REQUIRE(absl::IsDataLoss(RemoveCheckpoint(damaged)));
  REQUIRE(std::filesystem::exists(damaged + "/a.seg"));
}

TEST_CASE("a manifest cannot name files elsewhere", "[manifest]") {
  TempFolder f;
  for (const char* name : {"", ".", "..", "../x", "/etc/passwd", "MANIFEST.json"}) {
    Manifest manifest;
    manifest.add_files()->set_name(name);
    REQUIRE(absl::IsInvalidArgument(WriteManifest(f.path() + "/c", manifest)));
  }
}

// As the manifest in `folder`, with its checksum.
void PutManifest(const std::string& folder, const std::string& json) {
  const uint32_t crc = Crc32c({reinterpret_cast<const uint8_t*>(json.data()), json.size()});
  char line[32];
  std::snprintf(line, sizeof(line), "\ncrc32c %08x\n", crc);
  Put(folder + "/MANIFEST.json", json + line);
}

TEST_CASE("another format and a path that is no folder are told apart", "[manifest]") {
  TempFolder f;
  REQUIRE(absl::IsNotFound(ReadManifest(f.path()).status()));
  for (const int format : {1, 2, 3, 5}) {
    PutManifest(f.path(), "{\"format\":" + std::to_string(format) + "}");
    const absl::Status s = ReadManifest(f.path()).status();
    REQUIRE(absl::IsUnimplemented(s));
    for (const std::string& part : {f.path() + "/MANIFEST.json", "format " + std::to_string(format),
                                    std::string("format 4")}) {
      REQUIRE(std::string(s.message()).find(part) != std::string::npos);
    }
    REQUIRE((std::string(s.message()).find("train the model anew") != std::string::npos) ==
            (format < 4));
  }
  Put(f.path() + "/file", "");
  REQUIRE_FALSE(WriteManifest(f.path() + "/file/step", Manifest()).ok());
}

// It was told to be damaged, and `checkpoint repair` moved it aside.
TEST_CASE("a manifest of another format may hold fields of other kinds", "[manifest]") {
  TempFolder f;
  const std::string job = R"("job":{"spec":{"model":{"initFrom":"/old"}}},"step":"7"})";
  PutManifest(f.path(), R"({"format":3,)" + job);
  const absl::Status old = ReadManifest(f.path()).status();
  INFO(old);
  CHECK(absl::IsUnimplemented(old));
  CHECK(absl::StrContains(old.message(), "has format 3, which does not say by name"));
  CHECK(absl::StrContains(old.message(), "train the model anew"));
  PutManifest(f.path(), R"({"format":5,)" + job);
  CHECK(absl::IsUnimplemented(ReadManifest(f.path()).status()));
  for (const char* damaged : {R"({"format":4,)", R"({"format":-3,)", R"({"format":"x",)"}) {
    PutManifest(f.path(), damaged + job);
    const absl::Status s = ReadManifest(f.path()).status();
    INFO(s);
    CHECK(absl::IsDataLoss(s));
  }
}

TEST_CASE("a manifest's entry names who wrote its file", "[manifest][identity]") {
  const FileWriter writer = {{{1, 2}, {3, 4}}, Generation(5), 6};
  CheckpointFile file;
  file.set_name("a");
  CHECK(absl::IsDataLoss(WriterOf(file).status()));
  SetWriter(writer, &file);
  CHECK(*WriterOf(file) == writer);
  file.set_job_uid("4");
  CHECK(absl::IsDataLoss(WriterOf(file).status()));
}

TEST_CASE("the model hash is the files' sum and the step, mod 2^128", "[manifest]") {
  CheckpointFile one;
  one.set_hash_low(~uint64_t{0});
  one.set_hash_high(1);
  CheckpointFile two;
  two.set_hash_low(2);
  two.set_hash_high(~uint64_t{0});
  REQUIRE(ModelHashText({}, 255) == "000000000000000000000000000000ff");
  REQUIRE(ModelHashText({one, two}, 0) == "00000000000000010000000000000001");
  REQUIRE(ModelHashText({two, one}, 4) == "00000000000000010000000000000005");
}

}  // namespace
}  // namespace strata
