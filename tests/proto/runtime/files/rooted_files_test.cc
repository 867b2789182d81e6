#include "proto/runtime/files/rooted_files.h"

#include <fcntl.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "proto/runtime/files/folders.h"
#include "tests/temp_folder.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

TEST_CASE("no call leaves the roots, by whatever link", "[rooted_files]") {
  const TempFolder folder;
  const std::string base = fs::canonical(folder.path()).string();
  const std::string in = base + "/in", out = base + "/out";
  fs::create_directories(in + "/there");
  fs::create_directories(out + "/folder");
  std::ofstream(in + "/f") << "x";
  std::ofstream(out + "/f") << "x";
  fs::create_symlink(out, in + "/out");
  fs::create_symlink(out + "/f", in + "/link");
  fs::create_symlink(out + "/new", in + "/dangling");
  auto policy = PathPolicy::Make({in});
  REQUIRE(policy.ok());
  RootedFiles files(*policy);
  FileInfo info;
  std::vector<std::string> names;

  for (const std::string& bad : {out + "/f", in + "/out/f", in + "/link", in + "/dangling"}) {
    INFO(bad);
    CHECK(files.Open(bad, O_RDONLY) == -kOutsideRoots);
    CHECK(files.Open(bad, O_WRONLY | O_CREAT | O_TRUNC) == -kOutsideRoots);
    CHECK(files.Look(bad, info) == -kOutsideRoots);
    CHECK(files.MakeFolder(bad) == -kOutsideRoots);
    CHECK(files.List(bad, names) == -kOutsideRoots);
    CHECK(files.MayChange(bad) == -kOutsideRoots);
  }
  for (const std::string& bad : {out + "/f", in + "/out/f"}) {
    INFO(bad);
    CHECK(files.Rename(bad, in + "/g") == -kOutsideRoots);
    CHECK(files.Rename(in + "/f", bad) == -kOutsideRoots);
    CHECK(files.Link(bad, in + "/g") == -kOutsideRoots);
    CHECK(files.Link(in + "/f", bad) == -kOutsideRoots);
    CHECK(files.Remove(bad) == -kOutsideRoots);
    CHECK(files.LookAtLink(bad, info) == -kOutsideRoots);
    CHECK(files.RemoveFolder(bad) == -kOutsideRoots);
  }
  CHECK(fs::exists(out + "/f"));
  CHECK_FALSE(fs::exists(out + "/new"));

  // A name that is a link may go, and what is beside it is reached.
  CHECK(files.LookAtLink(in + "/link", info) == 0);
  CHECK(files.Remove(in + "/link") == 0);
  CHECK(fs::exists(out + "/f"));
  CHECK(files.Rename(in + "/f", in + "/there/g") == 0);
  CHECK(files.Link(in + "/there/g", in + "/f") == 0);
  const int fd = files.Open(in + "/there/h", O_WRONLY | O_CREAT);
  REQUIRE(fd >= 0);
  files.Close(fd);
  CHECK(TryMakeFolders(in + "/a/b", files) == 0);
  CHECK(files.RemoveFolder(in + "/a/b") == 0);
  CHECK(files.List(in, names) == 0);
  CHECK(files.Look(in + "/none", info) == -ENOENT);
  fs::create_symlink(out, in + "/there/out");
  CHECK(RemoveTree(in + "/there", files).ok());
  CHECK_FALSE(fs::exists(in + "/there"));
  CHECK(fs::exists(out + "/folder"));
  CHECK(absl::IsPermissionDenied(RemoveTree(in + "/out/folder", files)));
  CHECK(fs::exists(out + "/folder"));
}

TEST_CASE("a process keeps to its roots, its own folders and TMPDIR, and says why",
          "[rooted_files]") {
  const TempFolder folder;
  const std::string base = fs::canonical(folder.path()).string();
  for (const char* name : {"/top", "/temporary", "/else"}) fs::create_directory(base + name);
  REQUIRE(setenv("TMPDIR", (base + "/temporary").c_str(), 1) == 0);
  auto policy = PathPolicy::Make({base + "/top"});
  REQUIRE(policy.ok());
  REQUIRE(RestrictFiles(PathPolicy(), {}).ok());
  CHECK(MakeFolders(base + "/else/a").ok());
  REQUIRE(RestrictFiles(*policy, {base + "/own"}).ok());
  for (const char* good : {"/top/a", "/own/a", "/temporary/a"}) {
    CHECK(MakeFolders(base + good).ok());
  }
  const absl::Status s = MakeFolders(base + "/else/b");
  FileSystem::ReplaceKernel(nullptr);
  CHECK(absl::IsPermissionDenied(s));
  CHECK_FALSE(fs::exists(base + "/else/b"));
  CHECK(s.message() == "cannot make folder " + base + "/else/b: " + base +
                           "/else/b lies outside of where jobs may read and write here: " + base +
                           "/top, " + base + "/own, " + base + "/temporary (--data-root)");
}

}  // namespace
}  // namespace strata
