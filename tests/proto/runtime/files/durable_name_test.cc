#include "proto/runtime/files/durable_name.h"

#include <fcntl.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>
#include <string>

#include "proto/runtime/files/plain_file.h"
#include "tests/storage/io/scripted_files.h"
#include "tests/temp_folder.h"

namespace strata {
namespace {

using storage::ScriptedFiles;
using Call = ScriptedFiles::Call;

TEST_CASE("a file that was named durably is whole after a loss of power", "[files]") {
  const TempFolder folder, after;
  ScriptedFiles files(1);
  files.Adopt(folder.path());
  const std::string path = folder.path() + "/a", temporary = path + ".part";
  REQUIRE(WritePlainFile(temporary, "text", files).ok());
  const int fd = files.Open(temporary, O_RDWR);
  REQUIRE(fd >= 0);
  REQUIRE(NameDurably(fd, temporary, path, files) == 0);
  files.Close(fd);
  CHECK_FALSE(std::filesystem::exists(temporary));
  files.PowerLoss(folder.path(), after.path());
  CHECK(*ReadPlainFile(after.path() + "/a", 100) == "text");
}

TEST_CASE("what fails while a file is named is told", "[files]") {
  struct Fault {
    Call call;
    int error;
    uint64_t nth;
    int expected;
    bool named;
  };
  for (const Fault& f :
       {Fault{Call::kSync, EIO, 1, -EIO, false}, Fault{Call::kRename, ENOSPC, 1, -ENOSPC, false},
        Fault{Call::kOpen, EMFILE, 1, -EMFILE, true}, Fault{Call::kSync, EIO, 2, -EIO, true},
        Fault{Call::kOpen, EACCES, 1, 0, true}, Fault{Call::kSync, EINVAL, 2, 0, true}}) {
    const TempFolder folder;
    ScriptedFiles files(1);
    const std::string path = folder.path() + "/a", temporary = path + ".part";
    REQUIRE(WritePlainFile(temporary, "text", files).ok());
    const int fd = files.Open(temporary, O_RDWR);
    files.Fail(f.call, f.error, f.nth);
    INFO(f.error << ", call " << f.nth);
    CHECK(NameDurably(fd, temporary, path, files) == f.expected);
    files.Close(fd);
    CHECK(std::filesystem::exists(path) == f.named);
    CHECK(std::filesystem::exists(temporary) == !f.named);
  }
}

}  // namespace
}  // namespace strata
