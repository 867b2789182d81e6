// What `strata estimate` says, against what a job that really runs takes.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/skip.h"
#include "tests/temp_folder.h"

namespace {

using strata::LongRun;

const std::string& Folder() {
  static const strata::TempFolder folder;
  return folder.path();
}

// Runs strata in the folder; returns the most that it had resident, in bytes.
double Run(const std::string& arguments) {
  const std::string program = std::string(std::getenv("TEST_SRCDIR")) + "/strata/tools/cli/strata";
  const std::string command =
      "cd '" + Folder() + "' && exec '" + program + "' " + arguments + " >out 2>err";
  const pid_t child = fork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  struct rusage usage {};
  REQUIRE(wait4(child, &status, 0, &usage) == child);
  INFO(arguments);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 0);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

std::string Output() {
  std::ifstream in(Folder() + "/out");
  return {std::istreambuf_iterator<char>(in), {}};
}

// Trains with `change`, and compares with the estimate: at most so much of the measured bytes off.
void Compare(const std::string& change, double least, double most) {
  Run("estimate -f job.yaml --json" + change);
  const auto estimate = nlohmann::json::parse(Output());
  const double measured = Run("train -f job.yaml --json" + change);
  const double told = estimate["oneProcessBytes"].get<double>();
  INFO("job" << change << ": estimated " << told / 1048576 << " MiB, measured "
             << measured / 1048576);
  CHECK(told > measured * least);
  CHECK(told < measured * most);
}

TEST_CASE("an embedded job takes what was estimated, to 15 percent", "[estimate]") {
  Run("generate criteo --rows 100000 --vocab 3000000 --zipf 0.6 --output t.tsv");
  std::ofstream(Folder() + "/job.yaml")
      << "apiVersion: strata/v1\nkind: TrainingJob\nmetadata: {name: j}\nspec:\n"
         "  data: {format: criteo, train: [t.tsv]}\n  model: {type: fm}\n"
         "  training: {lanes: 4}\n  storage: {shardsPerServer: 4}\n";
  Compare("", .85, 1.15);
  if (LongRun()) Compare(" --set spec.training.batchSize=2048", .85, 1.15);
  // Two servers of one process lend each other what each is told to need at its busiest moment.
  Compare(" --set spec.replicas.servers=2", .85, 1.25);
}

// Rows of steps lie where a GPU's memory would be, with its model and its tier. Rows weigh most.
TEST_CASE("a job whose GPU is host threads takes what was estimated", "[estimate]") {
  const std::string host =
      " --set spec.worker.device=host --set spec.storage.gpuBackend=host"
      " --set spec.storage.gpuBytesPerServer=4MiB --set spec.model.embeddingDim=64"
      " --set spec.training.batchSize=4096";
  Compare(host, .85, 1.2);
  if (LongRun()) Compare(host + " --set spec.training.lanes=1", .85, 1.25);
  Compare(host + " --set spec.storage.gpuBytesPerServer=0", .85, 1.15);
}

// One pass over so few rows does not fill the tier's buffers, which are half of what it takes; ten
// million rows do (tools/bench/run tiered_training).
TEST_CASE("with a DRAM limit it takes that at most, and not much less", "[estimate]") {
  const std::string limit = " --set spec.storage.dramBytesPerServer=32MiB";
  for (const std::string ssd : {"rowfile", "rocksdb"}) {
    Compare(limit + " --set spec.storage.ssd=" + ssd, .95, 1.35);
  }
}

// Slow snapshots keep every row that changes meanwhile: more than without them, and no more than
// was told.
TEST_CASE("checkpoints under way take no more than was told", "[estimate]") {
  const std::string change =
      " --set spec.checkpoint.directory=checkpoints --set spec.checkpoint.everySteps=5"
      " --set spec.checkpoint.keep=2 --set spec.storage.snapshotBytesPerSecond=4MiB";
  Run("estimate -f job.yaml --json" + change);
  const auto estimate = nlohmann::json::parse(Output());
  const double told = estimate["oneProcessBytes"].get<double>();
  const double snapshots = estimate["snapshotBytes"].get<double>();
  const double measured = Run("train -f job.yaml --json" + change);
  INFO("estimated " << told / 1048576 << " MiB and " << snapshots / 1048576
                    << " of snapshots, measured " << measured / 1048576);
  CHECK(snapshots > 0);
  CHECK(measured < (told + snapshots) * 1.05);
}

// clicks(line): how many the line has.
template <typename Clicks>
void WriteVisits(const std::string& name, int lines, Clicks clicks) {
  std::ofstream out(Folder() + "/" + name);
  out << "label,user,item,clicks\n";
  uint64_t x = 1;
  const auto draw = [&x](uint64_t below) {
    x = x * 6364136223846793005ull + 1442695040888963407ull;
    return (x >> 33) % below;
  };
  for (int l = 0; l < lines; ++l) {
    out << l % 2 << ',' << draw(2000) << ',' << draw(20000) << ',';
    for (int v = 0; v < clicks(l); ++v) out << (v == 0 ? "" : "|") << draw(20000);
    out << '\n';
  }
}

// Trains and predicts, and compares both with the estimate: at least `least` of it and no more.
void CompareVisits(int max_length, double least) {
  std::ofstream(Folder() + "/din.yaml")
      << "apiVersion: strata/v1\nkind: TrainingJob\nmetadata: {name: d}\nspec:\n"
         "  data: {format: csv, train: [visits.csv], eval: [held_out.csv]}\n"
         "  tables: [{name: item, dim: 32}, {name: user, dim: 16}]\n"
         "  fields:\n    - {name: user, kind: categorical, table: user}\n"
         "    - {name: item, kind: categorical, table: item}\n"
         "    - {name: clicks, kind: sequence, maxLength: "
      << max_length
      << ", table: item}\n"
         "  labels: [{name: label, kind: binary}]\n"
         "  model: {type: din, hidden: [200, 80], attentionHidden: [36]}\n"
         "  training: {lanes: 2, batchSize: 64}\n  checkpoint: {directory: din}\n";
  Run("estimate -f din.yaml --json");
  const auto estimate = nlohmann::json::parse(Output());
  const double train = Run("train -f din.yaml --json --overwrite");
  const double predict = Run("predict --checkpoint din held_out.csv --output scores.csv");
  const double told = estimate["oneProcessBytes"].get<double>();
  const double of_predict = estimate["predictBytes"].get<double>();
  INFO("estimated " << told / 1048576 << " MiB and " << of_predict / 1048576 << ", measured "
                    << train / 1048576 << " and " << predict / 1048576);
  CHECK(train < told * 1.05);
  CHECK(train > told * least);
  CHECK(predict < of_predict * 1.05);
  CHECK(predict > of_predict * least);
}

// A block of 4096 lines would take 800 MiB.
TEST_CASE("long sequences are scored by as many lines as was told", "[estimate]") {
  for (const char* name : {"visits.csv", "held_out.csv"}) {
    WriteVisits(name, 3000, [](int) { return 200; });
  }
  CompareVisits(200, .75);
}

// The last lines are fifty times as long as the others.
TEST_CASE("lines in order of their length are scored by as much as was told", "[estimate]") {
  constexpr int kLines = 4000, kLong = 400;
  for (const char* name : {"visits.csv", "held_out.csv"}) {
    WriteVisits(name, kLines, [](int line) { return line < kLines - kLong ? 20 : 1000; });
  }
  CompareVisits(1000, .6);
}

TEST_CASE("lanes of easgd take no more than was told", "[estimate]") {
  Compare(" --set spec.training.mode=easgd", .95, 1.5);
}

TEST_CASE("rows that are expected can be given", "[estimate]") {
  Run("estimate -f job.yaml --json --rows 100000000");
  const auto estimate = nlohmann::json::parse(Output());
  CHECK(estimate["rows"] == 100000000);
  CHECK(estimate["oneProcessBytes"].get<double>() > 1.4e10);
}

}  // namespace
