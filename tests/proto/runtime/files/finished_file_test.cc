#include "proto/runtime/files/finished_file.h"

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "proto/core/shard_trailer.h"
#include "tests/storage/io/scripted_files.h"
#include "tests/temp_folder.h"

namespace strata {
namespace {

using storage::ScriptedFiles;

// A file of so many bytes, which ends as one of `says` bytes.
void WriteFile(const std::string& path, uint64_t bytes, uint64_t says) {
  std::string text(bytes - kShardTrailerBytes, 'x');
  std::array<uint8_t, kShardTrailerBytes> end;
  EncodeShardTrailer({.footer_offset = 0, .file_bytes = says}, end.data());
  text.append(reinterpret_cast<const char*>(end.data()), end.size());
  std::ofstream(path, std::ios::binary) << text;
}

Manifest Of(const std::string& name, uint64_t bytes) {
  Manifest manifest;
  CheckpointFile* whole = manifest.add_files();
  whole->set_name("whole");
  whole->set_bytes(100);
  CheckpointFile* file = manifest.add_files();
  file->set_name(name);
  file->set_bytes(bytes);
  return manifest;
}

TEST_CASE("a manifest is of files that are there, of their size, and finished", "[manifest]") {
  const TempFolder folder;
  const auto path = [&](const std::string& name) { return folder.path() + "/" + name; };
  const auto why = [&](const std::string& name, uint64_t bytes) {
    const absl::Status s = CheckFinished(folder.path(), Of(name, bytes));
    INFO(s);
    if (s.ok()) return std::string("OK");
    CHECK(absl::IsDataLoss(s));
    CHECK(absl::StrContains(s.message(), path(name)));
    return std::string(s.message());
  };
  WriteFile(path("whole"), 100, 100);
  CHECK(why("whole", 100) == "OK");
  CHECK(absl::StrContains(why("gone", 100), "is not there"));
  CHECK(absl::StrContains(why("whole", 99), "has 100 bytes; the server that wrote it says 99"));
  WriteFile(path("grown"), 120, 100);
  CHECK(absl::StrContains(why("grown", 120), "ends as one of 100 bytes; it has 120"));
  std::ofstream(path("zeros")) << std::string(100, '\0');  // as long as it should be, not written
  CHECK(absl::StrContains(why("zeros", 100), "does not end as a finished file does"));
  WriteFile(path("flipped"), 100, 100);
  std::fstream(path("flipped"), std::ios::in | std::ios::out).seekp(80).put('?');
  CHECK(absl::StrContains(why("flipped", 100), "does not end"));
  std::ofstream(path("short")) << "x";
  CHECK(absl::StrContains(why("short", 1), "is cut off"));
}

TEST_CASE("a file that cannot be read is no damage", "[manifest]") {
  const TempFolder folder;
  WriteFile(folder.path() + "/whole", 100, 100);
  for (const auto call : {ScriptedFiles::Call::kOpen, ScriptedFiles::Call::kRead}) {
    ScriptedFiles files(1);
    files.Fail(call, EIO);
    const absl::Status s = CheckFinished(folder.path(), Of("whole", 100), files);
    INFO(s);
    CHECK_FALSE(s.ok());
    CHECK_FALSE(absl::IsDataLoss(s));
    CHECK(absl::StrContains(s.message(), folder.path() + "/whole"));
  }
}

}  // namespace
}  // namespace strata
