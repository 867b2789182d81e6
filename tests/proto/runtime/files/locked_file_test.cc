#include "proto/runtime/files/locked_file.h"

#include <fcntl.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "proto/runtime/files/file_system.h"
#include "tests/temp_folder.h"

namespace strata {
namespace {

// Which descriptors are open.
class Counted : public FileSystem {
 public:
  int Open(const std::string& path, int flags) override {
    const int fd = FileSystem::Open(path, flags);
    open += fd >= 0;
    return fd;
  }
  void Close(int fd) override {
    --open;
    FileSystem::Close(fd);
  }
  int open = 0;
};

TEST_CASE("a file is had by one opener at a time", "[files]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/lock";
  Counted files;
  CHECK(OpenLocked(folder.path() + "/none/lock", files) == -ENOENT);
  const int first = OpenLocked(path, files);
  REQUIRE(first >= 0);
  CHECK(OpenLocked(path, files) == -EWOULDBLOCK);
  CHECK(files.open == 1);
  files.Close(first);
  const int second = OpenLocked(path, files);
  CHECK(second >= 0);
  files.Close(second);
}

TEST_CASE("a folder is had by one opener at a time", "[files]") {
  const TempFolder folder;
  Counted files;
  CHECK(LockFolder(folder.path() + "/none", files) == -ENOENT);
  const int first = LockFolder(folder.path(), files);
  REQUIRE(first >= 0);
  CHECK(LockFolder(folder.path(), files) == -EWOULDBLOCK);
  files.Close(first);
  const int second = LockFolder(folder.path(), files);
  CHECK(second >= 0);
  files.Close(second);
  CHECK(files.open == 0);
}

// Opens so that nothing can be locked: flock says EBADF.
class Unlockable : public Counted {
 public:
  int Open(const std::string& path, int) override {
    ++open;
    return ::open(path.c_str(), O_PATH | O_CLOEXEC);
  }
};

TEST_CASE("a folder that cannot be locked is told from one that is", "[files]") {
  const TempFolder folder;
  Unlockable files;
  CHECK(LockFolderSurely(folder.path(), files) == -EBADF);
  CHECK(files.open == 0);
  const int anyhow = LockFolder(folder.path(), files);
  CHECK(anyhow >= 0);
  files.Close(anyhow);
  Counted usual;
  const int first = LockFolderSurely(folder.path(), usual);
  REQUIRE(first >= 0);
  CHECK(LockFolderSurely(folder.path(), usual) == -EWOULDBLOCK);
  usual.Close(first);
}

// What happens at `path` after it was opened, before it is locked.
class Late : public Counted {
 public:
  explicit Late(std::function<void()> then) : then_(std::move(then)) {}
  int Open(const std::string& path, int flags) override {
    const int fd = Counted::Open(path, flags);
    ++opened;
    if (auto then = std::exchange(then_, nullptr)) then();
    return fd;
  }
  int opened = 0;

 private:
  std::function<void()> then_;
};

std::string TextOf(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_CASE("a file to be written anew is that of its name, and empty", "[files]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/part";
  std::ofstream(path) << "of a dead writer\n";
  Counted files;
  const int first = OpenAlone(path, files);
  REQUIRE(first >= 0);
  CHECK(TextOf(path).empty());
  std::ofstream(path) << "of the first\n";
  CHECK(OpenAlone(path, files) == -EWOULDBLOCK);
  CHECK(TextOf(path) == "of the first\n");
  files.Close(first);
  CHECK(OpenAlone(folder.path() + "/none/part", files) == -ENOENT);
  CHECK(files.open == 0);

  // Its writer gave it its final name in between, or took it away: what that names stays.
  for (const bool renamed : {true, false}) {
    std::ofstream(path) << "whole\n";
    Late late([&] {
      REQUIRE((renamed ? files.Rename(path, path + ".final") : files.Remove(path)) == 0);
    });
    const int second = OpenAlone(path, late);
    REQUIRE(second >= 0);
    CHECK(late.opened == 2);
    CHECK(TextOf(path + ".final") == "whole\n");
    CHECK(TextOf(path).empty());
    late.Close(second);
    CHECK(late.open == 0);
  }
}

TEST_CASE("files that become one are written beside each other, and the dead's are taken over",
          "[files]") {
  const TempFolder folder;
  const std::string name = folder.path() + "/f";
  const std::vector<std::string> all = {name + ".tmp", name + ".1.tmp", name + ".2.tmp",
                                        name + ".3.tmp"};
  CHECK(UnfinishedNames(name) == all);
  Counted files;
  std::vector<UnfinishedFile> had;
  for (const std::string& path : all) {
    std::ofstream(path) << "of a dead writer\n";
    had.push_back(OpenUnfinished(name, files));
    CHECK(had.back().path == path);
    REQUIRE(had.back().fd >= 0);
    CHECK(TextOf(path).empty());
    std::ofstream(path) << path;
  }
  CHECK(OpenUnfinished(name, files).fd == -EWOULDBLOCK);
  for (const std::string& path : all) CHECK(TextOf(path) == path);
  // One is whole, another is given up.
  REQUIRE(files.Rename(all[2], name) == 0);
  files.Close(had[2].fd);
  files.Close(had[1].fd);
  for (const size_t i : {1, 2}) {
    const UnfinishedFile next = OpenUnfinished(name, files);
    CHECK(next.path == all[i]);
    REQUIRE(next.fd >= 0);
    had[i] = next;
  }
  CHECK(TextOf(name) == all[2]);
  for (const UnfinishedFile& file : had) files.Close(file.fd);
  CHECK(OpenUnfinished(folder.path() + "/none/f", files).fd == -ENOENT);
  CHECK(files.open == 0);
}

// Where nobody can look at a file that is open.
class Blind : public Counted {
 public:
  int Look(const std::string&, FileInfo&) override { return -EIO; }
};

TEST_CASE("a file that becomes another is written also where it cannot be looked at", "[files]") {
  const TempFolder folder;
  const std::string name = folder.path() + "/f";
  std::ofstream(name + ".tmp") << "of a dead writer\n";
  Blind files;
  const UnfinishedFile file = OpenUnfinished(name, files);
  CHECK(file.path == name + ".tmp");
  REQUIRE(file.fd >= 0);
  CHECK(TextOf(file.path).empty());
  files.Close(file.fd);
  CHECK(OpenUnfinished(folder.path() + "/none/f", files).fd == -ENOENT);
  CHECK(OpenAlone(name, files) == -EIO);
  CHECK(files.open == 0);
}

}  // namespace
}  // namespace strata
