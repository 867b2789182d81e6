// A job may name any path. Whatever is there, and whatever the kernel says of it at whichever call:
// the submission is refused, or the job fails, or it waits for the disk, and says field and path;
// the processes live on, and train the next job.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/runtime/files/path_policy.h"
#include "proto/strata/job.pb.h"
#include "tests/e2e/cluster/faulty_files.h"
#include "tests/e2e/cluster/hostile_runs.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using testing::FaultyFiles;
using testing::HostileCase;
using testing::HostileCluster;
using testing::HostileRuns;
using testing::IsFinal;
using testing::Outcome;
using testing::Said;
using testing::SetPlace;

// Of a folder, of a file that is written, of one that is read.
const std::vector<std::string> kFolders = {"spec.storage.directory", "spec.checkpoint.directory",
                                           "spec.output.removed", "spec.model.initFrom"};
const std::vector<std::string> kWritten = {"spec.output.metrics", "spec.output.predictions"};
const std::vector<std::string> kRead = {"spec.data.train", "spec.data.eval"};

void AddPlaces(HostileCluster& cluster, HostileRuns& runs) {
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

const std::vector<std::string> kErrors = {"EACCES", "EIO",   "ENOSPC",       "EROFS",
                                          "EMFILE", "ELOOP", "ENAMETOOLONG", "EINVAL"};

// Of those that pass and of those that do not; for jobs that take longer, or train to their end.
const std::vector<std::string> kSomeErrors = {"EACCES", "EIO", "ENOSPC", "EROFS"};

// What comes of an error.
enum class Then : uint8_t {
  kFails,
  kFailsUnlessItPasses,
  kSays,
  kWorks,
};

// Calls on a field's path that meet an error: "write" from the first one on, "write-3" from the
// third. So it is met by whom that call is of: the scheduler at the submission, an opening, a cut.
struct Faults {
  std::string field;
  Then then;
  std::string calls;
  bool overwrites = false;  // what is in the path's place
};

void AddFault(const Faults& row, const std::string& call, const std::string& error,
              HostileCluster& cluster, HostileRuns& runs) {
  const std::vector<std::string> words = absl::StrSplit(call, '-');
  const int nth = words.size() == 1 ? 1 : std::stoi(words[1]);
  HostileCase c{row.field, "", Outcome::kFails};
  c.fault = cluster.NewFolder() + "/" + FaultyFiles::NameOf(words[0], error, nth);
  c.path = c.fault + "/place";
  fs::create_directory(c.fault);
  c.overwrite = row.overwrites;
  if (row.field == "spec.model.initFrom") cluster.CopyCheckpoint(c.path);
  if (row.field == kRead[0] || row.field == kRead[1]) {
    fs::copy(cluster.folder() + "/train.libfm", c.path);
  }
  if (row.overwrites && row.field == "spec.checkpoint.directory") {
    fs::create_directory(c.path);
    cluster.CopyCheckpoint(c.path + "/step-000000000004");
  } else if (row.overwrites) {
    std::ofstream(c.path) << "of another run\n";
  }
  const bool waits = row.then == Then::kFailsUnlessItPasses && Passes(error);
  c.outcome = row.then == Then::kWorks  ? Outcome::kWorks
              : row.then == Then::kSays ? Outcome::kSays
              : waits                   ? Outcome::kWaits
                                        : Outcome::kFails;
  runs.Add(std::move(c));
}

void AddFaults(const std::vector<Faults>& table, const std::vector<std::string>& errors,
               HostileCluster& cluster, HostileRuns& runs) {
  for (const Faults& row : table) {
    const std::vector<std::string> calls = absl::StrSplit(row.calls, ',');
    for (const std::string& call : calls) {
      for (const std::string& error : errors) AddFault(row, call, error, cluster, runs);
    }
  }
}

void AddFaults(HostileCluster& cluster, HostileRuns& runs) {
  const std::string storage = "spec.storage.directory", checkpoint = "spec.checkpoint.directory";
  const std::string metrics = "spec.output.metrics";
  AddFaults(
      {{storage, Then::kFailsUnlessItPasses,
        "mkdir,look,lstat,list,open,write,sync,rename,mkdir-5,list-2,open-8,write-2,write-3,"
        "rename-2"},
       {checkpoint, Then::kFails,
        "mkdir,access,list,look,open,write,sync,rename,link,access-2,list-2,list-4,open-2,sync-2"},
       {"spec.output.removed", Then::kFailsUnlessItPasses, "mkdir,list,open,truncate"},
       {"spec.output.predictions", Then::kFails, "look,look-4,look-7,open,write,rename"},
       {"spec.model.initFrom", Then::kFails, "open,read"},
       {"spec.data.train", Then::kFails, "open,info,read"},
       {"spec.data.eval", Then::kFails, "open,info,read"}},
      kErrors, cluster, runs);
  AddFaults(
      // From "look-2" on: what removes the job's folder, which stays and is tried again.
      {{storage, Then::kWorks, "info,look-2,read,list-3,remove,rmdir"},
       {checkpoint, Then::kWorks, "remove,lstat,mkdir-4"},
       {checkpoint, Then::kFails, "remove", /*overwrites=*/true},
       {checkpoint, Then::kWorks, "rmdir", /*overwrites=*/true},  // without files it is none
       {metrics, Then::kWorks, "look"},
       {"spec.output.removed", Then::kWorks, "look"},
       {metrics, Then::kSays, "info,write"},
       {metrics, Then::kFails, "open", /*overwrites=*/true}},
      kSomeErrors, cluster, runs);
  // Lines of metrics wait for room, and a job without them still trains.
  for (const std::string& error : kErrors) {
    const Then then = error == "ENOSPC" ? Then::kSays : Then::kFails;
    AddFault({metrics, then, ""}, "open", error, cluster, runs);
  }
}

TEST_CASE("no path of a job ends a process, whatever is there and whatever the kernel says",
          "[hostile]") {
  HostileCluster cluster;
  HostileRuns runs(cluster);
  AddPlaces(cluster, runs);
  const int places = runs.count();
  AddFaults(cluster, runs);
  runs.Finish();
  CHECK(places >= 100);
  CHECK(runs.count() >= 500);
  cluster.TrainWell(cluster.job());
}

TEST_CASE("commits and cuts that meet an error say the field, and go on or fail", "[hostile]") {
  HostileCluster cluster;
  HostileRuns runs(cluster);
  // JOB, the segment's header and OPEN are written when the job is opened, records after them. A
  // commit that the disk refuses waits, whatever the error: it is acknowledged to nobody.
  for (const std::string& error : kErrors) {
    for (const auto& [field, nth] :
         {std::pair("spec.storage.directory", 4), std::pair("spec.output.removed", 1)}) {
      const std::string fault =
          cluster.NewFolder() + "/" + FaultyFiles::NameOf("write", error, nth);
      fs::create_directory(fault);
      runs.Add({field, fault + "/place", Outcome::kWaits, fault});
    }
  }
  // The lock's calls come first, then those of the server's file, then the manifest's.
  AddFaults({{"spec.checkpoint.directory", Then::kFailsUnlessItPasses,
              "mkdir-3,open-3,write-2,truncate,sync-3,rename-2,open-5,sync-4,look-3,open-6,read,"
              "list-5,open-7,look-4,open-9,write-3,sync-5,rename-3,sync-6"}},
            kSomeErrors, cluster, runs);
  // The scheduler reads the manifest at the submission, the server once more, and then the shard.
  AddFaults({{"spec.model.initFrom", Then::kFails, "open-2,open-3"}}, {"EACCES"}, cluster, runs);
  runs.Finish();
  CHECK(runs.count() >= 90);
  cluster.TrainWell(cluster.job());
}

TEST_CASE("jobs keep to the data roots, by whatever links", "[hostile][data_root]") {
  HostileCluster cluster;
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
  for (const auto& [field, name] : fields) SetPlace(field, root + "/" + name, spec);
  for (const auto& [field, name] : fields) {
    for (const std::string& bad :
         {outside + "/" + name, root + "/out/" + name,
          root + "/../" + fs::path(outside).filename().string() + "/" + name}) {
      TrainingJob job = good;
      SetPlace(field, bad, *job.mutable_spec());
      if (field != "spec.checkpoint.directory") {
        SetPlace("spec.checkpoint.directory", absl::StrCat(root, "/ck-", ++directories),
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
