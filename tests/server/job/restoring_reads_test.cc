// What a server reads of another job's checkpoint (spec.model.initFrom) beside the rows.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "proto/core/ids.h"
#include "proto/core/mutex.h"
#include "proto/core/partition.h"
#include "proto/core/table_spec.h"
#include "proto/runtime/files/file_system.h"
#include "server/job/opening.h"
#include "server/job/plan.h"
#include "tests/server/job/another_checkpoint.h"
#include "tests/temp_folder.h"

namespace strata::server {
namespace {

// The process's files while it lives: the kernel's, counted. Thread-safe.
class CountedFiles : public FileSystem {
 public:
  CountedFiles() { ReplaceKernel(this); }
  ~CountedFiles() override { ReplaceKernel(nullptr); }

  struct Counts {
    int opens = 0;
    uint64_t bytes = 0;  // that were read
  };
  Counts Of(const std::string& path) {
    MutexLock lock(&mu_);
    return counts_[path];
  }

  int Open(const std::string& path, int flags) override {
    const int fd = FileSystem::Open(path, flags);
    MutexLock lock(&mu_);
    ++counts_[path].opens;
    if (fd >= 0) open_[fd] = path;
    return fd;
  }
  ssize_t Read(int fd, std::span<uint8_t> bytes, uint64_t offset) override {
    const ssize_t n = FileSystem::Read(fd, bytes, offset);
    MutexLock lock(&mu_);
    if (n > 0) counts_[open_[fd]].bytes += static_cast<uint64_t>(n);
    return n;
  }

 private:
  Mutex mu_;
  std::map<int, std::string> open_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, Counts> counts_ ABSL_GUARDED_BY(mu_);
};

// Of each of four partitions a file with 100 rows and a large filter, and an increment on it.
constexpr uint64_t kLarge = uint64_t{1} << 20;
std::vector<AnotherFile> Files() {
  std::vector<AnotherFile> files;
  for (const bool increment : {false, true}) {
    for (uint32_t p = 0; p < kFourPartitions; ++p) {
      AnotherFile file = {.clock = increment ? 2u : 1u,
                          .base = increment ? 1u : 0u,
                          .applied = increment ? 20u : 10u,
                          .filter_bytes = kLarge,
                          .range = {PartitionId(p), PartitionId(p)}};
      for (uint32_t key = 0; key < 400; ++key) file.rows[key] = {1.0f, 0, {5, 1}};
      files.push_back(file);
    }
  }
  return files;
}
std::string Path(const std::string& folder, size_t file) {
  return absl::StrCat(folder, "/part-", file + 1, ".strata");
}

TEST_CASE("what another job had counted is read once for all shards, and no filter for it",
          "[restoring]") {
  const TempFolder temp;
  const std::string checkpoint = temp.path() + "/c";
  TableSpec table = OneWeight(false);
  const bool adam = GENERATE(false, true);
  INFO("Adam " << adam);
  if (adam) table.segments[0].optimizer.type = OptimizerType::kAdam;
  const std::vector<AnotherFile> files = Files();
  WriteAnother(checkpoint, files, {table});
  JobPlan plan = PlanFrom(checkpoint, {table});
  plan.shards.pop_back();  // of the last two partitions, which another server has
  plan.shards.push_back(plan.shards[0]);
  plan.shards[0].range.last = PartitionId(0);
  plan.shards[1].range.first = PartitionId(1);
  plan.shards[1].id = ShardId(1);

  CountedFiles counted;
  const OpenedJob job = OpenFrom(temp, plan);
  REQUIRE(job.shards[0]->RowsOf(0) + job.shards[1]->RowsOf(0) > 100);
  for (size_t i = 0; i < files.size(); ++i) {
    const CountedFiles::Counts counts = counted.Of(Path(checkpoint, i));
    const bool newest = files[i].base > 0, here = files[i].range.first.value < 2;
    INFO("file " << i << ", newest " << newest << ", rows here " << here);
    // The shard whose rows it has opens it, and so does who counts: the newest, and of other
    // servers' rows with Adam alone.
    CHECK(counts.opens == (here ? 1 : 0) + (newest && (here || adam) ? 1 : 0));
    // The filter is read by the shard that takes it.
    CHECK(counts.bytes < (here ? 2 : 1) * kLarge);
  }
}

TEST_CASE("of the job's own checkpoint each shard reads its files once", "[restoring]") {
  const TempFolder temp;
  const std::string checkpoint = temp.path() + "/c";
  const TableSpec table = OneWeight(false);
  const std::vector<AnotherFile> files = Files();
  WriteAnother(checkpoint, files, {table});
  JobPlan plan = PlanFrom(checkpoint, {table});
  plan.synchronous = false;
  plan.restore.emplace();
  CountedFiles counted;
  const OpenedJob job = OpenFrom(temp, plan);
  CHECK(job.shards[0]->clock() == Step(20));
  for (size_t i = 0; i < files.size(); ++i) {
    const CountedFiles::Counts counts = counted.Of(Path(checkpoint, i));
    INFO("file " << i);
    CHECK(counts.opens == 1);
    CHECK(counts.bytes < 2 * kLarge);
  }
}

}  // namespace
}  // namespace strata::server
