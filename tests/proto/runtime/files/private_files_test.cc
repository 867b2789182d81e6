#include "proto/runtime/files/private_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/plain_file.h"
#include "tests/storage/io/scripted_files.h"
#include "tests/temp_folder.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using storage::ScriptedFiles;
using Call = ScriptedFiles::Call;

unsigned ModeOf(const std::string& path) {
  struct stat info;
  REQUIRE(lstat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

// Rights as a careless user's shell has them.
class NoMask {
 public:
  NoMask() : before_(umask(0)) {}
  ~NoMask() { umask(before_); }

 private:
  const mode_t before_;
};

// Notes the rights of each file as it is written to, and in which order names are made durable.
class WatchedFiles : public FileSystem {
 public:
  ssize_t Write(int fd, std::span<const iovec> parts, uint64_t offset) override {
    struct stat info;
    REQUIRE(fstat(fd, &info) == 0);
    modes.push_back(info.st_mode & 07777);
    return FileSystem::Write(fd, parts, offset);
  }
  int Rename(const std::string& from, const std::string& to) override {
    calls.push_back("rename");
    return FileSystem::Rename(from, to);
  }
  int Sync(int fd, SyncWhat what) override {
    struct stat info;
    REQUIRE(fstat(fd, &info) == 0);
    calls.push_back(S_ISDIR(info.st_mode) ? "sync folder" : "sync file");
    return FileSystem::Sync(fd, what);
  }

  std::vector<unsigned> modes;
  std::vector<std::string> calls;
};

TEST_CASE("private files and folders are closed to others from their first byte on", "[files]") {
  const TempFolder folder;
  const NoMask careless;
  WatchedFiles files;
  const std::string home = folder.path() + "/home", file = home + "/key";
  REQUIRE(MakePrivateFolder(home, files).ok());
  CHECK(ModeOf(home) == 0700);
  CHECK(files.calls == std::vector<std::string>{"sync folder"});
  REQUIRE(WritePrivateFile(file, "secret", files).ok());
  CHECK(ModeOf(file) == 0600);
  CHECK(files.modes == std::vector<unsigned>{0600});
  CHECK(files.calls.back() == "sync file");
  CHECK(*ReadPlainFile(file, 100) == "secret");
  CHECK(CheckPrivate(file).ok());
}

TEST_CASE("what is there already stays as it is", "[files]") {
  const TempFolder folder;
  const std::string home = folder.path() + "/home", file = folder.path() + "/file";
  REQUIRE(mkdir(home.c_str(), 0755) == 0);
  REQUIRE(chmod(home.c_str(), 0755) == 0);
  CHECK(MakePrivateFolder(home).ok());
  CHECK(ModeOf(home) == 0755);
  std::ofstream(file) << "first";
  const absl::Status twice = WritePrivateFile(file, "second");
  CHECK(absl::IsFailedPrecondition(twice));
  CHECK(absl::StrContains(twice.message(), file));
  CHECK(*ReadPlainFile(file, 100) == "first");
  const absl::Status no_folder = MakePrivateFolder(file);
  CHECK(absl::IsFailedPrecondition(no_folder));
  CHECK(absl::StrContains(no_folder.message(), file));
  CHECK(absl::IsNotFound(MakePrivateFolder(folder.path() + "/none/home")));
}

TEST_CASE("a private file that cannot be written is not there", "[files]") {
  struct Fault {
    Call call;
    int error;
    absl::StatusCode code;
  };
  for (const Fault& f : {Fault{Call::kWrite, ENOSPC, absl::StatusCode::kResourceExhausted},
                         Fault{Call::kSync, EIO, absl::StatusCode::kInternal},
                         Fault{Call::kOpen, EROFS, absl::StatusCode::kPermissionDenied}}) {
    const TempFolder folder;
    ScriptedFiles files(1);
    files.Fail(f.call, f.error);
    const std::string path = folder.path() + "/key";
    const absl::Status s = WritePrivateFile(path, "secret", files);
    INFO(s.ToString());
    CHECK(s.code() == f.code);
    CHECK(absl::StrContains(s.message(), path));
    CHECK_FALSE(absl::StrContains(s.message(), "secret"));
    CHECK_FALSE(fs::exists(path));
  }
  // A folder whose name may not last is made again by the next try.
  const TempFolder folder;
  ScriptedFiles files(1);
  files.Fail(Call::kSync, EIO);
  CHECK_FALSE(MakePrivateFolder(folder.path() + "/home", files).ok());
  CHECK_FALSE(fs::exists(folder.path() + "/home"));
}

TEST_CASE("a secret that others may read is told, with its mode and the remedy", "[files]") {
  const TempFolder folder;
  const std::string file = folder.path() + "/key";
  std::ofstream(file) << "secret";
  for (const mode_t closed : {0600, 0400}) {
    REQUIRE(chmod(file.c_str(), closed) == 0);
    CHECK(CheckPrivate(file).ok());
  }
  for (const mode_t open : {0644, 0604, 0640, 0440, 0620, 0610, 0602, 0601}) {
    REQUIRE(chmod(file.c_str(), open) == 0);
    const absl::Status s = CheckPrivate(file);
    INFO(s.ToString());
    CHECK(absl::IsPermissionDenied(s));
    CHECK(absl::StrContains(s.message(), "chmod 600 " + file));
  }
  REQUIRE(chmod(file.c_str(), 0644) == 0);
  CHECK(absl::StrContains(CheckPrivate(file).message(), "mode 0644"));
  CHECK(absl::IsNotFound(CheckPrivate(folder.path() + "/none")));
}

TEST_CASE("a link is led elsewhere in one step, and durably", "[files]") {
  const TempFolder folder;
  const std::string link = folder.path() + "/current";
  WatchedFiles files;
  REQUIRE(ReplaceLink("one", link, files).ok());
  CHECK(fs::read_symlink(link) == "one");
  CHECK(files.calls == std::vector<std::string>{"rename", "sync folder"});
  // A killed caller's.
  REQUIRE(symlink("half", (link + ".new").c_str()) == 0);
  REQUIRE(ReplaceLink("two", link, files).ok());
  CHECK(fs::read_symlink(link) == "two");
  CHECK_FALSE(fs::is_symlink(link + ".new"));

  ScriptedFiles failing(1);
  failing.Fail(Call::kRename, ENOSPC);
  const absl::Status full = ReplaceLink("three", link, failing);
  CHECK(absl::IsResourceExhausted(full));
  CHECK(absl::StrContains(full.message(), link));
  CHECK(fs::read_symlink(link) == "two");
  CHECK_FALSE(fs::is_symlink(link + ".new"));
  CHECK(absl::IsNotFound(ReplaceLink("one", folder.path() + "/none/current")));
}

}  // namespace
}  // namespace strata
