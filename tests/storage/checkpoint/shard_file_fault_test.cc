// What the files of images and checkpoints do when the disk does not do what it should.
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "proto/core/cut_file_name.h"
#include "proto/core/uid.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/folders.h"
#include "proto/runtime/files/leftovers.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/runtime/files/may_pass.h"
#include "proto/runtime/files/plain_file.h"
#include "proto/runtime/files/record_file.h"
#include "proto/strata/checkpoint.pb.h"
#include "storage/checkpoint/shard_file.h"
#include "tests/seed.h"
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

// The files of a process that is killed: after so many calls none does anything any more.
class KilledAfter : public ScriptedFiles {
 public:
  KilledAfter(uint64_t seed, uint64_t calls) : ScriptedFiles(seed), left_(calls) {}

  int Open(const std::string& path, int flags) override {
    return Dead() ? -EIO : ScriptedFiles::Open(path, flags);
  }
  ssize_t Write(int fd, std::span<const iovec> parts, uint64_t offset) override {
    return Dead() ? -EIO : ScriptedFiles::Write(fd, parts, offset);
  }
  int Truncate(int fd, uint64_t bytes) override {
    return Dead() ? -EIO : ScriptedFiles::Truncate(fd, bytes);
  }
  int Sync(int fd, SyncWhat what) override { return Dead() ? -EIO : ScriptedFiles::Sync(fd, what); }
  int Rename(const std::string& from, const std::string& to) override {
    return Dead() ? -EIO : ScriptedFiles::Rename(from, to);
  }
  int Remove(const std::string& path) override {
    return Dead() ? -EIO : ScriptedFiles::Remove(path);
  }

 private:
  bool Dead() {
    if (left_ == 0) return true;
    --left_;
    return false;
  }
  uint64_t left_;
};

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

// The file that `name` says, of that job; false: the disk did not take it.
bool WriteNamed(const std::string& folder, const CutFileName& name, const JobIdentity& job,
                FileSystem& files = FileSystem::Kernel()) {
  ShardFileHeader header = ContentHeader();
  header.identity = job;
  header.generation = name.generation;
  header.cut = name.cut;
  if (!MakeFolders(folder, files).ok()) return false;
  auto writer = ShardFileWriter::Create(folder + "/" + name.text(), header, files);
  return writer.ok() && (*writer)->Finish().ok();
}

CutFileName Named(uint64_t cut, uint64_t generation = 2, uint64_t link = 0) {
  return {.shard = ShardId(3), .generation = Generation(generation), .cut = cut, .link = link};
}

void Touch(const std::string& path, const std::string& text = "x") {
  REQUIRE(WritePlainFile(path, text).ok());
}

// Paths of all files and empty folders.
std::set<std::string> AllIn(const std::string& folder) {
  std::set<std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_directory() || fs::is_empty(entry)) {
      all.insert(fs::relative(entry, folder).string());
    }
  }
  return all;
}

const JobIdentity kJob = ContentHeader().identity;
const JobIdentity kAnother = {kJob.cluster, {1, 2}};
// Of the job in generation 2, which has begun 8 cuts, of which 6 is under way.
CutsOver Over(const std::string& directory) {
  return {.identity = kJob,
          .generation = Generation(2),
          .below = 9,
          .pending = {6},
          .pending_folders = {directory + "/step-000000000040"}};
}

TEST_CASE("what cuts that were given up left is removed, and nothing else",
          "[storage][shard_file][leftovers]") {
  TempFolder folder;
  const std::string c = folder.path();
  const std::string whole = c + "/step-000000000010", part = c + "/step-000000000020";
  std::set<std::string> stays, goes;
  const auto file = [&](std::set<std::string>& to, const std::string& in, const CutFileName& name,
                        const JobIdentity& job = kJob) {
    REQUIRE(WriteNamed(in, name, job));
    to.insert(fs::relative(in + "/" + name.text(), c).string());
  };
  const auto text = [&](std::set<std::string>& to, const std::string& in, const std::string& name,
                        const std::string& contents = "x") {
    REQUIRE(MakeFolders(in).ok());
    Touch(in + "/" + name, contents);
    to.insert(fs::relative(in + "/" + name, c).string());
  };
  const auto begun = [](const CutFileName& name, const JobIdentity& job) {
    return NameWhileWritten(name.text(), job.job);
  };
  file(stays, whole, Named(4));  // the manifest names it
  file(goes, whole, Named(5));
  Manifest manifest;
  manifest.add_files()->set_name(Named(4).text());
  REQUIRE(WriteManifest(whole, manifest).ok());
  stays.insert("step-000000000010/MANIFEST.json");
  for (const std::string& in : {whole, part}) {
    file(goes, in, Named(1, 2, 3));   // cut 3's link to a file of cut 1
    file(stays, in, Named(2, 2, 6));  // that of a cut which is under way
    file(stays, in, Named(2, 2, 9));  // and of one that began since
    file(goes, in, Named(8, 1));      // of an earlier generation
    file(stays, in, Named(7, 3));     // of a later one
    file(stays, in, Named(6));
    file(stays, in, Named(9));
    file(stays, in, Named(3), kAnother);
    text(goes, in, begun(Named(4), kJob));
    text(stays, in, begun(Named(6), kJob));
    text(stays, in, begun(Named(5), kAnother));
    text(stays, in, Named(8).text());           // damaged
    text(stays, in, Named(8).text() + ".tmp");  // nobody writes under such a name
    text(stays, in, "notes");
  }
  file(goes, part, Named(5));
  text(goes, part, "MANIFEST.json.tmp", kJob.job.text());
  text(goes, part, "MANIFEST.json.2.tmp", kJob.job.text());
  text(stays, part, "MANIFEST.json.12.tmp", kJob.job.text());
  text(stays, whole, "MANIFEST.json.tmp", kAnother.job.text());
  REQUIRE(MakeFolders(c + "/step-000000000030").ok());
  REQUIRE(MakeFolders(c + "/step-000000000040").ok());
  REQUIRE(MakeFolders(c + "/empty").ok());
  stays.insert({"step-000000000040", "empty"});
  goes.insert("step-000000000030");
  file(goes, c + "/step-000000000050", Named(5));
  file(stays, c + "/elsewhere", Named(5));
  text(stays, c, "LOCK.1");
  // What a manifest says that cannot be read, nobody knows.
  file(stays, c + "/step-000000000060", Named(5));
  text(stays, c + "/step-000000000060", "MANIFEST.json", "{}");

  std::set<std::string> all = stays;
  all.insert(goes.begin(), goes.end());
  REQUIRE(AllIn(c) == all);
  CutsOver some = Over(c);  // into these alone
  some.folders = {c + "/step-000000000030", c + "/step-000000000040", c + "/step-000000000099"};
  REQUIRE(RemoveLeftovers(c, some).ok());
  all.erase("step-000000000030");
  REQUIRE(AllIn(c) == all);
  const absl::Status s = RemoveLeftovers(c, Over(c));
  CHECK(absl::IsDataLoss(s));  // told, and gone on behind it
  CHECK(AllIn(c) == stays);
  CHECK_FALSE(fs::exists(c + "/step-000000000050"));
  CHECK(RemoveLeftovers(c + "/none", Over(c)).ok());
}

// An error ended it, and nobody does it again: then its files are leftovers, and what it was named.
TEST_CASE("what a removal left is removed with what cuts left",
          "[storage][shard_file][leftovers]") {
  TempFolder folder;
  const std::string c = folder.path(), in = c + "/step-000000000010";
  const bool own = GENERATE(true, false);
  REQUIRE(WriteNamed(in, Named(4), own ? kJob : kAnother));
  Manifest manifest;
  manifest.set_cluster_id(kJob.cluster.text());
  manifest.set_job_uid((own ? kJob : kAnother).job.text());
  manifest.set_generation(1);
  manifest.set_cut(4);
  manifest.add_files()->set_name(Named(4).text());
  REQUIRE(WriteManifest(in, manifest).ok());
  KilledAfter dies(1, 3);  // behind its rename
  RemoveCheckpoint(in, dies).IgnoreError();
  REQUIRE(fs::exists(in + "/" + kRemovedName));
  REQUIRE(RemoveLeftovers(c, Over(c)).ok());
  CHECK(fs::exists(in) == !own);
}

// One file cannot be removed, for good, and another one cannot be looked at.
class Faulty : public FileSystem {
 public:
  explicit Faulty(std::string cannot_be_read = "") : unreadable(std::move(cannot_be_read)) {}
  int Open(const std::string& path, int flags) override {
    return path == unreadable ? -read_error : FileSystem::Open(path, flags);
  }
  int Remove(const std::string& path) override {
    return path == stays ? -EACCES : FileSystem::Remove(path);
  }
  std::string unreadable, stays;
  int read_error = EIO;
};

TEST_CASE("what a removal left is remembered until none of its files is there",
          "[storage][shard_file][leftovers]") {
  TempFolder folder;
  const std::string c = folder.path(), in = c + "/step-000000000010";
  REQUIRE(WriteNamed(in, Named(4), kJob));
  Manifest manifest;
  manifest.set_cluster_id(kJob.cluster.text());
  manifest.set_job_uid(kJob.job.text());
  manifest.set_generation(1);
  manifest.set_cut(4);
  manifest.add_files()->set_name(Named(4).text());
  REQUIRE(WriteManifest(in, manifest).ok());
  KilledAfter dies(1, 3);
  RemoveCheckpoint(in, dies).IgnoreError();
  REQUIRE(fs::exists(in + "/" + kRemovedName));
  const std::string file = in + "/" + Named(4).text();
  SECTION("its file cannot be looked at now") {
    Faulty files(file);
    CHECK(MayPass(RemoveLeftovers(c, Over(c), files)));
    CHECK(fs::exists(in + "/" + kRemovedName));
    CHECK(RemoveLeftovers(c, Over(c)).ok());
    CHECK_FALSE(fs::exists(in));
  }
  SECTION("its file is damaged: only who removes the checkpoint may remove that") {
    Touch(file, "x");
    CHECK(RemoveLeftovers(c, Over(c)).ok());
    CHECK(fs::exists(file));
    REQUIRE(fs::exists(in + "/" + kRemovedName));
    CHECK(RemoveCheckpoint(in).ok());
    CHECK_FALSE(fs::exists(in));
  }
  SECTION("what it was named cannot be looked at now") {
    Faulty files(in + "/" + kRemovedName);
    CHECK(MayPass(RemoveLeftovers(c, Over(c), files)));
    CHECK(RemoveLeftovers(c, Over(c)).ok());
    CHECK_FALSE(fs::exists(in));
  }
}

// Who tries again only where that may help must hear of the disk.
TEST_CASE("a manifest that cannot be read hides no other error",
          "[storage][shard_file][leftovers]") {
  TempFolder folder;
  const std::string c = folder.path();
  const std::string in = c + "/step-000000000010", behind = c + "/step-000000000020";
  for (const std::string& each : {in, behind}) REQUIRE(WriteNamed(each, Named(4), kJob));
  const bool older = GENERATE(false, true);
  CAPTURE(older);
  Manifest manifest;
  manifest.set_format(kManifestFormat - 1);
  REQUIRE(WriteRecordFile(in + "/MANIFEST.json", manifest).ok());
  if (!older) Touch(in + "/MANIFEST.json", "{}");
  const std::string at = behind + "/" + Named(4).text();
  Faulty files(at);
  for (const bool named : {false, true}) {
    CutsOver over = Over(c);
    if (named) over.folders = {in, behind};
    const absl::Status s = RemoveLeftovers(c, over, files);
    INFO(s);
    CHECK(MayPass(s));
    CHECK(absl::StrContains(s.message(), at));
  }
  CHECK(fs::exists(behind + "/" + Named(4).text()));
  const absl::Status s = RemoveLeftovers(c, Over(c));
  CHECK(s.code() == (older ? StatusCode::kUnimplemented : StatusCode::kDataLoss));
  CHECK_FALSE(fs::exists(behind));
  CHECK(fs::exists(in + "/" + Named(4).text()));
}

TEST_CASE("an error that no retry mends hides none that may pass",
          "[storage][shard_file][leftovers]") {
  TempFolder folder;
  const std::string c = folder.path();
  const std::string in = c + "/step-000000000010";
  const std::string other = GENERATE(true, false) ? in : c + "/step-000000000020";
  REQUIRE(WriteNamed(in, Named(3), kJob));
  REQUIRE(WriteNamed(other, Named(4), kJob));
  Faulty files;
  files.stays = in + "/" + Named(3).text();
  files.unreadable = other + "/" + Named(4).text();
  CHECK(MayPass(RemoveLeftovers(c, Over(c), files)));
  files.unreadable.clear();
  CHECK(absl::IsPermissionDenied(RemoveLeftovers(c, Over(c), files)));
}

TEST_CASE("a file that another user does not let be read is nobody's leftover",
          "[storage][shard_file][leftovers]") {
  TempFolder folder;
  const std::string c = folder.path(), in = c + "/step-000000000010";
  REQUIRE(WriteNamed(in, Named(4), kJob));
  Faulty files;
  files.unreadable = in + "/" + Named(4).text();
  files.read_error = EACCES;
  CHECK(RemoveLeftovers(c, Over(c), files).ok());
  CHECK(fs::exists(files.unreadable));
  // Nor what is gone when it is looked at.
  files.read_error = ENOENT;
  CHECK(RemoveLeftovers(c, Over(c), files).ok());
}

// Of the cut that is killed and, later, of its removal. Then the cut comes again, in the same
// folder (bsp) or in another one, and is complete.
TEST_CASE("wherever a cut is killed, nothing of it is left after the next one",
          "[storage][shard_file][leftovers]") {
  const bool same_folder = GENERATE(true, false);
  uint64_t removed = 0;
  bool done = false;
  for (uint64_t calls = 0; !done; ++calls) {
    for (const uint64_t removal : {0, 1, 4}) {
      CAPTURE(same_folder, calls, removal);
      TempFolder folder;
      const std::string c = folder.path() + "/c";
      const auto take = [&](uint64_t cut, FileSystem& files) {
        const std::string in = c + "/" + CheckpointFolderName(same_folder ? 7 : cut);
        Manifest manifest;
        for (const uint32_t shard : {0, 1}) {
          CutFileName name = Named(cut);
          name.shard = ShardId(shard);
          if (!WriteNamed(in, name, kJob, files)) return false;
          manifest.add_files()->set_name(name.text());
        }
        manifest.set_job_uid(kJob.job.text());
        return WriteManifest(in, manifest, files).ok();
      };
      KilledAfter dies(1, calls);
      done = take(1, dies);
      if (done) break;
      CutsOver over = {.identity = kJob, .generation = Generation(2), .below = 2};
      KilledAfter dies_again(1, removal);
      RemoveLeftovers(c, over, dies_again).IgnoreError();
      REQUIRE(take(2, FileSystem::Kernel()));
      const size_t before = AllIn(c).size();
      over.below = 3;
      REQUIRE(RemoveLeftovers(c, over).ok());
      removed += before - AllIn(c).size();
      const std::string in = CheckpointFolderName(same_folder ? 7 : 2) + "/";
      std::set<std::string> expected;
      for (const auto& step : fs::directory_iterator(c)) {
        const auto manifest = ReadManifest(step.path());
        REQUIRE(manifest.ok());  // of cut 1 where the kill came after its name was there
        const std::string at = step.path().filename().string() + "/";
        expected.insert(at + kManifestName);
        for (const CheckpointFile& file : manifest->files()) expected.insert(at + file.name());
      }
      CHECK(expected.contains(in + kManifestName));
      CHECK(AllIn(c) == expected);
    }
  }
  CHECK(removed > 20);
}

}  // namespace
}  // namespace strata::storage
