// What the files of images and checkpoints do when the disk does not do what it should.
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/folders.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/strata/checkpoint.pb.h"
#include "storage/checkpoint/shard_file.h"
#include "tests/seed.h"
#include "tests/storage/checkpoint/killed_after.h"
#include "tests/storage/checkpoint/shard_content.h"
#include "tests/storage/io/scripted_files.h"
#include "tests/temp_folder.h"

namespace strata::storage {
namespace {

namespace fs = std::filesystem;
using Call = ScriptedFiles::Call;
using absl::StatusCode;

// A file takes: open, open around the page cache, writes, truncate, sync, rename, open and sync of
// its folder.
struct Fault {
  const char* what;
  Call call;
  int error;
  uint64_t nth;
  StatusCode code;
  const char* remedy;
  bool renamed = false;  // the new file has its name when this fails
};

constexpr char kRoom[] = "free disk space";
constexpr char kDisk[] = "look at the disk";
constexpr char kHandles[] = "raise the limit of open files";

const Fault kFaults[] = {
    {"no handle", Call::kOpen, EMFILE, 1, StatusCode::kResourceExhausted, kHandles},
    {"no room for a name", Call::kOpen, ENOSPC, 1, StatusCode::kResourceExhausted, kRoom},
    {"full at once", Call::kWrite, ENOSPC, 1, StatusCode::kResourceExhausted, kRoom},
    {"full later", Call::kWrite, ENOSPC, 2, StatusCode::kResourceExhausted, kRoom},
    {"a write fails", Call::kWrite, EIO, 1, StatusCode::kUnavailable, kDisk},
    {"the last write fails", Call::kWrite, EIO, 2, StatusCode::kUnavailable, kDisk},
    {"its end fails", Call::kTruncate, EIO, 1, StatusCode::kUnavailable, kDisk},
    {"its sync fails", Call::kSync, EIO, 1, StatusCode::kUnavailable, kDisk},
    {"full at its sync", Call::kSync, ENOSPC, 1, StatusCode::kResourceExhausted, kRoom},
    {"its rename fails", Call::kRename, EIO, 1, StatusCode::kUnavailable, kDisk},
    {"no room for its name", Call::kRename, ENOSPC, 1, StatusCode::kResourceExhausted, kRoom},
    {"no handle for its folder", Call::kOpen, EMFILE, 3, StatusCode::kResourceExhausted, kHandles,
     true},
    {"its folder's sync fails", Call::kSync, EIO, 2, StatusCode::kUnavailable, kDisk, true},
};

Content MustRead(const std::string& path) {
  Content content;
  const absl::Status s = ReadContent(path, kAllPartitions, content);
  INFO(s);
  REQUIRE(s.ok());
  return content;
}

// More than the file's staging memory: two writes.
const Content& New() {
  static const Content& content = *new Content(MakeContent(15'000, 1));
  return content;
}

TEST_CASE("a file that cannot be written leaves the old one, and the next try is a whole one",
          "[storage][shard_file]") {
  const Content old = MakeContent(10, 2);
  for (const Fault& fault : kFaults) {
    for (const bool replaces : {false, true}) {
      CAPTURE(fault.what, replaces);
      TempFolder folder;
      ScriptedFiles files(1);
      const std::string directory = folder.path() + "/d", path = directory + "/a.shard";
      fs::create_directory(directory);
      if (replaces) REQUIRE(WriteContent(path, old, files).ok());
      files.Fail(fault.call, fault.error, fault.nth);
      const absl::Status failed = WriteContent(path, New(), files).status();
      INFO(failed);
      CHECK(failed.code() == fault.code);
      const std::string text(failed.message());
      CHECK(text.find(fault.renamed ? directory : path) != std::string::npos);
      CHECK(text.find(fault.remedy) != std::string::npos);
      for (const auto& left : fs::directory_iterator(directory)) CHECK(left.path() == path);
      CHECK(fs::exists(path) == (replaces || fault.renamed));
      if (fs::exists(path)) CHECK(MustRead(path) == (fault.renamed ? New() : old));
      // What a failed sync was about is written again, into another file.
      const uint64_t writes = files.calls(Call::kWrite), syncs = files.calls(Call::kSync);
      REQUIRE(WriteContent(path, New(), files).ok());
      CHECK(files.calls(Call::kWrite) == writes + 2);
      CHECK(files.calls(Call::kSync) == syncs + 2);
      CHECK(MustRead(path) == New());
      fs::create_directory(folder.path() + "/after");
      files.PowerLoss(directory, folder.path() + "/after");
      CHECK(MustRead(folder.path() + "/after/a.shard") == New());
    }
  }
}

TEST_CASE("a write that takes a part only is gone on with", "[storage][shard_file]") {
  TempFolder folder;
  ScriptedFiles files(1);
  files.ShortWrite(12345);
  REQUIRE(WriteContent(folder.path() + "/a.shard", New(), files).ok());
  CHECK(MustRead(folder.path() + "/a.shard") == New());
}

// Two files and the manifest.
bool WriteCheckpoint(const std::string& folder, FileSystem& files) {
  Manifest manifest;
  for (const char* name : {"a.shard", "b.shard"}) {
    const auto written = WriteContent(folder + "/" + name, MakeContent(20, name[0]), files);
    if (!written.ok()) return false;
    CheckpointFile* file = manifest.add_files();
    file->set_name(name);
    file->set_bytes(written->bytes);
    file->set_crc32c(written->crc32c);
  }
  return WriteManifest(folder, manifest, files).ok();
}

TEST_CASE("wherever the power fails, a folder with a manifest is a whole checkpoint",
          "[storage][shard_file][seeds]") {
  const std::vector<uint64_t> seeds = Seeds("checkpoint_power", 1, 12);
  std::set<bool> seen;  // with a manifest although the writer did not say so
  uint64_t calls = 0;
  for (bool done = false; !done; ++calls) {
    REQUIRE(calls < 100);
    for (const uint64_t seed : seeds) {
      CAPTURE(calls, seed);
      TempFolder folder;
      const std::string directory = folder.path() + "/step", after = folder.path() + "/after";
      fs::create_directory(directory);
      fs::create_directory(after);
      KilledAfter files(seed, calls);
      done = WriteCheckpoint(directory, files);
      files.PowerLoss(directory, after);
      const auto manifest = ReadManifest(after);
      if (!done) seen.insert(manifest.ok());
      if (absl::IsNotFound(manifest.status())) {
        REQUIRE_FALSE(done);
        continue;
      }
      INFO(manifest.status());
      REQUIRE(manifest.ok());
      const absl::Status whole = VerifyCheckpointFiles(after, *manifest);
      INFO(whole);
      REQUIRE(whole.ok());
    }
  }
  if (!SeedsAreGiven()) CHECK(seen.size() == 2);
  CHECK(calls > 20);
}

TEST_CASE("wherever the removal of a checkpoint is killed, the next one leaves nothing",
          "[storage][shard_file]") {
  bool done = false;
  uint64_t calls = 0;
  for (; !done; ++calls) {
    REQUIRE(calls < 20);
    CAPTURE(calls);
    TempFolder folder;
    const std::string in = folder.path() + "/" + CheckpointFolderName(0);
    fs::create_directory(in);
    REQUIRE(WriteCheckpoint(in, FileSystem::Kernel()));
    KilledAfter dies(1, calls);
    done = RemoveCheckpoint(in, dies).ok();
    // Half of it is no checkpoint, and no damaged one.
    const auto list = ListCheckpoints(folder.path());
    REQUIRE(list.ok());
    CHECK(list->damaged.empty());
    if (!list->complete.empty()) CHECK(VerifyCheckpointFiles(in, *ReadManifest(in)).ok());
    CHECK(RemoveCheckpoint(in).ok());
    CHECK_FALSE(fs::exists(in));
  }
  CHECK(calls > 4);
}

}  // namespace
}  // namespace strata::storage
