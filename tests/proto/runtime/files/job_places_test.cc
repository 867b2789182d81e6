#include "proto/runtime/files/job_places.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/prediction_names.h"
#include "proto/strata/job.pb.h"
#include "tests/temp_folder.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

// A job over two files, with folders beside them and a link `link` to the folder.
class Fixture {
 public:
  Fixture() {
    for (const char* file : {"train", "eval", "old"}) std::ofstream(Path(file)) << "1 7:1\n";
    for (const char* folder : {"ckpt", "ckpt/step-000000000004", "from", "removed", "other"}) {
      fs::create_directory(Path(folder));
    }
    std::ofstream(Path("from/MANIFEST.json")) << "{}\n";
    fs::create_directory_symlink(folder_.path(), Path("link"));
    spec.mutable_data()->add_train(Path("train"));
    spec.mutable_data()->add_eval(Path("eval"));
  }
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string Problem(const JobPlacesOptions& options = {}) const {
    const absl::Status s = CheckJobPlaces(spec, options);
    if (s.ok()) return "OK";
    CHECK(absl::IsInvalidArgument(s));
    return std::string(s.message());
  }

  JobSpec spec;

 private:
  const TempFolder folder_;
};

TEST_CASE("a job whose places are its own each is right", "[files][places]") {
  Fixture f;
  CHECK(f.Problem() == "OK");
  f.spec.mutable_output()->set_metrics(f.Path("old"));
  f.spec.mutable_output()->set_predictions(f.Path("ckpt/scores"));  // beside checkpoints
  f.spec.mutable_output()->set_removed(f.Path("removed"));
  f.spec.mutable_checkpoint()->set_directory(f.Path("ckpt"));
  f.spec.mutable_storage()->set_directory(f.Path("ckpt/rows"));
  f.spec.mutable_model()->mutable_init_from()->set_checkpoint(f.Path("ckpt/step-000000000004"));
  f.spec.mutable_data()->add_train("-");
  f.spec.mutable_data()->add_train(f.Path("train"));  // twice
  CHECK(f.Problem({.job_file = f.Path("job.yaml")}) == "OK");
}

TEST_CASE("an output is no file that the job reads, however it is spelt", "[files][places]") {
  Fixture f;
  fs::create_hard_link(f.Path("eval"), f.Path("hard"));
  fs::create_symlink(f.Path("eval"), f.Path("soft"));
  for (const char* name : {"eval", "link/eval", "other/../eval", "hard", "soft", "./eval"}) {
    JobSpec& spec = f.spec;
    spec.mutable_output()->set_metrics(f.Path(name));
    CHECK(f.Problem() == "spec.output.metrics: " + f.Path(name) +
                             " is the same file as spec.data.eval[0] " + f.Path("eval") +
                             ", which the job reads; name another one");
    spec.mutable_output()->clear_metrics();
    spec.mutable_output()->set_predictions(f.Path(name));
    CHECK(f.Problem().find("spec.output.predictions: " + f.Path(name) + " is the same file as ") ==
          0);
    spec.mutable_output()->clear_predictions();
  }
  f.spec.mutable_output()->clear_predictions();
  std::ofstream(f.Path("words")) << "a\nb\n";
  f.spec.add_fields()->mutable_vocabulary()->set_file(f.Path("words"));
  f.spec.mutable_output()->set_metrics(f.Path("link/words"));
  CHECK(f.Problem() == "spec.output.metrics: " + f.Path("link/words") +
                           " is the same file as spec.fields[0].vocabulary.file " +
                           f.Path("words") + ", which the job reads; name another one");
  f.spec.mutable_output()->set_metrics(f.Path("link/job.yaml"));
  CHECK(f.Problem() == "OK");
  std::ofstream(f.Path("job.yaml")) << "kind: TrainingJob\n";
  CHECK(f.Problem({.job_file = f.Path("job.yaml")}).find("the same file as the job file ") !=
        std::string::npos);
}

TEST_CASE("what predictions are written under on their way is the job's as well",
          "[files][places]") {
  Fixture f;
  fs::create_symlink(f.Path("other/target"), f.Path("soft"));
  for (const char* file :
       {"scores.next", "scores.next.tmp", "scores.tmp", "other/target.next", "soft.next"}) {
    std::ofstream(f.Path(file)) << "1 7:1\n";
  }
  const auto problem = [&](const std::string& predictions, const std::string& read) {
    f.spec.mutable_output()->set_predictions(f.Path(predictions));
    f.spec.mutable_data()->set_eval(0, f.Path(read));
    return f.Problem();
  };
  for (const char* name : {"scores.next", "scores.next.tmp"}) {
    CHECK(problem("scores", name) == "spec.output.predictions: " + f.Path(name) +
                                         " is the same file as spec.data.eval[0] " + f.Path(name) +
                                         ", which the job reads; name another one");
    CHECK(problem("scores", std::string("link/") + name) != "OK");
  }
  CHECK(problem("scores", "scores.tmp") == "OK");
  // Where a link leads to, they are written beside that.
  CHECK(problem("soft", "other/target.next") != "OK");
  CHECK(problem("soft", "soft.next") == "OK");
  f.spec.mutable_data()->set_eval(0, f.Path("eval"));
  f.spec.mutable_output()->set_metrics(f.Path("new.next"));
  f.spec.mutable_output()->set_predictions(f.Path("new"));
  CHECK(f.Problem().find("spec.output.metrics: " + f.Path("new.next") +
                         " is the same file as spec.output.predictions ") == 0);
}

TEST_CASE("what a job writes is told by all names that it has on its way", "[files][places]") {
  Fixture f;
  CHECK(FilesWritten(f.spec).empty());
  fs::create_symlink(f.Path("other/target"), f.Path("soft"));
  f.spec.mutable_output()->set_metrics(f.Path("metrics"));
  f.spec.mutable_output()->set_predictions(f.Path("soft"));
  std::string all;
  for (const WrittenFile& file : FilesWritten(f.spec)) {
    all += file.field + " " + file.path.substr(f.Path("").size()) + "\n";
  }
  const std::string of = "spec.output.predictions ";
  CHECK(all == "spec.output.metrics metrics\n" + of + "soft\n" + of + "other/target.next\n" + of +
                   "other/target.next.tmp\n" + of + "other/target.next.1.tmp\n" + of +
                   "other/target.next.2.tmp\n" + of + "other/target.next.3.tmp\n");
}

TEST_CASE("outputs are files of their own", "[files][places]") {
  Fixture f;
  OutputSpec& output = *f.spec.mutable_output();
  output.set_metrics(f.Path("out"));
  fs::create_symlink("out", f.Path("soft"));  // to what is not there yet
  for (const char* name : {"out", "link/out", "other/../out", "soft"}) {
    output.set_predictions(f.Path(name));
    CHECK(f.Problem() == "spec.output.metrics: " + f.Path("out") +
                             " is the same file as spec.output.predictions " + f.Path(name) +
                             ", which the job writes as well; name another one");
  }
  std::ofstream(f.Path("out")) << "{}\n";
  fs::create_hard_link(f.Path("out"), f.Path("hard"));
  output.set_predictions(f.Path("hard"));
  CHECK(f.Problem().find("spec.output.metrics: ") == 0);
  output.set_predictions(f.Path("more"));
  CHECK(f.Problem() == "OK");
  // Devices keep nothing.
  output.set_metrics("/dev/null");
  output.set_predictions("/dev/null");
  CHECK(f.Problem() == "OK");
  fs::create_symlink("/dev/null", f.Path("null"));
  output.set_metrics(f.Path("null"));
  CHECK(f.Problem() == "OK");
}

TEST_CASE("folders that are written to are not mixed", "[files][places]") {
  Fixture f;
  f.spec.mutable_checkpoint()->set_directory(f.Path("ckpt"));
  f.spec.mutable_storage()->set_directory(f.Path("link/ckpt"));
  CHECK(f.Problem() == "spec.storage.directory: " + f.Path("link/ckpt") +
                           " is the same folder as spec.checkpoint.directory " + f.Path("ckpt") +
                           ", which the job writes as well; name another one");
  // Not looked at, it is told by its name.
  using Storage = JobPlacesOptions::Storage;
  bool looked = false;
  const JobPlacesOptions by_name = {.storage = Storage::kName,
                                    .looking_at = [&](absl::string_view field, const std::string&) {
                                      looked = looked || field == "spec.storage.directory";
                                    }};
  CHECK(f.Problem(by_name) == "OK");
  f.spec.mutable_storage()->set_directory(f.Path("other/../ckpt"));
  CHECK(f.Problem(by_name) != "OK");
  CHECK_FALSE(looked);
  f.spec.mutable_storage()->clear_directory();
  f.spec.mutable_output()->set_removed(f.Path("ckpt/step-000000000004/x"));
  CHECK(f.Problem() == "spec.output.removed: " + f.Path("ckpt/step-000000000004/x") +
                           " lies in spec.checkpoint.directory " + f.Path("ckpt") +
                           ", where the names that begin with step- are the job's own; name "
                           "another place");
  f.spec.mutable_output()->set_removed(f.Path("removed"));
  f.spec.mutable_output()->set_metrics(f.Path("ckpt/LOCK.1"));
  CHECK(f.Problem().find("spec.output.metrics: ") == 0);
  f.spec.mutable_output()->set_metrics(f.Path("removed/removed-00001-000000000000-00000.strata"));
  CHECK(f.Problem().find("spec.output.metrics: ") == 0);
  f.spec.mutable_output()->set_metrics(f.Path("removed/metrics"));
  CHECK(f.Problem() == "OK");
  f.spec.mutable_data()->set_train(0, f.Path("removed/removed-x"));
  CHECK(f.Problem().find("spec.data.train[0]: ") == 0);
}

// The kernel's files; looks at what is the servers' are counted.
class Watched : public FileSystem {
 public:
  int Look(const std::string& path, FileInfo& out) override {
    looks += path.starts_with("/strata-away") ? 1 : 0;
    return FileSystem::Look(path, out);
  }
  int ReadLink(const std::string& path, std::string& target) override {
    looks += path.starts_with("/strata-away") ? 1 : 0;
    return FileSystem::ReadLink(path, target);
  }
  int LookAtLink(const std::string& path, FileInfo& out) override {
    looks += path.starts_with("/strata-away") ? 1 : 0;
    return FileSystem::LookAtLink(path, out);
  }
  int looks = 0;
};

TEST_CASE("nothing above the servers' folder is looked at where that is told by its name",
          "[files][places]") {
  Fixture f;
  Watched files;
  f.spec.mutable_storage()->set_directory("/strata-away/rows/x");
  f.spec.mutable_checkpoint()->set_directory(f.Path("ckpt"));
  f.spec.mutable_model()->mutable_init_from()->set_checkpoint(f.Path("from"));
  f.spec.mutable_output()->set_removed(f.Path("removed"));
  const JobPlacesOptions by_name = {.storage = JobPlacesOptions::Storage::kName};
  const bool overwrite = GENERATE(false, true);
  JobPlacesOptions options = by_name;
  options.overwrite = overwrite;
  CHECK(CheckJobPlaces(f.spec, options, files).ok());
  CHECK(files.looks == 0);
  // By name, what lies in a checkpoint or among files of ours is still told.
  f.spec.mutable_storage()->set_directory(f.Path("other/../from/rows"));
  CHECK(absl::IsInvalidArgument(CheckJobPlaces(f.spec, options, files)));
  f.spec.mutable_storage()->set_directory(f.Path("ckpt/step-1"));
  CHECK(absl::IsInvalidArgument(CheckJobPlaces(f.spec, options, files)));
}

TEST_CASE("who is told what is looked at hears of the field whose folders those are",
          "[files][places]") {
  Fixture f;
  std::string field, wrong;
  class Files : public FileSystem {
   public:
    Files(const std::string& below, const std::string* field, std::string* wrong)
        : below_(below), field_(field), wrong_(wrong) {}
    int Look(const std::string& path, FileInfo& out) override {
      if (path.starts_with(below_) && *field_ != "spec.checkpoint.directory") *wrong_ = *field_;
      return FileSystem::Look(path, out);
    }

   private:
    const std::string below_;
    const std::string* const field_;
    std::string* const wrong_;
  } files(f.Path("other"), &field, &wrong);
  f.spec.mutable_checkpoint()->set_directory(f.Path("other/a/b"));
  f.spec.mutable_model()->mutable_init_from()->set_checkpoint(f.Path("from"));
  JobPlacesOptions options;
  options.looking_at = [&](absl::string_view at, const std::string&) { field = std::string(at); };
  CHECK(CheckJobPlaces(f.spec, options, files).ok());
  CHECK(wrong == "");
}

TEST_CASE("nothing is written into the checkpoint that a job starts from", "[files][places]") {
  Fixture f;
  f.spec.mutable_model()->mutable_init_from()->set_checkpoint(f.Path("from"));
  const std::string reads = " lies in the checkpoint spec.model.initFrom " + f.Path("from") +
                            ", which the job reads; name another place";
  f.spec.mutable_output()->set_metrics(f.Path("link/from/MANIFEST.json"));
  CHECK(f.Problem() == "spec.output.metrics: " + f.Path("link/from/MANIFEST.json") + reads);
  f.spec.mutable_output()->clear_metrics();
  for (const char* name : {"from", "from/new/deep", "link/from"}) {
    f.spec.mutable_checkpoint()->set_directory(f.Path(name));
    CHECK(f.Problem() == "spec.checkpoint.directory: " + f.Path(name) + reads);
  }
  // One of the directory's own: --overwrite removes it.
  f.spec.mutable_checkpoint()->set_directory(f.Path("ckpt"));
  f.spec.mutable_model()->mutable_init_from()->set_checkpoint(
      f.Path("link/ckpt/step-000000000004"));
  CHECK(f.Problem() == "OK");
  CHECK(f.Problem({.overwrite = true}) ==
        "spec.model.initFrom: " + f.Path("link/ckpt/step-000000000004") +
            " lies in spec.checkpoint.directory " + f.Path("ckpt") +
            ", whose checkpoints --overwrite removes; start from a copy elsewhere, or write to "
            "another directory");
}

TEST_CASE("a program writes nothing into the checkpoint that it reads", "[files][places]") {
  Fixture f;
  for (const char* name : {"from", "link/from", "from/export", "other/../from/MANIFEST.json"}) {
    const absl::Status s = CheckOutsideCheckpoint("--output", f.Path(name), f.Path("from"));
    CHECK(absl::IsFailedPrecondition(s));
    CHECK(s.message() == "--output " + f.Path(name) + " lies in the checkpoint " + f.Path("from") +
                             ", which is read; name another place");
  }
  for (const char* name : {"other", "new", "fromage", "ckpt"}) {
    CHECK(CheckOutsideCheckpoint("--output", f.Path(name), f.Path("from")).ok());
  }
  CHECK(CheckOutsideCheckpoint("--output", "/dev/null", f.Path("from")).ok());
}

TEST_CASE("standard output is what the process has open, by whatever name", "[files][places]") {
  const std::string is = "/proc/" + std::to_string(getpid()) + "/fd/1";
  for (const char* name : {"/dev/stdout", "/proc/self/fd/1"}) {
    const auto place = PlaceOfPredictions(name);
    REQUIRE(place.ok());
    CHECK(place->device);
    CHECK(place->path == is);
  }
  CHECK(PlaceOfPredictions("/dev/null")->device);
}

TEST_CASE("an output is a file in a folder that is there, or a device", "[files][places]") {
  const TempFolder folder;
  const std::string base = folder.path();
  const auto fault = [](const std::string& path) {
    return std::string(PlaceOfOutput("--output", path).status().message());
  };
  CHECK(fault("") == "--output has no name; name a file");
  CHECK(fault(base) == "--output " + base + " is a folder; name a file in it");
  CHECK(fault(base + "/new/") == "--output " + base + "/new/ is a folder; name a file in it");
  CHECK(fault(base + "/none/x") == "--output " + base + "/none/x: there is no folder " + base +
                                       "/none; make it, or name another place");
  CHECK(PlaceOfOutput("--output", base + "/new")->path == base + "/new");
  CHECK_FALSE(PlaceOfOutput("--output", base + "/new")->device);
  CHECK(PlaceOfOutput("--output", "new-here").ok());  // a name alone
  for (const char* device : {"-", "/dev/null"}) CHECK(PlaceOfOutput("--output", device)->device);
}

}  // namespace
}  // namespace strata
