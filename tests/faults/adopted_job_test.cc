// A scheduler that lost its records of a job, which its servers keep: `strata nodes adopt` has it
// go on to the model that it would have made, and refuses where that cannot be.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tests/e2e/cluster/files_below.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/e2e/cluster/small_job.h"
#include "tests/proto/runtime/files/other_format.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

namespace fs = std::filesystem;

// Of the job: 600 lines an epoch are ten steps of 60 examples.
constexpr uint64_t kSteps = 1000, kExamples = 60;
// Trained at least before its records are lost.
constexpr uint64_t kBefore = 30;
// Of a server, one a step.
constexpr uint64_t kShards = 4;

// A job on two servers, half trained; its servers keep it, and the scheduler is back from a copy of
// its folder that was taken before the job came.
class Lost {
 public:
  explicit Lost(int servers) : folder_(Folder()), job(SmallJob(folder_.path())) {
    JobSpec& spec = *job.mutable_spec();
    spec.mutable_training()->set_epochs(kSteps / 10);
    spec.mutable_replicas()->set_servers(2);
    spec.mutable_storage()->set_durability("logged");
    alone = Train(job).model_hash();
    options_.servers = servers;
    options_.workers = 1;
    options_.folder = folder_.path() + "/cluster";
    options_.lease_ms = 3000;  // a busy machine misses nobody who is there
  }

  // `steps`: that it has trained at least; `checkpoints`: that are complete.
  void Lose(ProcessCluster& cluster, uint64_t steps, size_t checkpoints = 0) {
    const std::string own = cluster.folder() + "/scheduler", older = own + ".older";
    cluster.Kill("scheduler");
    fs::copy(own, older, fs::copy_options::recursive);
    cluster.Start("scheduler");
    // The job cannot be over before that: from some step on commits wait.
    const uint64_t commits = kShards * (steps + 10);
    for (const std::string& server : Servers()) {
      cluster.Kill(server);
      cluster.Start(server, absl::StrCat("server.commit.append=error(UNAVAILABLE)@", commits));
    }
    cluster.AwaitRegistered();
    cluster.AwaitStep(cluster.Submit(job), steps);
    AwaitThat(absl::StrCat(checkpoints, " checkpoints are complete"),
              [&] { return Checkpoints().size() >= checkpoints; });
    cluster.Kill("worker-0");  // it would go on without a scheduler
    cluster.Kill("scheduler");
    fs::remove_all(own);
    fs::rename(older, own);
    for (const std::string& server : Servers()) {
      cluster.Kill(server);
      cluster.Start(server);
    }
    cluster.Start("scheduler", "", {"--restored"});
    cluster.Start("worker-0");
    AwaitKept(cluster, 2);
  }
  static CommandResult Nodes(ProcessCluster& cluster, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "nodes");
    arguments.insert(arguments.end(), {"--scheduler", cluster.address()});
    return cluster.Strata(arguments);
  }
  static std::vector<std::string> Keepers(ProcessCluster& cluster) {
    std::vector<std::string> keepers;
    const CommandResult listed = Nodes(cluster, {"--quarantined", "--json"});
    if (listed.exit_code != 0) return keepers;
    const auto kept = nlohmann::json::parse(listed.out)["quarantined"];
    for (const auto& copy : kept) keepers.push_back(copy["node"]);
    return keepers;
  }
  static void AwaitKept(ProcessCluster& cluster, size_t servers) {
    AwaitThat(absl::StrCat(servers, " servers keep the job"),
              [&] { return Keepers(cluster).size() == servers; });
  }
  // For a lease.
  static void Silence(ProcessCluster& cluster, const std::string& server) {
    cluster.Kill(server);
    AwaitThat(server + " is silent", [&] {
      const CommandResult nodes = Nodes(cluster, {"--json"});
      const auto list = nlohmann::json::parse(nodes.out)["nodes"];
      return std::any_of(list.begin(), list.end(), [&](const auto& node) {
        return node["name"] == server && node["alive"] == false;
      });
    });
  }
  // It must not be adopted, and why.
  static void CheckRefused(ProcessCluster& cluster, const std::string& why) {
    const CommandResult refused = Nodes(cluster, {"adopt", "small"});
    INFO(refused.err);
    CHECK(refused.exit_code == 2);
    CHECK(absl::StrContains(refused.err, why));
  }
  // Number of the job.
  static uint64_t Adopt(ProcessCluster& cluster, const std::string& how) {
    const CommandResult adopted = Nodes(cluster, {"adopt", "small", "--json"});
    INFO(adopted.out << adopted.err);
    REQUIRE(adopted.exit_code == 0);
    const auto json = nlohmann::json::parse(adopted.out);
    CHECK(json["adopted"] == true);
    CHECK(absl::StrContains(json["message"].get<std::string>(), how));
    return json["job"];
  }
  std::vector<std::string> Servers() const {
    std::vector<std::string> names;
    for (int i = 0; i < options_.servers; ++i) names.push_back(absl::StrCat("server-", i));
    return names;
  }
  // Folders of the complete ones, ascending by step.
  std::vector<std::string> Checkpoints() const {
    std::vector<std::string> folders;
    const auto list = ListCheckpoints(job.spec().checkpoint().directory());
    if (!list.ok()) return folders;
    for (const CheckpointEntry& c : list->complete) folders.push_back(c.folder);
    return folders;
  }
  const ProcessClusterOptions& options() const { return options_; }
  const std::string& folder() const { return folder_.path(); }

 private:
  ScratchFolder folder_;
  ProcessClusterOptions options_;

 public:
  TrainingJob job;
  std::string alone;  // model hash of a run that nothing disturbs
};

// The note of the only job that the server has.
std::string NoteOf(const ProcessCluster& cluster, const std::string& server) {
  for (const std::string& path : FilesBelow(cluster.folder() + "/" + server)) {
    if (fs::path(path).filename() == "NOTE") return path;
  }
  return "";
}

void Append(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::app) << text;
}

TEST_CASE("a job whose records are lost goes on with its servers to the model of a run alone",
          "[faults][adoption]") {
  Lost lost(2);
  lost.job.mutable_spec()->mutable_checkpoint()->set_directory(lost.folder() + "/ck");
  ProcessCluster cluster(lost.options());
  lost.Lose(cluster, kBefore);
  // Of another version, and newer than any of the job's: it needs none.
  const std::string foreign = absl::StrCat(lost.folder(), "/ck/", CheckpointFolderName(9 * kSteps));
  REQUIRE(WriteManifest(foreign, Manifest()).ok());
  PutOtherFormat(foreign);

  Lost::Silence(cluster, "server-1");
  Lost::CheckRefused(cluster, "of 2 of its generation 1");
  const std::string note = NoteOf(cluster, "server-1"), whole = ReadFile(note);
  REQUIRE_FALSE(whole.empty());
  Append(note, "x");
  cluster.Start("server-1");
  AwaitThat("server-1 tells of its note", [&] {
    return absl::StrContains(Lost::Nodes(cluster, {"adopt", "small"}).err, "checksum");
  });
  Lost::CheckRefused(cluster, note);
  cluster.Kill("server-1");
  std::ofstream(note) << whole;
  cluster.Start("server-1");
  cluster.AwaitRegistered();

  const std::string data = lost.folder() + "/train.libfm", before = ReadFile(data);
  Append(data, "1 1:1\n");
  const uint64_t failed = Lost::Adopt(cluster, "no step is given up");
  const JobStatus changed = cluster.AwaitEnd(failed);
  CHECK(changed.state() == FAILED);
  CHECK(HasCondition(changed, "InputChanged"));
  Lost::AwaitKept(cluster, 2);
  std::ofstream(data) << before;

  cluster.Kill("worker-0");  // so that the job is not over when it is adopted once more
  const uint64_t id = Lost::Adopt(cluster, "server-0, server-1");
  CHECK(id != failed);
  Lost::CheckRefused(cluster, absl::StrCat("already: it is job ", id));
  cluster.Start("worker-0");
  const JobStatus end = cluster.AwaitEnd(id);
  INFO(Conditions(end));
  CHECK(end.state() == SUCCEEDED);
  CHECK(absl::StrContains(Conditions(end), foreign));
  CHECK(end.rollbacks() == 0);
  CHECK(end.model_hash() == lost.alone);
  // The worker is new: it trained the rest, and nothing again.
  const double trained = cluster.ExamplesOf("worker-0");
  CHECK(trained > 0);
  CHECK(trained <= static_cast<double>((kSteps - kBefore) * kExamples));
  AwaitThat("its files are removed", [&] {
    return NoteOf(cluster, "server-0").empty() && NoteOf(cluster, "server-1").empty();
  });
}

TEST_CASE("a job whose records are lost goes on from its checkpoint where a server is missing",
          "[faults][adoption]") {
  Lost lost(3);
  lost.job.mutable_spec()->mutable_checkpoint()->set_directory(lost.folder() + "/ck");
  lost.job.mutable_spec()->mutable_checkpoint()->set_every_steps(20);
  ProcessCluster cluster(lost.options());
  lost.Lose(cluster, 60, /*checkpoints=*/2);
  const std::vector<std::string> keepers = Lost::Keepers(cluster);
  REQUIRE(keepers.size() == 2);
  Lost::Silence(cluster, keepers[0]);
  const std::vector<std::string> checkpoints = lost.Checkpoints();
  const std::string newest = checkpoints.back(), before = *(checkpoints.end() - 2);
  PutOtherFormat(newest);
  Lost::CheckRefused(cluster, absl::StrCat("has format ", kOtherFormat));
  Lost::CheckRefused(cluster, absl::StrCat("move ", newest, " away, to go on from ", before));
  std::ofstream(absl::StrCat(newest, "/", kManifestName)) << "x";
  const uint64_t id =
      Lost::Adopt(cluster, absl::StrCat("goes on from its newest checkpoint ", before));
  CHECK(id == 1);
  const JobStatus end = cluster.AwaitEnd(id);
  INFO(Conditions(end));
  CHECK(HasCondition(end, "CheckpointDamaged"));
  CHECK(absl::StrContains(Conditions(end), newest));
  CHECK(end.state() == SUCCEEDED);
  CHECK(end.model_hash() == lost.alone);
}

}  // namespace
}  // namespace strata::testing
