#include "tests/faults/tiered_job.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "tests/e2e/cluster/files_below.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/e2e/cluster/small_job.h"

namespace strata::testing {

namespace fs = std::filesystem;

std::vector<std::string> SmallMemtables() { return {"--tier-memtable-bytes=131072"}; }

TrainingJob TieredJob(const std::string& folder, uint32_t epochs) {
  TrainingJob job = SmallJob(folder);
  WriteLibfm(folder + "/train.libfm", 1, 1280, 6, 1000);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_model()->set_type("fm");
  spec.mutable_model()->clear_hidden();
  spec.mutable_model()->set_embedding_dim(64);
  spec.mutable_training()->set_epochs(epochs);
  spec.mutable_replicas()->set_servers(2);
  spec.mutable_replicas()->set_workers(2);
  return job;
}

TrainingJob TieredTablesJob(const std::string& folder, uint32_t epochs) {
  TrainingJob job = TieredJob(folder, epochs);
  UseFiveTables(folder, 1280, 5000, job);
  WidenTables(job);
  job.mutable_spec()->mutable_storage()->set_shards_per_server(1);
  return job;
}

TrainingJob BelowDram(TrainingJob job, const std::string& ssd) {
  StorageSpec& storage = *job.mutable_spec()->mutable_storage();
  storage.set_ssd(ssd);
  storage.set_dram_bytes_per_server("256KiB");
  storage.set_log_bytes_per_server("1MiB");
  return job;
}

TrainingJob WithHbm(TrainingJob job) {
  StorageSpec& storage = *job.mutable_spec()->mutable_storage();
  // Each table has a part, which has room for some buckets.
  storage.set_gpu_bytes_per_server(job.spec().tables().empty() ? "256KiB" : "768KiB");
  storage.set_gpu_backend("host");
  return job;
}

std::vector<std::string> TierFiles(const std::string& folder) {
  std::vector<std::string> files = FilesBelow(folder);
  std::erase_if(files, [](const std::string& file) {
    return fs::path(file).parent_path().filename() != "tier";
  });
  return files;
}

void AwaitRowsBelow(const std::string& folder) {
  AwaitThat("rows below DRAM", [&] {
    uint64_t bytes = 0;
    for (const std::string& file : TierFiles(folder)) {
      std::error_code gone;
      const uint64_t size = fs::file_size(file, gone);
      if (!gone) bytes += size;
    }
    return bytes > (128 << 10);
  });
}

std::string StopAtStep(uint64_t step, uint64_t shards) {
  return absl::StrCat("server.commit.append=stop@", shards * step, "*1");
}

void CheckSameModel(const JobStatus& end, const JobStatus& reference) {
  INFO(Conditions(end));
  CHECK(end.state() == SUCCEEDED);
  CHECK(end.model_hash() == reference.model_hash());
  CHECK(end.result().auc() == reference.result().auc());
  CHECK(end.examples() == reference.examples());
}

}  // namespace strata::testing
