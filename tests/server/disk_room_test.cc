#include "server/disk_room.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "proto/runtime/base/manual_timer.h"
#include "tests/temp_folder.h"

namespace strata::server {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMiB = uint64_t{1} << 20;

// Of bytes that are not zero, so that all of them are on disk.
void Write(const std::string& path, uint64_t bytes) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path) << std::string(bytes, 'x');
}

TEST_CASE("what files take on disk: names of one file once, holes nothing", "[disk_room]") {
  const TempFolder folder;
  const std::string job = folder.path() + "/job";
  CHECK(BytesOnDisk(job) == 0);
  Write(job + "/a", kMiB);
  const uint64_t one = BytesOnDisk(job);
  CHECK(one >= kMiB);
  CHECK(one < kMiB + kMiB / 2);
  Write(job + "/generation-1/log/b", kMiB);
  const uint64_t two = BytesOnDisk(job);
  CHECK(two >= 2 * kMiB);
  CHECK(two < 3 * kMiB);
  fs::create_hard_link(job + "/a", job + "/generation-1/a");
  fs::create_symlink(job + "/a", job + "/link");
  Write(folder.path() + "/beside", kMiB);
  fs::create_directory_symlink(folder.path(), job + "/above");
  CHECK(BytesOnDisk(job) == two);
  Write(job + "/sparse", 1);
  fs::resize_file(job + "/sparse", 64 * kMiB);
  CHECK(BytesOnDisk(job) < two + kMiB);
}

TEST_CASE("a server looks at its file system now and then, and at once for other jobs",
          "[disk_room]") {
  const TempFolder folder;
  ManualTimer timer;
  DiskRoom room(folder.path(), &timer);
  CHECK(room.Now().free == 0);
  room.Begin();
  CHECK(room.Now().free > 0);
  CHECK(room.Now().jobs == 0);
  Write(folder.path() + "/job-1/f", 2 * kMiB);
  Write(folder.path() + "/foreign", kMiB);
  std::map<std::string, std::string> jobs = {{"u1", folder.path() + "/job-1"}};
  // A look that is under way is not one for other jobs: asked again until it is there.
  const auto await = [&](uint64_t least) {
    while (room.Now().jobs < least) {
      room.Tend(jobs);
      std::this_thread::yield();
    }
  };
  await(2 * kMiB);
  CHECK(room.Now().jobs < 3 * kMiB);
  CHECK(room.Now().by_job.at("u1") == room.Now().jobs);
  Write(folder.path() + "/job-2/f", 2 * kMiB);
  jobs["u2"] = folder.path() + "/job-2";
  await(4 * kMiB);
  CHECK(room.Now().by_job.size() == 2);
  jobs.erase("u1");
  while (room.Now().by_job.size() != 1) {
    room.Tend(jobs);
    std::this_thread::yield();
  }
  CHECK(room.Now().jobs < 3 * kMiB);
}

}  // namespace
}  // namespace strata::server
