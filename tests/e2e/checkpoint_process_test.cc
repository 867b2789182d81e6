// Checkpoints with real processes: promise P5, and what the command line does with them.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/e2e/cluster/damage_checkpoint.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/e2e/cluster/small_job.h"
#include "tests/e2e/cluster/table_room.h"
#include "tools/cluster/checkpoint/verify.h"
#include "tools/cluster/embedded/embedded.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

namespace fs = std::filesystem;

ScratchFolder Folder() {
  auto folder = ScratchFolder::Make("strata-e2e");
  REQUIRE(folder.ok());
  return *std::move(folder);
}

JobStatus Embedded(const TrainingJob& job) {
  EmbeddedOptions options;
  options.job = job;
  auto status = RunEmbedded(options);
  REQUIRE(status.ok());
  REQUIRE(status->state() == SUCCEEDED);
  return *status;
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<std::string> Steps(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (fs::exists(entry.path() / "MANIFEST.json")) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The value of a text field in one line of JSON.
std::string Field(const std::string& json, const std::string& name) {
  const std::string key = "\"" + name + "\":\"";
  const size_t at = json.find(key);
  if (at == std::string::npos) return "";
  return json.substr(at + key.size(), json.find('"', at + key.size()) - at - key.size());
}

// A din over tables of four widths, of which a sequence and two fields share one, whose rows lie
// below DRAM for the most part, and two remove rows.
TrainingJob FiveTablesJob(const std::string& folder) {
  TrainingJob job = SmallJob(folder);
  UseFiveTables(folder, 600, 4000, job);
  StorageSpec& storage = *job.mutable_spec()->mutable_storage();
  storage.set_shards_per_server(1);
  storage.set_dram_bytes_per_server("96KiB");
  return job;
}

// The same where all rows lie in DRAM.
JobStatus InDram(TrainingJob job) {
  job.mutable_spec()->mutable_storage()->clear_dram_bytes_per_server();
  return Embedded(job);
}

void CheckMostlyBelow(const TrainingJob& job) {
  const JobSpec& spec = job.spec();
  const TableRoom room = RoomOf(spec.checkpoint().directory(), "first", spec);
  INFO(room.rows << " rows, at most " << room.most_in_dram << " in DRAM");
  CHECK(room.MostlyBelow());
}

TEST_CASE("checkpoints: kept, verified, predicted from, resumed elsewhere, damaged",
          "[e2e][checkpoint]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = FiveTablesJob(folder.path());
  job.mutable_spec()->mutable_training()->set_epochs(40);
  const JobStatus reference = InDram(job);
  REQUIRE(reference.step() == 400);

  const std::string directory = folder.path() + "/checkpoints";
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_replicas()->set_servers(2);
  spec.mutable_replicas()->set_workers(2);
  spec.mutable_checkpoint()->set_directory(directory);
  spec.mutable_checkpoint()->set_every_steps(70);
  spec.mutable_checkpoint()->set_keep(3);
  spec.mutable_output()->set_predictions(folder.path() + "/predictions.csv");
  ProcessCluster cluster({.servers = 3, .workers = 3, .folder = folder.path() + "/cluster"});
  const JobStatus end = cluster.AwaitEnd(cluster.Submit(job));
  INFO(Conditions(end));
  REQUIRE(end.state() == SUCCEEDED);
  CHECK(end.model_hash() == reference.model_hash());
  CheckMostlyBelow(job);
  // The job's end is told first, what is too much is removed after that.
  AwaitThat("three checkpoints kept", [&] { return Steps(directory).size() == 3; });
  const std::vector<std::string> kept = Steps(directory);
  // On a busy machine an order for a cut may come late, and that one is left out.
  for (const std::string& step : {kept[0], kept[1]}) CHECK(std::stoull(step.substr(5)) % 70 == 0);
  CHECK(kept[2] == "step-000000000400");
  CHECK(end.checkpoint() == directory + "/" + kept[2]);

  const CommandResult verify = cluster.Strata({"checkpoint", "verify", directory, "--json"});
  INFO(verify.err);
  CHECK(verify.exit_code == 0);
  CHECK(Field(verify.out, "modelHash") == end.model_hash());
  const CommandResult list = cluster.Strata({"checkpoint", "list", directory});
  CHECK(list.exit_code == 0);
  CHECK(Contains(list.out, kept[0]));
  const std::string scores = folder.path() + "/scores.csv";
  const CommandResult predict = cluster.Strata(
      {"predict", "--checkpoint", directory, folder.path() + "/eval.csv", "--output", scores});
  INFO(predict.err);
  CHECK(predict.exit_code == 0);
  REQUIRE_FALSE(ReadFile(scores).empty());
  CHECK(ReadFile(scores) == ReadFile(spec.output().predictions()));

  // On another number of servers and workers, from the middle.
  const auto resume = [&](uint32_t servers, uint32_t workers) {
    spec.mutable_replicas()->set_servers(servers);
    spec.mutable_replicas()->set_workers(workers);
    return cluster.AwaitEnd(cluster.Submit(job, /*resume=*/true));
  };
  fs::remove_all(directory + "/step-000000000400");
  JobStatus resumed = resume(3, 1);
  INFO(Conditions(resumed));
  CHECK(resumed.state() == SUCCEEDED);
  CHECK(resumed.model_hash() == reference.model_hash());
  CHECK(resumed.result().auc() == reference.result().auc());
  CHECK(Contains(Conditions(resumed), kept[1]));

  // A flipped bit in the newest: named, and the one before is used.
  const std::string damaged = FlipBit(directory + "/step-000000000400");
  const CommandResult bad = cluster.Strata({"checkpoint", "verify", directory});
  CHECK(bad.exit_code == 1);
  CHECK(Contains(bad.err, damaged));
  CHECK(cluster.Strata({"predict", "--checkpoint", directory, folder.path() + "/eval.csv"})
            .exit_code == 1);
  resumed = resume(1, 3);
  INFO(Conditions(resumed));
  CHECK(resumed.state() == SUCCEEDED);
  CHECK(resumed.model_hash() == reference.model_hash());
  CHECK(HasCondition(resumed, "CheckpointDamaged"));
  CHECK(Contains(Conditions(resumed), fs::path(damaged).filename()));
  CHECK(Field(cluster.Strata({"checkpoint", "verify", directory, "--json"}).out, "modelHash") ==
        reference.model_hash());

  // A damaged manifest is no checkpoint.
  std::ofstream(directory + "/step-000000000400/MANIFEST.json", std::ios::app) << "x";
  resumed = resume(2, 2);
  INFO(Conditions(resumed));
  CHECK(resumed.state() == SUCCEEDED);
  CHECK(resumed.model_hash() == reference.model_hash());
}

TEST_CASE("a non-empty checkpoint folder is refused; --overwrite and --resume are named",
          "[e2e][checkpoint]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = SmallJob(folder.path());
  const std::string directory = folder.path() + "/checkpoints";
  job.mutable_spec()->mutable_checkpoint()->set_directory(directory);
  ProcessCluster cluster({.servers = 1, .workers = 1, .folder = folder.path() + "/cluster"});
  const JobStatus first = cluster.AwaitEnd(cluster.Submit(job));
  REQUIRE(first.state() == SUCCEEDED);
  CHECK_THROWS_WITH(cluster.Submit(job), Catch::Contains("--resume") &&
                                             Catch::Contains("--overwrite") &&
                                             Catch::Contains(directory));
  std::ofstream(directory + "/of-the-user") << "stays";
  const JobStatus again = cluster.AwaitEnd(cluster.Submit(job, false, /*overwrite=*/true));
  CHECK(again.state() == SUCCEEDED);
  CHECK(again.model_hash() == first.model_hash());
  CHECK(ReadFile(directory + "/of-the-user") == "stays");
}

TEST_CASE("a server killed while it writes a checkpoint", "[e2e][checkpoint]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = FiveTablesJob(folder.path());
  // A busy scheduler announces some cuts too late: of thirteen, five are needed.
  job.mutable_spec()->mutable_training()->set_epochs(8);
  const JobStatus reference = InDram(job);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_replicas()->set_servers(2);
  spec.mutable_replicas()->set_workers(2);
  spec.mutable_checkpoint()->set_every_steps(6);
  spec.mutable_checkpoint()->set_keep(100);
  spec.mutable_checkpoint()->set_full_every(3);
  ProcessCluster cluster({.folder = folder.path() + "/cluster"});
  int round = 0;
  for (const char* point :
       {"server.checkpoint=kill@1", "server.checkpoint=kill@3", "server.snapshot.write=kill@7",
        "server.snapshot.finish=kill@4", "server.snapshot.finished=kill@5"}) {
    INFO(point);
    const std::string directory = folder.path() + "/checkpoints-" + std::to_string(round++);
    spec.mutable_checkpoint()->set_directory(directory);
    const uint64_t id = cluster.SubmitAndLose(job, "server-1", point);
    cluster.Start("server-1");
    const JobStatus end = cluster.AwaitEnd(id);
    INFO(Conditions(end));
    CHECK(end.state() == SUCCEEDED);
    CHECK(end.model_hash() == reference.model_hash());
    CheckMostlyBelow(job);
    // Whatever is visible is whole.
    for (const std::string& name : Steps(directory)) {
      const auto verified = VerifyFolder(directory + "/" + name);
      INFO(name << ": " << verified.status());
      CHECK(verified.ok());
    }
    CHECK(Steps(directory).back() == "step-000000000080");
  }
}

TEST_CASE("checkpoint create while it trains, cancel, resume", "[e2e][checkpoint]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = SmallJob(folder.path());
  job.mutable_spec()->mutable_training()->set_epochs(600);  // far from its end when it is cancelled
  const JobStatus reference = Embedded(job);
  job.mutable_spec()->mutable_checkpoint()->set_directory(folder.path() + "/checkpoints");
  ProcessCluster cluster({.servers = 2, .workers = 1, .folder = folder.path() + "/cluster"});
  const uint64_t id = cluster.Submit(job);
  cluster.AwaitStep(id, 30);
  const CommandResult made =
      cluster.Strata({"checkpoint", "create", "small", "--scheduler", cluster.address(), "--json"});
  INFO(made.err);
  REQUIRE(made.exit_code == 0);
  CHECK(cluster.Strata({"cancel", "small", "--scheduler", cluster.address()}).exit_code == 0);
  CHECK(cluster.AwaitEnd(id).state() == CANCELLED);
  const CommandResult verify =
      cluster.Strata({"checkpoint", "verify", Field(made.out, "directory"), "--json"});
  CHECK(Field(verify.out, "modelHash") == Field(made.out, "modelHash"));
  job.mutable_spec()->mutable_replicas()->set_servers(2);
  const JobStatus end = cluster.AwaitEnd(cluster.Submit(job, /*resume=*/true));
  INFO(Conditions(end));
  CHECK(end.state() == SUCCEEDED);
  CHECK(end.model_hash() == reference.model_hash());
}

}  // namespace
}  // namespace strata::testing
