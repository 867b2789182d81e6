// A checkpoint that spec.model.initFrom names and that is not there: the job waits where it may
// come back, and ends where it was removed.
#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/core/table_spec.h"
#include "proto/runtime/base/timer.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/runtime/files/plain_file.h"
#include "proto/strata/checkpoint.pb.h"
#include "server/job/opening.h"
#include "server/job/plan.h"
#include "tests/server/job/another_checkpoint.h"
#include "tests/temp_folder.h"

namespace strata::server {
namespace {

namespace fs = std::filesystem;

// A directory with the whole checkpoints of steps 5 and 6.
struct Directory {
  Directory() {
    for (const uint64_t step : {5, 6}) {
      const std::string folder = Folder(step);
      WriteAnother(folder, {{.clock = step, .rows = {{1, {1.0f, 0, {1, 1}}}}}}, {table});
      Manifest manifest = *ReadManifest(folder);
      manifest.set_step(step);
      for (CheckpointFile& file : *manifest.mutable_files()) {
        file.set_bytes(fs::file_size(absl::StrCat(folder, "/", file.name())));
      }
      REQUIRE(WriteManifest(folder, manifest).ok());
    }
    REQUIRE(ListCheckpoints(path())->complete.size() == 2);
  }
  std::string path() const { return temp.path() + "/c"; }
  std::string Folder(uint64_t step) const {
    return absl::StrCat(path(), "/", CheckpointFolderName(step));
  }
  // Of a job that starts from `checkpoint`, which was the one of step 5 when it was submitted.
  absl::Status Open(const std::string& checkpoint) const {
    JobPlan plan = PlanFrom(checkpoint, {table});
    plan.restore_plan.mutable_checkpoint()->set_step(5);
    return OpenJob(plan, temp.path() + "/server", Timer::Real()).status();
  }
  void CheckWaits(const std::string& checkpoint) const {
    const absl::Status away = Open(checkpoint);
    INFO(away);
    CHECK(absl::IsUnavailable(away));
    CHECK(absl::StrContains(away.message(),
                            absl::StrCat("checkpoint ", checkpoint, " is not there")));
    CHECK(absl::StrContains(away.message(), "mount its share again"));
  }

  const TempFolder temp;
  const TableSpec table = OneWeight(false);
};

// The process's files while it lives: the kernel's, but that whether `path` is there cannot be
// looked up.
class Unseen : public FileSystem {
 public:
  explicit Unseen(std::string path) : path_(std::move(path)) { FileSystem::ReplaceKernel(this); }
  ~Unseen() override { FileSystem::ReplaceKernel(nullptr); }
  int LookAtLink(const std::string& path, FileInfo& out) override {
    return path == path_ ? -EIO : FileSystem::LookAtLink(path, out);
  }

 private:
  const std::string path_;
};

// Likewise, but that `folder` is on a file system of its own, as where one is mounted when somebody
// needs it.
class AnotherDevice : public FileSystem {
 public:
  explicit AnotherDevice(std::string folder) : folder_(std::move(folder)) {
    FileSystem::ReplaceKernel(this);
  }
  ~AnotherDevice() override { FileSystem::ReplaceKernel(nullptr); }
  int LookAtLink(const std::string& path, FileInfo& out) override {
    const int looked = FileSystem::LookAtLink(path, out);
    if (path == folder_) ++out.device;
    return looked;
  }

 private:
  const std::string folder_;
};

// As by its job, which keeps its newest alone: nobody will bring it back.
TEST_CASE("a checkpoint that spec.model.initFrom names and that was removed ends the job",
          "[restoring]") {
  const Directory directory;
  const std::string checkpoint = directory.Folder(5) + (GENERATE(false, true) ? "/" : "");
  REQUIRE(directory.Open(checkpoint).ok());
  REQUIRE(RemoveCheckpoint(directory.Folder(5)).ok());
  REQUIRE_FALSE(fs::exists(directory.Folder(5)));
  const absl::Status removed = directory.Open(checkpoint);
  INFO(removed);
  CHECK(absl::IsFailedPrecondition(removed));
  CHECK(absl::StrContains(removed.message(), absl::StrCat("spec.model.initFrom: checkpoint ",
                                                          checkpoint, " was removed, ")));
  CHECK(absl::StrContains(removed.message(), "others of its directory are there"));
  // Where no other one is there, its share may be away.
  REQUIRE(RemoveCheckpoint(directory.Folder(6)).ok());
  directory.CheckWaits(checkpoint);
}

// What a removal leaves: the folder, where something else is in it or it was killed.
TEST_CASE("a checkpoint that was removed ends the job though its folder still stands",
          "[restoring]") {
  const Directory directory;
  const std::string checkpoint = directory.Folder(5), other = checkpoint + "/.nfs0001";
  REQUIRE(WritePlainFile(other, "x").ok());
  std::string why = "others of its directory are there";
  SECTION("with a file of somebody else") { REQUIRE(RemoveCheckpoint(checkpoint).ok()); }
  SECTION("with the mark of a removal that was killed, whatever lies beside it") {
    const bool files = GENERATE(false, true), link = GENERATE(false, true);
    fs::rename(absl::StrCat(checkpoint, "/", kManifestName),
               absl::StrCat(checkpoint, "/", kRemovedName));
    if (files) REQUIRE(RemoveCheckpoint(directory.Folder(6)).ok());
    if (link) {
      fs::rename(checkpoint, directory.temp.path() + "/share");
      fs::create_directory_symlink(directory.temp.path() + "/share", checkpoint);
    }
    why = absl::StrCat("its folder holds ", kRemovedName);
  }
  REQUIRE(fs::exists(checkpoint));
  const absl::Status removed = directory.Open(checkpoint);
  INFO(removed);
  CHECK(absl::IsFailedPrecondition(removed));
  CHECK(absl::StrContains(removed.message(), absl::StrCat("spec.model.initFrom: checkpoint ",
                                                          checkpoint, " was removed, and ", why)));
}

TEST_CASE("a job waits for a checkpoint whose manifest cannot be looked up", "[restoring]") {
  const Directory directory;
  const std::string checkpoint = directory.Folder(5);
  REQUIRE(RemoveCheckpoint(checkpoint).ok());
  fs::create_directory(checkpoint);
  REQUIRE(WritePlainFile(checkpoint + "/other", "x").ok());
  const Unseen files(absl::StrCat(checkpoint, "/", kManifestName));
  directory.CheckWaits(checkpoint);
}

TEST_CASE("a job waits for its share though whole checkpoints lie beside it", "[restoring]") {
  const Directory directory;
  const std::string share = directory.temp.path() + "/share";
  const std::string name = GENERATE("step-000000000005", "yesterday");
  CAPTURE(name);
  const std::string checkpoint = absl::StrCat(directory.path(), "/", name);
  fs::rename(directory.Folder(5), share);
  SECTION("where the checkpoint is a link") {
    fs::create_directory_symlink(share, checkpoint);
    REQUIRE(directory.Open(checkpoint).ok());
    fs::rename(share, share + ".away");
    directory.CheckWaits(checkpoint);
    fs::create_directory(share);  // the mount point, with nothing mounted
    directory.CheckWaits(checkpoint);
  }
  SECTION("where it was mounted, and nothing is mounted now") {
    fs::create_directory(checkpoint);
    directory.CheckWaits(checkpoint);
    directory.CheckWaits(checkpoint + "/");
    fs::remove(checkpoint);
    fs::rename(share, checkpoint);
    REQUIRE(directory.Open(checkpoint).ok());
  }
  SECTION("where a share is mounted there") {
    fs::create_directory(checkpoint);
    REQUIRE(WritePlainFile(checkpoint + "/other", "x").ok());
    {
      const AnotherDevice files(checkpoint);
      directory.CheckWaits(checkpoint);
    }
    fs::remove_all(checkpoint);
    fs::rename(share, checkpoint);
    REQUIRE(directory.Open(checkpoint).ok());
  }
}

TEST_CASE("a job waits for a folder whose name is no checkpoint's, which no job removes",
          "[restoring]") {
  const Directory directory;
  const std::string checkpoint = directory.path() + "/yesterday";
  fs::rename(directory.Folder(5), checkpoint);
  REQUIRE(directory.Open(checkpoint).ok());
  fs::remove_all(checkpoint);
  directory.CheckWaits(checkpoint);
}

}  // namespace
}  // namespace strata::server
