#include "proto/runtime/files/folders.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/may_pass.h"
#include "proto/runtime/files/plain_file.h"
#include "tests/temp_folder.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

void Touch(const std::string& path) { std::ofstream(path) << "x"; }

TEST_CASE("what is neither a file nor a folder is refused at once", "[files]") {
  const TempFolder folder;
  const std::string pipe = folder.path() + "/pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  FileSystem& files = FileSystem::Kernel();
  for (const int flags : {O_RDONLY, O_WRONLY, O_RDWR, O_WRONLY | O_CREAT | O_TRUNC}) {
    CHECK(files.Open(pipe, flags) == -ESPIPE);
    CHECK(files.Open("/dev/null", flags) == -ESPIPE);
  }
  const absl::Status said = ErrnoStatus(ESPIPE, "open", pipe);
  CHECK(absl::IsFailedPrecondition(said));
  CHECK(said.message() ==
        "cannot open " + pipe + ": Illegal seek; it is a pipe or a device: name a file");
}

TEST_CASE("which errors of files may pass", "[files]") {
  const std::vector<int> pass = {ENOSPC, EDQUOT, EIO,   ESTALE, ETIMEDOUT, EMFILE,    ENFILE,
                                 ENOMEM, ENOENT, EBUSY, ENODEV, EAGAIN,    EHOSTDOWN, EREMOTEIO};
  const std::vector<int> stay = {EACCES,        EPERM, EROFS,  ENOTDIR, EISDIR,
                                 ENAMETOOLONG,  ELOOP, EEXIST, EINVAL,  ESPIPE,
                                 kOutsideRoots, ENXIO, EFBIG,  ENOSYS,  EOPNOTSUPP};
  for (const int error : pass) {
    CAPTURE(error);
    CHECK(MayPass(ErrnoStatus(error, "write", "/c").code()));
    CHECK(MayPass(PlainFileError(error, "write", "/c").code()));
  }
  for (const int error : stay) {
    CAPTURE(error);
    CHECK_FALSE(MayPass(ErrnoStatus(error, "write", "/c").code()));
    CHECK_FALSE(MayPass(PlainFileError(error, "write", "/c").code()));
  }
  CHECK(ErrnoStatus(EFBIG, "write", "/c").message().find("ulimit -f") != std::string::npos);
  for (const int error : {ENOSYS, EOPNOTSUPP}) {
    CHECK(ErrnoStatus(error, "write", "/c").message().find("on another file system") !=
          std::string::npos);
  }
  for (const auto code : {absl::StatusCode::kOk, absl::StatusCode::kDataLoss,
                          absl::StatusCode::kUnimplemented, absl::StatusCode(999)}) {
    CHECK_FALSE(MayPass(code));
  }
}

TEST_CASE("an open file blocks, as its reads and writes expect", "[files]") {
  const TempFolder folder;
  const int fd = FileSystem::Kernel().Open(folder.path() + "/f", O_RDWR | O_CREAT | O_APPEND);
  REQUIRE(fd >= 0);
  const int flags = fcntl(fd, F_GETFL);
  CHECK((flags & O_NONBLOCK) == 0);
  CHECK((flags & O_APPEND) != 0);
  CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
  FileSystem::Kernel().Close(fd);
}

TEST_CASE("a path with a zero in it is no other path", "[files]") {
  const TempFolder folder;
  Touch(folder.path() + "/f");
  const std::string path = folder.path() + "/f" + std::string("\0x", 2);
  FileSystem& files = FileSystem::Kernel();
  FileInfo info;
  std::string target;
  std::vector<std::string> names;
  const std::string good = folder.path() + "/g";
  for (const int result :
       {files.Open(path, O_RDONLY), files.Rename(path, good), files.Rename(good, path),
        files.Link(path, good), files.Link(good, path), files.Remove(path), files.Look(path, info),
        files.LookAtLink(path, info), files.ReadLink(path, target), files.MayChange(path),
        files.MakeFolder(path), files.RemoveFolder(path), files.List(path, names)}) {
    CHECK(result == -EINVAL);
  }
  CHECK(fs::exists(folder.path() + "/f"));
}

TEST_CASE("errors that no waiting mends say so", "[files]") {
  for (const int error : {ENAMETOOLONG, ELOOP, ENOTDIR, EISDIR, EEXIST, ENXIO, EINVAL}) {
    const absl::Status s = ErrnoStatus(error, "open", "/p");
    CHECK(absl::IsFailedPrecondition(s));
    CHECK(s.message().find("; name another place") != absl::string_view::npos);
  }
  CHECK(absl::IsUnavailable(ErrnoStatus(EIO, "open", "/p")));
  CHECK(absl::IsResourceExhausted(ErrnoStatus(EMFILE, "open", "/p")));
}

TEST_CASE("folders are made with those above them", "[folders]") {
  const TempFolder folder;
  const std::string& base = folder.path();
  Touch(base + "/file");
  fs::create_symlink(base + "/nowhere", base + "/dangling");
  fs::create_symlink(base + "/loop", base + "/loop");
  fs::create_directory(base + "/there");
  fs::create_symlink(base + "/there", base + "/link");
  const std::string many(300, 'x');
  const struct {
    std::string path;
    int result;
  } cases[] = {{base + "/a/b/c", 0},
               {base + "/a/b/c", 0},  // again
               {base + "/d//e///", 0},
               {base + "/link/f", 0},
               {"/", 0},
               {base + "/file", -ENOTDIR},
               {base + "/file/g", -ENOTDIR},
               {base + "/dangling", -EEXIST},
               {base + "/dangling/g", -EEXIST},
               {base + "/loop", -ELOOP},
               {base + "/loop/g", -ELOOP},
               {base + "/" + many, -ENAMETOOLONG},
               {base + "/h/" + many + "/g", -ENAMETOOLONG},
               {"/proc/none", -ENOENT},
               {"/proc/none/g", -ENOENT},
               {"", -ENOENT}};
  for (const auto& c : cases) {
    INFO(c.path);
    CHECK(TryMakeFolders(c.path) == c.result);
    CHECK(MakeFolders(c.path).ok() == (c.result == 0));
    if (c.result == 0) CHECK(fs::is_directory(c.path));
  }
  const absl::Status s = MakeFolders(base + "/file");
  CHECK(s.message() == "cannot make folder " + base + "/file: Not a directory; name another place");
}

TEST_CASE("a tree is removed, and nothing that links lead to", "[folders]") {
  const TempFolder folder;
  const std::string tree = folder.path() + "/tree";
  fs::create_directories(tree + "/a/b");
  fs::create_directories(folder.path() + "/kept");
  Touch(folder.path() + "/kept/f");
  Touch(tree + "/a/b/f");
  REQUIRE(mkfifo((tree + "/a/pipe").c_str(), 0600) == 0);
  fs::create_symlink(folder.path() + "/kept", tree + "/a/link");
  fs::create_symlink(folder.path() + "/nowhere", tree + "/dangling");
  CHECK(RemoveTree(tree).ok());
  CHECK_FALSE(fs::exists(tree));
  CHECK(fs::exists(folder.path() + "/kept/f"));
  CHECK(RemoveTree(tree).ok());                             // is gone
  CHECK(RemoveTree(folder.path() + "/kept/f/below").ok());  // cannot be there
  fs::create_symlink(folder.path() + "/kept", tree);
  CHECK(RemoveTree(tree).ok());  // the link itself
  CHECK(fs::exists(folder.path() + "/kept/f"));
  const absl::Status s = RemoveTree(folder.path() + "/" + std::string(300, 'x'));
  CHECK(absl::IsFailedPrecondition(s));
}

TEST_CASE("looking never throws", "[folders]") {
  const TempFolder folder;
  Touch(folder.path() + "/f");
  fs::create_symlink(folder.path() + "/loop", folder.path() + "/loop");
  CHECK(*IsThere(folder.path() + "/f"));
  CHECK_FALSE(*IsThere(folder.path() + "/none"));
  CHECK_FALSE(*IsThere(folder.path() + "/f/below"));
  CHECK(absl::IsFailedPrecondition(IsThere(folder.path() + "/loop/OPEN").status()));
  const std::string many = folder.path() + "/" + std::string(300, 'x');
  CHECK(absl::IsFailedPrecondition(IsThere(many).status()));
  CHECK(*FileBytes(folder.path() + "/f") == 1);
  CHECK(absl::IsNotFound(FileBytes(folder.path() + "/none").status()));
  CHECK(*ListFolder(folder.path()) == std::vector<std::string>{"f", "loop"});
  CHECK(absl::IsNotFound(ListFolder(folder.path() + "/none").status()));
  CHECK(absl::IsFailedPrecondition(ListFolder(folder.path() + "/f").status()));
}

class NoFolders : public FileSystem {
 public:
  int MakeFolder(const std::string&) override { return -EROFS; }
};

// Removes what was made, the first few times, before anything can be made in it.
class Tidied : public FileSystem {
 public:
  int MakeFolder(const std::string& path) override {
    const int made = FileSystem::MakeFolder(path);
    if (made == 0 && times-- > 0) RemoveFolder(path);
    return made;
  }
  int times = 3;
};

TEST_CASE("a folder is made though somebody removes empty ones above it", "[files]") {
  const TempFolder folder;
  Tidied files;
  CHECK(TryMakeFolders(folder.path() + "/a/b", files) == 0);
  CHECK(fs::is_directory(folder.path() + "/a/b"));
  files.times = 1000000;  // and it comes to an end
  CHECK(TryMakeFolders(folder.path() + "/c/d", files) == -ENOENT);
}

// Which folders were made, and which were on the device before power was lost.
class Recorded : public FileSystem {
 public:
  int Open(const std::string& path, int flags) override {
    if (path == closed) return -EACCES;
    const int fd = FileSystem::Open(path, flags);
    if (fd >= 0) open_[fd] = path;
    return fd;
  }
  int Sync(int fd, SyncWhat what) override {
    if (fails) return -EIO;
    calls.push_back("sync " + open_.at(fd));
    return FileSystem::Sync(fd, what);
  }
  int MakeFolder(const std::string& path) override {
    const int made = FileSystem::MakeFolder(path);
    if (made == 0) calls.push_back("make " + path);
    return made;
  }
  std::vector<std::string> calls;
  std::string closed;
  bool fails = false;

 private:
  std::map<int, std::string> open_;
};

TEST_CASE("the names of folders that are made last, also if power is lost then", "[folders]") {
  const TempFolder folder;
  const std::string& base = folder.path();
  Recorded files;
  CHECK(TryMakeDurableFolders(base + "/a//b/", files) == 0);
  CHECK(files.calls == std::vector<std::string>{"make " + base + "/a", "sync " + base,
                                                "make " + base + "/a//b", "sync " + base + "/a"});
  files.calls.clear();
  CHECK(TryMakeDurableFolders(base + "/a/b", files) == 0);
  CHECK(files.calls.empty());  // is there
  files.fails = true;
  CHECK(TryMakeDurableFolders(base + "/a/c", files) == -EIO);
  CHECK_FALSE(fs::exists(base + "/a/c"));  // else the next try would take it for durable
  files.fails = false;
  CHECK(TryMakeDurableFolders(base + "/a/c", files) == 0);
  files.calls.clear();
  files.closed = base;  // whose names are not this process's business
  CHECK(TryMakeDurableFolders(base + "/d", files) == 0);
  CHECK(files.calls == std::vector<std::string>{"make " + base + "/d"});
}

TEST_CASE("another file system takes the kernel's place, and gives it back", "[files]") {
  const TempFolder folder;
  NoFolders none;
  FileSystem::ReplaceKernel(&none);
  CHECK(absl::IsPermissionDenied(MakeFolders(folder.path() + "/a")));
  CHECK(MakeFolders(folder.path()).ok());  // is there, whatever its making says
  FileSystem::ReplaceKernel(nullptr);
  CHECK(MakeFolders(folder.path() + "/a").ok());
}

}  // namespace
}  // namespace strata
