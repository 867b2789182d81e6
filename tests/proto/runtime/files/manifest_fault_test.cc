// What the manifest of a checkpoint does when the disk does not do what it should.
#include <sys/types.h>
#include <sys/uio.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "proto/core/checksum.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/runtime/files/plain_file.h"
#include "proto/strata/checkpoint.pb.h"
#include "tests/proto/runtime/files/one_failure.h"
#include "tests/small_disk.h"
#include "tests/storage/io/scripted_files.h"
#include "tests/temp_folder.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using storage::ScriptedFiles;
using Call = ScriptedFiles::Call;
using absl::StatusCode;

Manifest ManifestOf(uint64_t examples) {
  Manifest manifest;
  manifest.set_step(7);
  manifest.set_examples(examples);
  return manifest;
}

// A manifest takes: open, write, sync, rename, then open and sync of its folder and of the folder
// around that.
struct Fault {
  const char* what;
  Call call;
  int error;
  uint64_t nth;
  StatusCode code;
  const char* remedy;
  bool renamed = false;  // the new manifest is there when this fails
};

constexpr char kRoom[] = "free disk space";
constexpr char kDisk[] = "look at the disk";
constexpr char kHandles[] = "raise the limit of open files";

const Fault kFaults[] = {
    {"no handle", Call::kOpen, EMFILE, 1, StatusCode::kResourceExhausted, kHandles},
    {"full", Call::kWrite, ENOSPC, 1, StatusCode::kResourceExhausted, kRoom},
    {"a write fails", Call::kWrite, EIO, 1, StatusCode::kInternal, kDisk},
    {"its sync fails", Call::kSync, EIO, 1, StatusCode::kInternal, kDisk},
    {"full at its sync", Call::kSync, ENOSPC, 1, StatusCode::kResourceExhausted, kRoom},
    {"its rename fails", Call::kRename, EIO, 1, StatusCode::kInternal, kDisk},
    {"no handle for its folder", Call::kOpen, EMFILE, 2, StatusCode::kResourceExhausted, kHandles,
     true},
    {"its folder's sync fails", Call::kSync, EIO, 2, StatusCode::kInternal, kDisk, true},
    {"the outer folder's sync fails", Call::kSync, EIO, 3, StatusCode::kInternal, kDisk, true},
};

TEST_CASE("a manifest that cannot be written leaves the old one, or none", "[manifest]") {
  for (const Fault& fault : kFaults) {
    for (const bool replaces : {false, true}) {
      CAPTURE(fault.what, replaces);
      TempFolder f;
      ScriptedFiles files(1);
      const std::string folder = f.path() + "/step-000000000007", path = folder + "/MANIFEST.json";
      if (replaces) REQUIRE(WriteManifest(folder, ManifestOf(1), files).ok());
      files.Fail(fault.call, fault.error, fault.nth);
      const absl::Status failed = WriteManifest(folder, ManifestOf(2), files);
      INFO(failed);
      CHECK(failed.code() == fault.code);
      const std::string text(failed.message());
      CHECK(text.find(fault.renamed ? f.path() : path) != std::string::npos);
      CHECK(text.find(fault.remedy) != std::string::npos);
      CHECK_FALSE(fs::exists(path + ".tmp"));
      const auto there = ReadManifest(folder);
      if (replaces || fault.renamed) {
        REQUIRE(there.ok());
        CHECK(there->examples() == (fault.renamed ? 2 : 1));
      } else {
        CHECK(absl::IsNotFound(there.status()));
      }
      // What a failed sync was about is written again.
      const uint64_t writes = files.calls(Call::kWrite), syncs = files.calls(Call::kSync);
      REQUIRE(WriteManifest(folder, ManifestOf(3), files).ok());
      CHECK(files.calls(Call::kWrite) == writes + 1);
      CHECK(files.calls(Call::kSync) == syncs + 3);
      fs::create_directory(f.path() + "/after");
      files.PowerLoss(folder, f.path() + "/after");
      const auto survived = ReadManifest(f.path() + "/after");
      INFO(survived.status());
      REQUIRE(survived.ok());
      CHECK(survived->examples() == 3);
    }
  }
}

TEST_CASE("a manifest that is written in parts is whole", "[manifest]") {
  TempFolder f;
  ScriptedFiles files(1);
  files.ShortWrite(5);
  REQUIRE(WriteManifest(f.path() + "/c", ManifestOf(1), files).ok());
  CHECK(ReadManifest(f.path() + "/c")->examples() == 1);
}

// The kernel's files; `then` is called in the midst of the first write, of which it does the rest.
class InTheMidst : public FileSystem {
 public:
  explicit InTheMidst(std::function<void()> then) : then_(std::move(then)) {}
  ssize_t Write(int fd, std::span<const iovec> parts, uint64_t offset) override {
    if (auto then = std::exchange(then_, nullptr)) {
      const iovec half = {parts[0].iov_base, parts[0].iov_len / 2};
      const ssize_t n = FileSystem::Write(fd, {&half, 1}, offset);
      then();
      return n;
    }
    return FileSystem::Write(fd, parts, offset);
  }

 private:
  std::function<void()> then_;
};

// As a scheduler that was stopped, and the one that took over.
TEST_CASE("two that write one file at a time leave what one of them wrote", "[manifest]") {
  const TempFolder f;
  const std::string path = f.path() + "/file", first(5000, '1'), second(3000, '2');
  FileSystem others;
  InTheMidst files([&] {
    REQUIRE(WritePlainFile(path, second, others).ok());
    CHECK(*ReadPlainFile(path, 1 << 20) == second);
  });
  REQUIRE(WritePlainFile(path, first, files).ok());
  CHECK(*ReadPlainFile(path, 1 << 20) == first);
  for (const auto& entry : fs::directory_iterator(f.path())) CHECK(entry.path() == path);
}

TEST_CASE("a checkpoint whose manifest cannot be removed is whole", "[manifest]") {
  TempFolder f;
  ScriptedFiles files(1);
  const std::string folder = f.path() + "/c";
  REQUIRE(WriteManifest(folder, ManifestOf(1), files).ok());
  files.Fail(Call::kRename, EIO);
  CHECK(absl::IsInternal(RemoveCheckpoint(folder, files)));
  CHECK(ReadManifest(folder).ok());
  REQUIRE(RemoveCheckpoint(folder, files).ok());
  CHECK_FALSE(fs::exists(folder));
}

TEST_CASE("a checkpoint is damaged whose files are not as its manifest says, and no other",
          "[manifest]") {
  TempFolder f;
  Manifest manifest = ManifestOf(1);
  manifest.add_files()->set_name("a.strata");
  REQUIRE(WriteManifest(f.path() + "/step-000000000007", manifest).ok());
  const std::string file = f.path() + "/step-000000000007/a.strata";
  const auto list = [&] {
    auto list = ListCheckpoints(f.path());
    REQUIRE(list.ok());
    return *std::move(list);
  };
  REQUIRE(list().damaged.size() == 1);
  CHECK(absl::IsDataLoss(list().damaged[0].error));
  REQUIRE(WritePlainFile(file, "").ok());
  CHECK(list().complete.size() == 1);
  for (const int error : {EIO, ESTALE}) {
    const testing::OneFailure once(testing::OneFailure::Call::kLook, "/a.strata", error);
    const CheckpointList now = list();
    REQUIRE(now.damaged.size() == 1);
    CHECK(absl::IsInternal(now.damaged[0].error));
    CHECK(now.damaged[0].error.message().find(file) != std::string::npos);
    CHECK(list().complete.size() == 1);
  }
  REQUIRE(WritePlainFile(file, "x").ok());
  REQUIRE(list().damaged.size() == 1);
  CHECK(absl::IsDataLoss(list().damaged[0].error));
}

TEST_CASE("a full disk keeps the manifest that is there, and room lets the next one in",
          "[manifest]") {
  TempFolder f;
  SmallDisk disk(f.path() + "/disk", 256 << 10);
  if (!disk.mounted()) {
    WARN("skipped: " << disk.reason());
    return;
  }
  const std::string folder = disk.path() + "/step-000000000007";
  REQUIRE(WriteManifest(folder, ManifestOf(1)).ok());
  disk.Fill();
  for (int i = 0; i < 3; ++i) {
    const absl::Status failed = WriteManifest(folder, ManifestOf(2));
    INFO(failed);
    CHECK(absl::IsResourceExhausted(failed));
    CHECK(std::string(failed.message()).find(kRoom) != std::string::npos);
    CHECK(ReadManifest(folder)->examples() == 1);
  }
  disk.Free();
  REQUIRE(WriteManifest(folder, ManifestOf(3)).ok());
  CHECK(ReadManifest(folder)->examples() == 3);
}

}  // namespace
}  // namespace strata
