// Promise P3 where most rows lie in a row file: the model of a run that kept all of them in memory,
// through a lost server, checkpoints, and other numbers of servers.
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "absl/time/time.h"
#include "proto/runtime/scheduler_client.h"
#include "proto/strata/control.pb.h"
#include "tests/e2e/disturbed_run.h"
#include "tests/e2e/embedded_training.h"
#include "tests/e2e/small_job.h"
#include "tools/cluster/embedded_cluster.h"
#include "tools/cluster/scratch_folder.h"
#include "tools/cluster/verify.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

// Lines of eight features, each one of 6000.
void WriteLines(const std::string& path, uint64_t seed, int lines) {
  std::mt19937_64 random(seed);
  std::ofstream out(path);
  for (int l = 0; l < lines; ++l) {
    uint64_t sum = 0;
    std::string features;
    for (uint64_t f = 0; f < 8; ++f) {
      const uint64_t id = random() % 6000;
      sum += id % 7;
      features += ' ' + std::to_string(f * 10'000 + id) + ":1";
    }
    out << (sum + random() % 6 > 26 ? "1" : "-1") << features << '\n';
  }
}

// 120 steps of 512 rows of 2 KiB, some 16,700 in all. In 60 steps each of two servers writes more
// below than two memtables of 8 MiB hold, so that the first of them is in the file by then.
TrainingJob WideJob(const std::string& folder) {
  TrainingJob job = testing::SmallJob(folder);
  WriteLines(folder + "/train.libfm", 1, 2560);
  WriteLines(folder + "/eval.libfm", 2, 100);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_model()->set_type("fm");
  spec.mutable_model()->clear_hidden();
  spec.mutable_model()->set_embedding_dim(256);
  spec.mutable_training()->set_epochs(3);
  return job;
}

// Row files below a folder that hold a memtable's rows at least.
int RowFiles(const std::string& folder) {
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    files += entry.path().filename() == "ROWS" && entry.file_size() > (uint64_t{6} << 20);
  }
  return files;
}

TEST_CASE("the model does not depend on rows that lie in row files", "[e2e][p3]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = WideJob(folder.path());
  const JobStatus reference = Train(job);
  REQUIRE(reference.step() == 120);

  JobSpec& spec = *job.mutable_spec();
  const std::string checkpoints = folder.path() + "/checkpoints";
  spec.mutable_storage()->set_ssd("rowfile");
  spec.mutable_storage()->set_dram_bytes_per_server("1MiB");
  spec.mutable_checkpoint()->set_directory(checkpoints);
  spec.mutable_replicas()->set_servers(2);
  spec.mutable_replicas()->set_workers(2);
  // All that the servers hold in memory is lost in the middle, and what lies in their row files is
  // not used again. Then a checkpoint.
  const std::string cluster_folder = folder.path() + "/cluster";
  int row_files = 0;
  const JobStatus first = testing::RunDisturbed(
      job, cluster_folder, 60, [&](EmbeddedCluster& cluster, const JobRef& ref) {
        cluster.StopServer(0);
        cluster.StopServer(1);
        row_files = RowFiles(cluster_folder);
        REQUIRE(cluster.StartServer(1).ok());
        REQUIRE(cluster.StartServer(0).ok());
        CreateCheckpointRequest request;
        *request.mutable_job() = ref;
        request.set_wait_ms(60'000);
        const auto taken = cluster.scheduler().CreateCheckpoint(request, absl::Seconds(65));
        INFO(taken.status());
        REQUIRE(taken.ok());
      });
  REQUIRE(first.state() == SUCCEEDED);
  CHECK(first.model_hash() == reference.model_hash());
  CHECK(first.result().auc() == reference.result().auc());
  CHECK(row_files == 2);

  // From the middle, on other numbers of servers.
  for (const uint32_t servers : {3u, 1u}) {
    INFO(servers << " servers");
    fs::remove_all(checkpoints + "/step-000000000120");
    const auto middle = VerifyCheckpoint(checkpoints);
    REQUIRE(middle.ok());
    REQUIRE(middle->step >= 60);
    REQUIRE(middle->step < 120);
    spec.mutable_replicas()->set_servers(servers);
    const JobStatus status = Train(job, /*resume=*/true);
    CHECK(status.step() == 120);
    CHECK(status.model_hash() == reference.model_hash());
    CHECK(status.result().auc() == reference.result().auc());
    const auto end = VerifyCheckpoint(checkpoints);
    REQUIRE(end.ok());
    CHECK(end->step == 120);
    CHECK(end->model_hash == reference.model_hash());
  }
}

}  // namespace
}  // namespace strata
