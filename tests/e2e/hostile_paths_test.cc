// A job may name any path. Whatever is there, and whatever the kernel says of it at whichever call:
// the submission is refused, or the job fails, or it waits for the disk, and says field and path;
// the processes live on, and train the next job.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/path_policy.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/strata/job.pb.h"
#include "tests/e2e/faulty_files.h"
#include "tests/e2e/small_job.h"
#include "tools/cluster/embedded/cluster.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using testing::FaultyFiles;

constexpr absl::Duration kCall = absl::Seconds(30);
// Jobs at once, each of which takes a worker: those that wait for another try leave the processor
// to others. One worker is left for a good job.
constexpr uint32_t kAtOnce = 24;
// In which each must have come to its end, or say what it waits for.
constexpr absl::Duration kHangs = absl::Seconds(60);

enum class Outcome : uint8_t {
  kFails,  // is refused, or ends FAILED
  kWaits,  // goes on when the disk does; says what it waits for
  kWorks,
};

struct Case {
  std::string field;
  std::string path;
  Outcome outcome = Outcome::kFails;
  std::string fault = {};  // the folder that must have failed some call; "": none
  std::string named = {};  // how messages show the path; "": as it is
};

void Set(const std::string& field, const std::string& path, JobSpec& spec) {
  if (field == "spec.storage.directory") {
    spec.mutable_storage()->set_directory(path);
  } else if (field == "spec.checkpoint.directory") {
    spec.mutable_checkpoint()->set_directory(path);
  } else if (field == "spec.output.metrics") {
    spec.mutable_output()->set_metrics(path);
  } else if (field == "spec.output.predictions") {
    spec.mutable_output()->set_predictions(path);
  } else if (field == "spec.output.removed") {
    spec.mutable_output()->set_removed(path);
    spec.mutable_life_cycle()->mutable_removal()->set_every_steps(1);
    spec.mutable_life_cycle()->mutable_removal()->set_ttl_steps(1);
  } else if (field == "spec.model.initFrom") {
    spec.mutable_model()->mutable_init_from()->set_checkpoint(path);
  } else if (field == "spec.data.train") {
    spec.mutable_data()->set_train(0, path);
  } else {
    REQUIRE(field == "spec.data.eval");
    spec.mutable_data()->set_eval(0, path);
  }
}

// Of a folder, of a file that is written, of one that is read.
const std::vector<std::string> kFolders = {"spec.storage.directory", "spec.checkpoint.directory",
                                           "spec.output.removed", "spec.model.initFrom"};
const std::vector<std::string> kWritten = {"spec.output.metrics", "spec.output.predictions"};
const std::vector<std::string> kRead = {"spec.data.train", "spec.data.eval"};

// One scheduler, server and worker, whose files are FaultyFiles.
class Cluster {
 public:
  Cluster() : folder_(*ScratchFolder::Make("strata-hostile")) {
    static FaultyFiles& faulty = *new FaultyFiles;  // who opened a file holds on to it
    files_ = &faulty;
    FileSystem::ReplaceKernel(&faulty);
    job_ = testing::SmallJob(folder_.path());
    testing::WriteLibfm(folder_.path() + "/train.libfm", 1, 32, 3, 5);
    testing::WriteLibfm(folder_.path() + "/eval.libfm", 2, 8, 3, 5);
    JobSpec& spec = *job_.mutable_spec();
    spec.mutable_model()->set_type("lr");
    spec.mutable_model()->clear_hidden();
    spec.mutable_model()->clear_embedding_dim();
    spec.mutable_training()->set_lanes(1);
    spec.mutable_training()->set_batch_size(8);
    spec.mutable_training()->set_epochs(1);
    spec.mutable_storage()->set_partitions(4);
    spec.mutable_storage()->set_shards_per_server(1);
    Start({});
  }
  ~Cluster() {
    cluster_.reset();
    FileSystem::ReplaceKernel(nullptr);
  }

  void Start(PathPolicy paths) {
    cluster_.reset();
    EmbeddedClusterOptions options;
    options.directory = folder_.path() + "/servers";
    options.workers = kAtOnce;
    options.paths = std::move(paths);
    auto cluster = EmbeddedCluster::Start(options);
    REQUIRE(cluster.ok());
    cluster_ = *std::move(cluster);
  }

  const std::string& folder() const { return folder_.path(); }
  // A fresh folder of a case.
  std::string NewFolder() {
    const std::string path = absl::StrCat(folder(), "/case-", ++folders_);
    fs::create_directory(path);
    return path;
  }
  const TrainingJob& job() const { return job_; }
  const FaultyFiles& files() const { return *files_; }
  SchedulerClient& scheduler() { return cluster_->scheduler(); }

  absl::StatusOr<JobRef> Submit(TrainingJob job) {
    SubmitRequest request;
    job.mutable_metadata()->set_name(absl::StrCat("job-", ++jobs_));
    request.set_request_id(job.metadata().name());
    *request.mutable_job() = std::move(job);
    auto reply = scheduler().Submit(request, kCall);
    if (!reply.ok()) return reply.status();
    JobRef ref;
    ref.set_job(reply->job());
    return ref;
  }
  JobStatus Status(const JobRef& ref) {
    auto status = scheduler().GetJob(ref, kCall);
    REQUIRE(status.ok());
    return *status;
  }
  // A good job ends well.
  JobStatus TrainWell(TrainingJob job) {
    auto ref = Submit(std::move(job));
    INFO(ref.status());
    REQUIRE(ref.ok());
    for (const absl::Time from = absl::Now();; absl::SleepFor(absl::Milliseconds(1))) {
      const JobStatus status = Status(*ref);
      for (const JobCondition& c : status.conditions()) UNSCOPED_INFO(c.message());
      REQUIRE(absl::Now() - from < kHangs);
      if (status.state() == SUCCEEDED) return status;
      REQUIRE(status.state() != FAILED);
    }
  }
  // Copies a whole checkpoint to `path`.
  void CopyCheckpoint(const std::string& path) {
    if (checkpoint_.empty()) {
      TrainingJob job = job_;
      job.mutable_spec()->mutable_checkpoint()->set_directory(NewFolder());
      checkpoint_ = TrainWell(job).checkpoint();
    }
    fs::copy(checkpoint_, path, fs::copy_options::recursive);
  }

 private:
  const ScratchFolder folder_;
  std::string checkpoint_;
  FaultyFiles* files_ = nullptr;
  TrainingJob job_;
  std::unique_ptr<EmbeddedCluster> cluster_;
  int folders_ = 0, jobs_ = 0;
};

bool IsFinal(JobState state) { return state == SUCCEEDED || state == FAILED || state == CANCELLED; }

// Whether some message names both.
bool Names(const JobStatus& status, const Case& c) {
  for (const JobCondition& condition : status.conditions()) {
    if (absl::StrContains(condition.message(), c.field) &&
        absl::StrContains(condition.message(), c.named)) {
      return true;
    }
  }
  return false;
}

std::string Said(const JobStatus& status) {
  std::string text = JobState_Name(status.state());
  for (const JobCondition& c : status.conditions()) {
    absl::StrAppend(&text, "\n  ", c.reason(), ": ", c.message());
  }
  return text;
}

// Cases on their way, some at once.
class Runs {
 public:
  explicit Runs(Cluster& cluster) : cluster_(cluster) {}

  void Add(Case c) {
    if (c.named.empty()) c.named = c.path;
    TrainingJob job = cluster_.job();
    Set(c.field, c.path, *job.mutable_spec());
    auto ref = cluster_.Submit(std::move(job));
    ++count_;
    if (!ref.ok()) {
      INFO(c.field << "=" << c.named << ": " << ref.status());
      CHECK(c.outcome == Outcome::kFails);
      CHECK(absl::StrContains(ref.status().message(), c.field));
      CHECK(absl::StrContains(ref.status().message(), c.named));
      return CheckFault(c);
    }
    running_.push_back({std::move(c), *ref, absl::Now()});
    while (running_.size() + 1 >= kAtOnce) Look();
  }
  void Finish() {
    while (!running_.empty()) Look();
  }
  int count() const { return count_; }

 private:
  struct Run {
    Case c;
    JobRef ref;
    absl::Time since;
    bool cancelled = false;
  };

  void CheckFault(const Case& c) {
    if (!c.fault.empty()) CHECK(cluster_.files().failures(c.fault) > 0);
  }

  void Look() {
    absl::SleepFor(absl::Milliseconds(1));
    for (size_t i = 0; i < running_.size();) {
      if (Done(running_[i])) {
        running_.erase(running_.begin() + static_cast<ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
  }

  bool Done(Run& run) {
    const JobStatus status = cluster_.Status(run.ref);
    INFO(run.c.field << "=" << run.c.named << "\n" << Said(status));
    REQUIRE(absl::Now() - run.since < kHangs);
    if (!IsFinal(status.state())) {
      if (run.c.outcome == Outcome::kWaits && !run.cancelled && Names(status, run.c)) {
        run.cancelled = true;
        REQUIRE(cluster_.scheduler().CancelJob(run.ref, kCall).ok());
      }
      return false;
    }
    switch (run.c.outcome) {
      case Outcome::kFails:
        CHECK(status.state() == FAILED);
        CHECK(Names(status, run.c));
        break;
      case Outcome::kWaits:
        CHECK(status.state() == CANCELLED);
        CHECK(run.cancelled);
        break;
      case Outcome::kWorks:
        CHECK(status.state() == SUCCEEDED);
    }
    CheckFault(run.c);
    return true;
  }

  Cluster& cluster_;
  std::deque<Run> running_;
  int count_ = 0;
};

void AddPlaces(Cluster& cluster, Runs& runs) {
  std::vector<std::string> all = kFolders;
  all.insert(all.end(), kWritten.begin(), kWritten.end());
  all.insert(all.end(), kRead.begin(), kRead.end());
  for (const std::string& field : all) {
    const bool written = field == kWritten[0] || field == kWritten[1];
    const bool read = field == kRead[0] || field == kRead[1];
    const std::string base = cluster.NewFolder();
    std::ofstream(base + "/file") << "x\n";
    fs::create_symlink(base + "/loop", base + "/loop");
    fs::create_symlink(base + "/nowhere/at-all", base + "/dangling");
    fs::create_directory(base + "/folder");
    const std::string many = base + "/" + std::string(300, 'n');
    runs.Add({field, many});
    runs.Add({field, many + "/below"});
    runs.Add({field, base + "/loop/below"});
    runs.Add({field, base + "/file/below"});
    runs.Add({field, base + "/dangling/below"});
    runs.Add({field, "/proc/none/below"});
    runs.Add({field, "/proc/self/none"});
    runs.Add({field, base + "/a\nb", Outcome::kFails, "", base + "/a\\nb"});
    runs.Add({field, base + std::string("/a\0b", 4), Outcome::kFails, "", base + "/a\\x00"});
    const std::string deep = base + "/" + absl::StrCat(std::string(5000, 'd'));
    runs.Add({field, deep, Outcome::kFails, "", base.substr(0, 60)});
    std::string nested = base;  // each part short, the whole too long below it
    while (nested.size() < 4080) nested += "/" + std::string(9, 'e');
    if (!written && !read) runs.Add({field, nested.substr(0, 4090)});
    if (!written) runs.Add({field, base + "/loop"});
    if (!written) runs.Add({field, base + "/dangling"});
    const std::string pipe = base + "/pipe";
    REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
    runs.Add({field, pipe});
    if (field != "spec.output.predictions") runs.Add({field, "/dev/zero"});
    if (written || read) runs.Add({field, base + "/folder"});
    if (!written && !read) runs.Add({field, base + "/file"});
  }
  // What is in the way inside of a folder, and a pipe where a file of ours should be.
  const auto with = [&](const std::string& field, const std::string& name, auto make) {
    const std::string base = cluster.NewFolder();
    fs::create_directories(fs::path(base + "/" + name).parent_path());
    make(base + "/" + name);
    runs.Add({field, base});
  };
  const auto file = [](const std::string& path) { std::ofstream(path) << "x"; };
  const auto pipe = [](const std::string& path) { REQUIRE(mkfifo(path.c_str(), 0600) == 0); };
  const auto loop = [](const std::string& path) { fs::create_symlink(path, path); };
  with("spec.storage.directory", "server-0", file);
  with("spec.storage.directory", "server-0", pipe);
  with("spec.storage.directory", "server-0", loop);
  with("spec.model.initFrom", "MANIFEST.json", pipe);
  with("spec.model.initFrom", "MANIFEST.json", loop);
  with("spec.output.removed", "removed-00001-000000000000-00000.strata", pipe);
  with("spec.output.removed", "removed-00001-000000000000-00000.strata", loop);
}

// Errors that a later try may not meet.
bool Passes(const std::string& error) {
  return error == "EIO" || error == "ENOSPC" || error == "EDQUOT" || error == "EMFILE";
}

void AddFaults(Cluster& cluster, Runs& runs) {
  const std::vector<std::string> errors = {"EACCES", "EIO",   "ENOSPC",       "EROFS",
                                           "EMFILE", "ELOOP", "ENAMETOOLONG", "EINVAL"};
  const struct {
    std::string field, calls;
    bool waits;  // where the error passes
    int nth = 1;
  } table[] = {
      {"spec.storage.directory", "mkdir,look,lstat,list,open,write,sync", true},
      {"spec.checkpoint.directory", "mkdir,access,list,open,write,sync,rename", false},
      {"spec.output.removed", "mkdir,list,open,truncate", true},
      {"spec.output.predictions", "look,open,write,rename", false},
      {"spec.model.initFrom", "open,read", false},
      {"spec.data.train", "open,info,read", false},
      {"spec.data.eval", "open,info,read", false},
  };
  for (const auto& row : table) {
    const std::vector<std::string> calls = absl::StrSplit(row.calls, ',');
    for (const std::string& call : calls) {
      for (const std::string& error : errors) {
        const std::string fault =
            cluster.NewFolder() + "/" + FaultyFiles::NameOf(call, error, row.nth);
        fs::create_directory(fault);
        const bool read = row.field == kRead[0] || row.field == kRead[1];
        std::string path = fault + "/place";
        if (row.field == "spec.model.initFrom") cluster.CopyCheckpoint(path);
        if (read) fs::copy(cluster.folder() + "/train.libfm", path);
        const bool waits = row.waits && Passes(error);
        runs.Add({row.field, path, waits ? Outcome::kWaits : Outcome::kFails, fault, ""});
      }
    }
  }
  // Lines of metrics wait for room, and a job without them still trains.
  for (const std::string& error : errors) {
    const bool waits = error == "ENOSPC";
    const auto add = [&](const std::string& call, Outcome outcome) {
      const std::string fault = cluster.NewFolder() + "/" + FaultyFiles::NameOf(call, error, 1);
      fs::create_directory(fault);
      runs.Add({"spec.output.metrics", fault + "/m", outcome, fault, ""});
    };
    add("open", waits ? Outcome::kWorks : Outcome::kFails);
    add("write", Outcome::kWorks);
  }
}

TEST_CASE("no path of a job ends a process, whatever is there and whatever the kernel says",
          "[hostile]") {
  Cluster cluster;
  Runs runs(cluster);
  AddPlaces(cluster, runs);
  const int places = runs.count();
  AddFaults(cluster, runs);
  runs.Finish();
  CHECK(places >= 100);
  CHECK(runs.count() >= 300);
  cluster.TrainWell(cluster.job());
}

TEST_CASE("commits and cuts that meet an error say the field, and go on or fail", "[hostile]") {
  Cluster cluster;
  Runs runs(cluster);
  // JOB, the segment's header and OPEN are written when the job is opened, records after them.
  for (const std::string error : {"EIO", "ENOSPC", "EROFS"}) {
    const std::string fault = cluster.NewFolder() + "/" + FaultyFiles::NameOf("write", error, 4);
    fs::create_directory(fault);
    runs.Add({"spec.storage.directory", fault + "/place", Outcome::kWaits, fault, ""});
  }
  // The scheduler reads the manifest at the submission, the server once more, and then the shard.
  for (const int nth : {2, 3}) {
    const std::string fault =
        cluster.NewFolder() + "/" + FaultyFiles::NameOf("open", "EACCES", nth);
    fs::create_directory(fault);
    cluster.CopyCheckpoint(fault + "/place");
    runs.Add({"spec.model.initFrom", fault + "/place", Outcome::kFails, fault, ""});
  }
  runs.Finish();
  cluster.TrainWell(cluster.job());
}

TEST_CASE("jobs keep to the data roots, by whatever links", "[hostile][data_root]") {
  Cluster cluster;
  const std::string root = cluster.NewFolder(), outside = cluster.NewFolder();
  for (const char* file : {"train.libfm", "eval.libfm"}) {
    fs::copy(cluster.folder() + "/" + file, root + "/" + file);
    fs::copy(cluster.folder() + "/" + file, outside + "/" + file);
  }
  cluster.CopyCheckpoint(root + "/from");
  cluster.CopyCheckpoint(outside + "/from");
  fs::create_directory_symlink(outside, root + "/out");
  const auto policy = PathPolicy::Make({root});
  REQUIRE(policy.ok());
  cluster.Start(*policy);
  TrainingJob good = cluster.job();
  JobSpec& spec = *good.mutable_spec();
  const std::vector<std::pair<std::string, std::string>> fields = {
      {"spec.data.train", "train.libfm"},    {"spec.data.eval", "eval.libfm"},
      {"spec.model.initFrom", "from"},       {"spec.storage.directory", "rows"},
      {"spec.checkpoint.directory", "ck"},   {"spec.output.metrics", "metrics"},
      {"spec.output.predictions", "scores"}, {"spec.output.removed", "removed"}};
  int directories = 0;
  for (const auto& [field, name] : fields) Set(field, root + "/" + name, spec);
  for (const auto& [field, name] : fields) {
    for (const std::string& bad :
         {outside + "/" + name, root + "/out/" + name,
          root + "/../" + fs::path(outside).filename().string() + "/" + name}) {
      TrainingJob job = good;
      Set(field, bad, *job.mutable_spec());
      if (field != "spec.checkpoint.directory") {
        Set("spec.checkpoint.directory", absl::StrCat(root, "/ck-", ++directories),
            *job.mutable_spec());
      }
      INFO(field << "=" << bad);
      auto ref = cluster.Submit(job);
      std::string said(ref.status().message());
      if (ref.ok()) {
        JobStatus status = cluster.Status(*ref);
        for (; !IsFinal(status.state()); status = cluster.Status(*ref)) {
          absl::SleepFor(absl::Milliseconds(1));
        }
        CHECK(status.state() == FAILED);
        said = Said(status);
      }
      INFO(said);
      CHECK(absl::StrContains(said, field));
      CHECK(absl::StrContains(said, bad + " leads to ") == (bad != outside + "/" + name));
      CHECK(absl::StrContains(said, outside + "/" + name));
      CHECK(absl::StrContains(said, root + " (--data-root)"));
    }
  }
  for (const char* made : {"rows", "ck", "metrics", "scores", "removed"}) {
    CHECK_FALSE(fs::exists(outside + "/" + made));
  }
  cluster.TrainWell(good);
}

}  // namespace
}  // namespace strata
