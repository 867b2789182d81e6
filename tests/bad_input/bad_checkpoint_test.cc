// Checkpoints that are damaged, missing or of something else, as a user meets them.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/runtime/files/manifest_io.h"
#include "tests/bad_input/user.h"
#include "tests/proto/runtime/files/other_format.h"

namespace strata {
namespace {

// A job that has left checkpoints of steps 1 to 3 in c: each is the last of a run of one epoch, so
// that none is passed over because the one before is still being written.
void Train(const User& user) {
  user.Write("train.libfm", GoodLines(32));
  user.WriteJob("  checkpoint: {directory: c, keep: 3}\n");
  const std::string epochs = "train -f job.yaml --set spec.training.epochs=";
  REQUIRE(user.Strata(epochs + "1").exit_code == 0);
  REQUIRE(user.Strata(epochs + "2 --resume").exit_code == 0);
  REQUIRE(user.Strata(epochs + "3 --resume").exit_code == 0);
}

std::string Step(int step) { return "c/step-00000000000" + std::to_string(step); }

// The file of shard 0; its name tells generation and cut.
std::string ShardOf(const User& user, int step) {
  for (const auto& entry : std::filesystem::directory_iterator(user.Path(Step(step)))) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("shard-00000", 0) == 0) return Step(step) + "/" + name;
  }
  FAIL("no shard 0 in " << Step(step));
  return "";
}

void FlipBit(const User& user, const std::string& name) {
  std::string bytes = user.Read(name);
  REQUIRE(!bytes.empty());
  bytes[bytes.size() / 2] ^= 4;
  user.Write(name, bytes);
}

std::string ModelHash(const ProgramResult& r) {
  const size_t at = r.out.find("model hash");
  return at == std::string::npos ? r.err : r.out.substr(at, 43);
}

TEST_CASE("a flipped bit in a checkpoint is told by file, and training goes on from the one before",
          "[bad_input]") {
  User user;
  Train(user);
  const std::string right =
      ModelHash(user.Strata("train -f job.yaml --resume --set spec.training.epochs=4"));
  std::filesystem::remove_all(user.Path("c"));
  Train(user);
  const std::string shard = ShardOf(user, 3);
  FlipBit(user, shard);
  const std::string whole = "the newest whole one is " + Step(2);
  CheckSays(user.Strata("checkpoint verify c"), 1, {shard, "CRC32C", "the manifest says", whole});
  CheckSays(user.Strata("checkpoint verify " + Step(3)), 1, {shard, whole});
  CheckSays(user.Strata("checkpoint verify " + Step(3) + "/"), 1, {shard, whole});
  CheckSays(user.Strata("predict --checkpoint c train.libfm"), 1,
            {shard, "does not match its checksum", whole, "--checkpoint " + Step(2)});
  CHECK(user.Strata("predict --checkpoint " + Step(2) + " train.libfm").exit_code == 0);
  CheckSays(user.Strata("checkpoint verify " + Step(2)), 0, {"is whole"});
  const ProgramResult r = user.Strata("train -f job.yaml --resume --set spec.training.epochs=4");
  CheckSays(r, 0, {"CheckpointDamaged", user.Path(shard), "rolled back to a checkpoint 1 times"});
  CHECK(ModelHash(r) == right);
}

TEST_CASE("an older checkpoint never stands in for a damaged newer one without a word",
          "[bad_input]") {
  User user;
  Train(user);
  FlipBit(user, Step(3) + "/MANIFEST.json");
  const std::vector<std::string> one = {Step(3) + "/MANIFEST.json",
                                        "the newest whole one is " + Step(2)};
  CheckSays(user.Strata("checkpoint verify c"), 1, one);
  CheckSays(user.Strata("predict --checkpoint c train.libfm"), 1, one);
  // Nor one that is damaged in another way.
  FlipBit(user, ShardOf(user, 2));
  CheckSays(user.Strata("checkpoint verify c"), 1, {"the newest whole one is " + Step(1)});
  FlipBit(user, ShardOf(user, 1));
  CheckSays(user.Strata("predict --checkpoint c train.libfm"), 1,
            {Step(3) + "/MANIFEST.json", "there is no other whole checkpoint in c"});
}

TEST_CASE("with no whole checkpoint left, resuming is refused instead of starting anew",
          "[bad_input]") {
  User user;
  Train(user);
  for (int step = 1; step <= 3; ++step) FlipBit(user, Step(step) + "/MANIFEST.json");
  CheckSays(user.Strata("checkpoint list c"), 0, {Step(3) + " is damaged", "checksum"});
  CheckSays(user.Strata("checkpoint verify " + Step(3)), 1, {Step(3) + "/MANIFEST.json"});
  CheckSays(user.Strata("predict --checkpoint c train.libfm"), 2, {"no complete checkpoint in c"});
  CheckSays(user.Strata("train -f job.yaml"), 2, {"is not empty", "--overwrite"});
  CheckSays(user.Strata("train -f job.yaml --resume"), 2,
            {"has no checkpoint to resume from: 3 damaged", user.Path(Step(3)), "--overwrite"});
}

TEST_CASE("a checkpoint of another version is not called damaged, and stays", "[bad_input]") {
  User user;
  Train(user);
  testing::PutOtherFormat(user.Path(Step(3)));
  const std::string format =
      absl::StrCat(Step(3), "/MANIFEST.json has format ", testing::kOtherFormat);
  const std::string reads = absl::StrCat("this program reads format ", kManifestFormat);
  const ProgramResult list = user.Strata("checkpoint list c");
  CheckSays(list, 0, {Step(3) + " is of another format", format, reads, Step(2)});
  CHECK_FALSE(absl::StrContains(list.err, "damaged"));
  const ProgramResult json = user.Strata("checkpoint list c --json");
  CHECK(absl::StrContains(json.out, R"("damaged":[],"otherFormat":[{"directory":"c/step-)"));
  for (const char* command : {"show c", "verify c", "repair c", "repair c --dry-run"}) {
    CAPTURE(command);
    const ProgramResult r = user.Strata(absl::StrCat("checkpoint ", command));
    CheckSays(r, 1, {format, reads});
    CHECK_FALSE(absl::StrContains(r.err, "damaged"));
  }
  CheckSays(user.Strata("checkpoint repair c"), 1,
            {absl::StrCat("move ", Step(3), " away by hand")});
  CheckSays(user.Strata("checkpoint show c"), 1, {"the newest whole one is " + Step(2)});
  // Where none is whole, as well.
  for (int step = 1; step <= 2; ++step) testing::PutOtherFormat(user.Path(Step(step)));
  for (const char* command : {"checkpoint show c", "predict --checkpoint c train.libfm"}) {
    CAPTURE(command);
    const ProgramResult r = user.Strata(command);
    CheckSays(r, 1, {format, reads});
    CHECK_FALSE(absl::StrContains(r.err, "damaged"));
  }
}

TEST_CASE("a checkpoint of another model is refused with both values", "[bad_input]") {
  User user;
  Train(user);
  CheckSays(user.Strata("train -f job.yaml --resume --set spec.training.lanes=2"), 2,
            {"spec.training.lanes is 2 but the checkpoint to resume from was made with 4"});
  const std::string job =
      "train -f job.yaml --set spec.checkpoint.directory=d --set "
      "spec.model.initFrom=";
  CheckSays(user.Strata(job + "none"), 2,
            {"spec.model.initFrom " + user.Path("none") + " is no whole checkpoint"});
  CheckSays(user.Strata(job + "c"), 2,
            {"spec.model.initFrom", "name one of them, as in", user.Path(Step(3))});
  CHECK(user.Strata(job + Step(3)).exit_code == 0);
}

TEST_CASE("columns that are not the checkpoint's are refused by name", "[bad_input]") {
  User user;
  std::string lines = "clicked,user,item,shop\n";
  for (int i = 0; i < 32; ++i) {
    lines += std::to_string(i % 2) + ",u" + std::to_string(i % 5) + ",i" + std::to_string(i % 7) +
             ",s" + std::to_string(i % 3) + "\n";
  }
  user.Write("train.csv", lines);
  user.Write("job.yaml",
             "apiVersion: strata/v1\nkind: TrainingJob\nmetadata: {name: j}\nspec:\n"
             "  data:\n    format: csv\n    train: [train.csv]\n"
             "    columns: {label: clicked, categorical: [user, item], ignored: ['*']}\n"
             "  model: {type: deepfm, embeddingDim: 4, hidden: [4]}\n"
             "  training: {mode: bsp, lanes: 2, batchSize: 4, epochs: 1}\n"
             "  checkpoint: {directory: c}\n");
  REQUIRE(user.Strata("train -f job.yaml").exit_code == 0);
  const std::string columns = " --set spec.data.columns.categorical=";
  const std::string resume = "train -f job.yaml --resume --set spec.training.epochs=2";
  CheckSays(user.Strata(resume + columns + "[item,user]"), 2,
            {"the checkpoint to resume from is of another model",
             "field user came before item, and comes after it now", "--overwrite"});
  CheckSays(user.Strata(resume + columns + "[user,shop]"), 2,
            {"field shop: the checkpoint has none", "field item: the job has none"});
  CheckSays(user.Strata(resume + " --set spec.data.shuffle.bufferLines=8"), 2,
            {"spec.data.shuffle.bufferLines is 8 but the checkpoint to resume from was made with"});
  CHECK(user.Strata(resume).exit_code == 0);

  const std::string from = "train -f job.yaml --set spec.checkpoint.directory=d" + columns +
                           "[shop,user,item] --set spec.model.initFrom=" + Step(4);
  CheckSays(
      user.Strata(from), 2,
      {"spec.model.initFrom " + user.Path(Step(4)) + " does not fit the job",
       "field shop: the checkpoint has none; allow it with spec.model.initFrom.newTensors: allow",
       "tensor layer_0_weight was (8, 4), is (12, 4)"});
  const ProgramResult taken = user.Strata(from +
                                          " --set spec.model.initFrom.newTensors=allow"
                                          " --set spec.model.initFrom.droppedTensors=allow");
  CHECK(taken.exit_code == 0);
  CHECK((taken.out + taken.err).find("loaded: table features, ") != std::string::npos);
}

TEST_CASE("no command writes over what it reads, nor a file into the place of a device",
          "[bad_input]") {
  User user;
  const std::string lines = GoodLines(50);
  user.Write("train.libfm", lines);
  user.WriteJob("  checkpoint: {directory: c}\n");
  REQUIRE(user.Strata("train -f job.yaml").exit_code == 0);
  const std::string whole = user.Strata("checkpoint verify c").out;
  std::string folder;
  for (const auto& entry : std::filesystem::directory_iterator(user.Path("c"))) {
    if (entry.is_directory()) folder = entry.path().string();
  }
  REQUIRE(!folder.empty());
  std::filesystem::create_directory_symlink(folder, user.Path("link"));
  const std::vector<std::string> says = {"lies in the checkpoint c/step-"};
  for (const std::string& to : {folder, std::string("link"), std::string("link/new")}) {
    CheckSays(user.Strata("export --checkpoint c --overwrite -o " + to), 2, says);
    CheckSays(user.Strata("checkpoint quantise c " + to), 2, says);
    CheckSays(user.Strata("predict --checkpoint c train.libfm -o " + to + "/MANIFEST.json"), 2,
              to == "link/new" ? std::vector<std::string>{"there is no folder "} : says);
  }
  CHECK(user.Strata("checkpoint verify c").out == whole);
  std::filesystem::create_hard_link(user.Path("train.libfm"), user.Path("hard"));
  for (const char* to : {"train.libfm", "hard", "./train.libfm"}) {
    CheckSays(user.Strata(std::string("predict --checkpoint c train.libfm -o ") + to), 2,
              {"--output", "is the same file as train.libfm"});
  }
  CHECK(user.Read("train.libfm") == lines);
  const std::string pipe = user.Path("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  std::string read;
  std::thread reader([&] { read = user.Read("pipe"); });
  CHECK(user.Strata("predict --checkpoint c train.libfm -o pipe").exit_code == 0);
  reader.join();
  CHECK(std::filesystem::is_fifo(pipe));
  CHECK(read == user.Strata("predict --checkpoint c train.libfm").out);
}

}  // namespace
}  // namespace strata
