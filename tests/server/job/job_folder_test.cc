#include "server/job/job_folder.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "proto/runtime/files/file_system.h"
#include "server/job/held_jobs.h"
#include "tests/temp_folder.h"

namespace strata::server {
namespace {

namespace fs = std::filesystem;

constexpr JobIdentity kMine = {{1, 2}, {3, 4}};
constexpr JobIdentity kOther = {{1, 2}, {3, 5}};
constexpr Generation kFirst(1);

JobFolderRecord OwnerOf(const JobIdentity& identity) {
  JobFolderRecord owner;
  owner.set_cluster_id(identity.cluster.text());
  owner.set_job_uid(identity.job.text());
  owner.set_job(1);
  owner.set_name("job");
  return owner;
}

// A job's folder with a generation that was opened, as `inside` says whose it is.
void MakeOpened(const std::string& root, const JobIdentity& identity) {
  REQUIRE(TakeJobFolder(root, OwnerOf(identity)).ok());
  fs::create_directories(GenerationFolder(root, identity, kFirst) + "/log");
  REQUIRE(WriteOpen(root, OwnerOf(identity), kFirst).ok());
}

void CheckNamesBoth(const absl::Status& s, const JobIdentity& a, const JobIdentity& b) {
  INFO(s);
  CHECK(s.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(absl::StrContains(s.message(), a.job.text()));
  CHECK(absl::StrContains(s.message(), b.job.text()));
}

TEST_CASE("a folder's name says whose it is", "[job_folder][identity]") {
  const std::string name = JobFolderName(kMine);
  CHECK(ParseJobFolderName(name) == kMine);
  for (const std::string& other : {std::string("job-1"), name + "0", name.substr(1),
                                   name.substr(0, name.size() - 1), "x" + name}) {
    CHECK_FALSE(ParseJobFolderName(other).has_value());
  }
}

TEST_CASE("a generation was opened by its own job and no other", "[job_folder][identity]") {
  const TempFolder folder;
  CHECK_FALSE(*WasOpened(folder.path(), kMine, kFirst));
  MakeOpened(folder.path(), kMine);
  CHECK(*WasOpened(folder.path(), kMine, kFirst));
  CHECK_FALSE(*WasOpened(folder.path(), kMine, Generation(2)));
  CHECK_FALSE(*WasOpened(folder.path(), kOther, kFirst));
  // Somebody copied it to the other's place.
  fs::rename(JobFolder(folder.path(), kMine), JobFolder(folder.path(), kOther));
  CheckNamesBoth(WasOpened(folder.path(), kOther, kFirst).status(), kMine, kOther);
  CheckNamesBoth(TakeJobFolder(folder.path(), OwnerOf(kOther)).status(), kMine, kOther);
  CheckNamesBoth(RemoveJob(folder.path(), kOther), kMine, kOther);
  // Also where only what is inside tells.
  fs::remove(JobFolder(folder.path(), kOther) + "/JOB");
  CheckNamesBoth(RemoveJob(folder.path(), kOther), kMine, kOther);
  CHECK(fs::exists(GenerationFolder(folder.path(), kOther, kFirst) + "/OPEN"));
}

TEST_CASE("a place that cannot be one is told at once", "[job_folder]") {
  const TempFolder folder;
  std::ofstream(folder.path() + "/file").close();
  fs::create_symlink("loop", folder.path() + "/loop");
  for (const std::string& place : {folder.path() + "/file", folder.path() + "/loop",
                                   folder.path() + "/" + std::string(300, 'x')}) {
    CAPTURE(place);
    const auto opened = WasOpened(place, kMine, kFirst);
    const absl::Status s =
        opened.ok() ? TakeJobFolder(place, OwnerOf(kMine)).status() : opened.status();
    CHECK(s.code() == absl::StatusCode::kFailedPrecondition);
    CHECK(absl::StrContains(s.message(), place));
    CHECK_FALSE(MayHaveJobFolder(place, kMine));
  }
}

TEST_CASE("a folder of the format before is refused by its number", "[job_folder]") {
  const TempFolder folder;
  MakeOpened(folder.path(), kMine);
  const std::string path = GenerationFolder(folder.path(), kMine, kFirst) + "/OPEN";
  std::ofstream(path, std::ios::trunc).close();
  const absl::Status s = WasOpened(folder.path(), kMine, kFirst).status();
  CHECK(s.code() == absl::StatusCode::kUnimplemented);
  for (const std::string& part : {path, std::string("format 1;"), std::string("format 3;")}) {
    CHECK(absl::StrContains(s.message(), part));
  }
}

TEST_CASE("a folder has one user at a time, and is not removed under him", "[job_folder]") {
  const TempFolder folder;
  const auto lock = TakeJobFolder(folder.path(), OwnerOf(kMine));
  REQUIRE(lock.ok());
  CHECK(absl::IsUnavailable(TakeJobFolder(folder.path(), OwnerOf(kMine)).status()));
  CHECK(absl::IsUnavailable(RemoveJob(folder.path(), kMine)));
  CHECK(fs::exists(JobFolder(folder.path(), kMine)));
}

TEST_CASE("a job's folder is removed, whatever a crash left of it", "[job_folder]") {
  const TempFolder folder;
  MakeOpened(folder.path(), kMine);
  MakeOpened(folder.path(), kOther);
  const std::string mine = JobFolder(folder.path(), kMine);
  SECTION("whole") {}
  SECTION("without JOB") { fs::remove(mine + "/JOB"); }
  SECTION("with half of JOB") { fs::resize_file(mine + "/JOB", 20); }
  SECTION("without anything that says whose it is") {
    fs::remove(mine + "/JOB");
    fs::remove_all(mine + "/generation-1");
    fs::remove(mine + "/LOCK");
  }
  CHECK(RemoveJob(folder.path(), kMine).ok());
  CHECK_FALSE(fs::exists(mine));
  CHECK(*WasOpened(folder.path(), kOther, kFirst));
  CHECK(RemoveJob(folder.path(), kMine).ok());  // as often as one likes
}

TEST_CASE("what a server holds is found again, as long as it is there", "[job_folder]") {
  const TempFolder folder;
  HeldJobs held(folder.path());
  CHECK(held.List()->empty());
  const auto put = [&](const JobIdentity& identity) {
    HeldJob job;
    job.set_cluster_id(identity.cluster.text());
    job.set_job_uid(identity.job.text());
    job.set_root(folder.path() + "/root");
    REQUIRE(held.Put(job).ok());
  };
  put(kMine);
  put(kOther);
  CHECK(held.Notes()->size() == 2);  // wherever the folders are
  // Not even the place is there: its file system may not be mounted.
  CHECK(held.List()->size() == 2);
  CHECK(absl::IsUnavailable(HasJobFolder(folder.path() + "/root", kMine).status()));
  fs::create_directory(folder.path() + "/root");
  CHECK(held.List()->empty());  // no folder in it: nothing is held, and the notes go
  CHECK(held.Notes()->empty());
  CHECK(fs::is_empty(folder.path() + "/held"));
  MakeOpened(folder.path() + "/root", kMine);
  put(kMine);
  REQUIRE(held.List()->size() == 1);
  CHECK(held.List()->front().root() == folder.path() + "/root");
  REQUIRE(held.Remove(kMine).ok());
  CHECK(held.List()->empty());
  CHECK(held.Remove(kMine).ok());
}

// What is synced.
class Synced : public FileSystem {
 public:
  Synced() { ReplaceKernel(this); }
  ~Synced() override { ReplaceKernel(nullptr); }
  int Open(const std::string& path, int flags) override {
    const int fd = FileSystem::Open(path, flags);
    if (fd >= 0) open_[fd] = path;
    return fd;
  }
  int Sync(int fd, SyncWhat what) override {
    paths.insert(open_[fd]);
    return FileSystem::Sync(fd, what);
  }
  std::set<std::string> paths;

 private:
  std::map<int, std::string> open_;
};

TEST_CASE("what was noted and opened is found after a loss of power", "[job_folder]") {
  const TempFolder folder;
  Synced files;
  const std::string own = folder.path() + "/disk/own";
  HeldJob job;
  job.set_cluster_id(kMine.cluster.text());
  job.set_job_uid(kMine.job.text());
  REQUIRE(HeldJobs(own).Put(job).ok());
  // Each holds the name of the next.
  for (const std::string& above : {folder.path(), folder.path() + "/disk", own, own + "/held"}) {
    CAPTURE(above);
    CHECK(files.paths.count(above) == 1);
  }
  files.paths.clear();
  const std::string root = folder.path() + "/far/s0";
  MakeOpened(root, kMine);
  for (const std::string& above : {folder.path(), folder.path() + "/far", root,
                                   JobFolder(root, kMine), GenerationFolder(root, kMine, kFirst)}) {
    CAPTURE(above);
    CHECK(files.paths.count(above) == 1);
  }
}

TEST_CASE("a damaged note is kept aside: it may say where files are", "[job_folder]") {
  const TempFolder folder;
  HeldJobs held(folder.path());
  HeldJob job;
  job.set_cluster_id(kMine.cluster.text());
  job.set_job_uid(kMine.job.text());
  job.set_root(folder.path() + "/root");
  const std::string note = folder.path() + "/held/" + kMine.cluster.text() + "-" + kMine.job.text();
  for (const std::string& aside : {note + ".damaged", note + ".damaged-2"}) {
    REQUIRE(held.Put(job).ok());
    const auto whole = fs::file_size(note);
    fs::resize_file(note, whole - 3);
    for (int i = 0; i < 2; ++i) CHECK(held.Notes()->empty());
    CHECK_FALSE(fs::exists(note));
    REQUIRE(fs::exists(aside));
    CHECK(fs::file_size(aside) == whole - 3);
  }
  const auto entries = fs::directory_iterator(folder.path() + "/held");
  CHECK(std::distance(begin(entries), end(entries)) == 2);
  REQUIRE(held.Put(job).ok());
  CHECK(held.List()->size() == 1);  // they are in nobody's way
}

}  // namespace
}  // namespace strata::server
