#include "proto/runtime/files/locked_file.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <string>

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

}  // namespace
}  // namespace strata
