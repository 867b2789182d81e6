// Predictions from a checkpoint are what the job's own evaluation wrote, byte for byte: whatever
// the tables, fields and labels, with and without labels in the lines, and under a limit of memory.
#include "tools/cluster/embedded/predict.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/strata/job.pb.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tests/e2e/cluster/reads_below.h"
#include "tests/e2e/cluster/small_job.h"

namespace strata {
namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  REQUIRE(lines.back().empty());
  lines.pop_back();
  return lines;
}

// What is left of each line without its first `columns` columns.
std::string Without(const std::string& text, int columns, char separator) {
  std::string out;
  for (std::string line : LinesOf(text)) {
    for (int c = 0; c < columns; ++c) {
      const size_t at = line.find(separator);
      REQUIRE(at != std::string::npos);
      line = line.substr(at + 1);
    }
    out += line + "\n";
  }
  return out;
}

// A job that was trained, with its checkpoint and its own predictions.
struct Trained {
  explicit Trained(TrainingJob job) {
    JobSpec& spec = *job.mutable_spec();
    spec.mutable_checkpoint()->set_directory(folder.path() + "/ck");
    spec.mutable_output()->set_predictions(folder.path() + "/own.csv");
    input = spec.data().eval(0);
    status = Train(job);
    own = ReadAll(folder.path() + "/own.csv");
    REQUIRE(!own.empty());
  }

  absl::StatusOr<PredictSummary> Run(PredictOptions options) const {
    options.checkpoint_dir = folder.path() + "/ck";
    options.output = folder.path() + "/predicted.csv";
    if (options.inputs.empty()) options.inputs = {input};
    return RunPredict(options);
  }
  std::string Predicted(const PredictOptions& options = {}) {
    const auto done = Run(options);
    INFO(done.status());
    REQUIRE(done.ok());
    summary = *done;
    return ReadAll(folder.path() + "/predicted.csv");
  }
  // Of other lines.
  std::string PredictedOf(const std::string& text) {
    std::ofstream(folder.path() + "/lines") << text;
    return Predicted({.inputs = {folder.path() + "/lines"}});
  }

  const ScratchFolder folder = Folder();
  std::string input;
  JobStatus status;
  std::string own;
  PredictSummary summary;
};

// Users, items, tags and prices; a click, stars and a purchase count; a weight.
void WriteVisits(const std::string& path, uint64_t seed, int lines) {
  std::mt19937_64 random(seed);
  std::ofstream out(path);
  out << "click,stars,count,weight,user,item,tags,price\n";
  for (int l = 0; l < lines; ++l) {
    const uint64_t user = random() % 30, item = random() % 20, price = random() % 100;
    out << ((user + item) % 2) << ',';
    if (l % 3 != 0) out << static_cast<double>(user % 5) + 0.5;
    out << ',' << (item % 4) << ',' << (l % 4 + 1) << ",u" << user << ",i" << item << ",t"
        << (item % 3) << ":0.5|t" << (user % 7) << ',' << price << "\n";
  }
}

TrainingJob Visits(const std::string& folder) {
  TrainingJob job = testing::SmallJob(folder);
  WriteVisits(folder + "/train.csv", 1, 900);
  WriteVisits(folder + "/eval.csv", 2, 250);
  std::ofstream(folder + "/items.txt") << "i0\ni3\ni4\ni11\n";
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->set_format("csv");
  spec.mutable_data()->set_train(0, folder + "/train.csv");
  spec.mutable_data()->set_eval(0, folder + "/eval.csv");
  for (const char* table : {"users", "items", "rest"}) spec.add_tables()->set_name(table);
  const auto field = [&](const char* name, const char* kind, const char* table) -> FieldConfig& {
    FieldConfig& f = *spec.add_fields();
    f.set_name(name);
    f.set_kind(kind);
    if (table[0] != '\0') f.set_table(table);
    return f;
  };
  field("user", "categorical", "users");
  FieldConfig& item = field("item", "categorical", "items");
  item.mutable_vocabulary()->set_file(folder + "/items.txt");
  item.mutable_vocabulary()->set_out_of_vocabulary(8);
  FieldConfig& tags = field("tags", "multiValued", "rest");
  tags.set_separator("|");
  tags.set_weight_separator(":");
  tags.set_pooling("mean");
  field("price", "numeric", "").mutable_transform()->set_type("log");
  FieldConfig& cheap = field("cheap", "numeric", "rest");
  cheap.set_column("price");
  cheap.mutable_transform()->set_type("bucketise");
  for (const float bound : {10.0f, 50.0f}) cheap.mutable_transform()->add_bounds(bound);
  const auto label = [&](const char* name, const char* kind) -> LabelConfig& {
    LabelConfig& l = *spec.add_labels();
    l.set_name(name);
    l.set_kind(kind);
    return l;
  };
  label("click", "binary");
  label("stars", "real").set_mean(2.5f);
  label("count", "count").set_loss("poisson");
  spec.set_sample_weight("weight");
  return job;
}

TEST_CASE("predictions are the job's own, byte for byte", "[e2e][predict]") {
  const ScratchFolder folder = Folder();
  SECTION("libfm") {
    Trained t(testing::SmallJob(folder.path()));
    CHECK(t.Predicted() == t.own);
    CHECK(t.summary.result.auc() == t.status.result().auc());
    CHECK((t.summary.lines == 200 && t.summary.labelled == 200 && t.summary.measured == 200));
    // Without labels the scores are the same, and there is no quality to tell.
    CHECK(t.PredictedOf(Without(ReadAll(t.input), 1, ' ')) == [&] {
      std::string bare;
      for (const std::string& line : LinesOf(t.own)) bare += line.substr(1) + "\n";
      return bare;
    }());
    CHECK((t.summary.lines == 200 && t.summary.labelled == 0));
    // Labels are counted beyond the lines that are measured.
    const std::vector<std::string> lines = LinesOf(ReadAll(t.input));
    const auto bare_before = [&](size_t first) {
      std::string text;
      for (size_t i = 0; i < lines.size(); ++i) {
        text += (i < first ? lines[i].substr(lines[i].find(' ') + 1) : lines[i]) + "\n";
      }
      std::ofstream(t.folder.path() + "/lines") << text;
      t.Predicted({.inputs = {t.folder.path() + "/lines"}, .most_measured = 0});
      return t.summary;
    };
    CHECK(bare_before(0).labelled == 200);
    const PredictSummary late = bare_before(190);
    CHECK((late.labelled == 10 && late.measured == 0 && late.measured_labelled == 0));
  }
  SECTION("csv: five tables of their own codecs and life cycles, and a sequence") {
    TrainingJob job = testing::SmallJob(folder.path());
    testing::UseFiveTables(folder.path(), 600, 400, job);
    job.mutable_spec()->mutable_replicas()->set_servers(2);
    Trained t(job);
    CHECK(t.Predicted() == t.own);
    CHECK(t.summary.labelled == 200);
    // The label is the first column.
    const std::string bare = Without(ReadAll(t.input), 1, ',');
    CHECK(LinesOf(bare)[0] == "f0,f1,f2,f3,f4,f5,clicks");
    CHECK(Without(t.PredictedOf(bare), 1, ',') == Without(t.own, 1, ','));
    CHECK((t.summary.lines == 200 && t.summary.labelled == 0));
  }
  SECTION("csv: fields of every kind, three labels, weights, three tables") {
    Trained t(Visits(folder.path()));
    CHECK(t.Predicted() == t.own);
    REQUIRE(t.summary.result.tasks_size() == 3);
    CHECK(t.summary.result.tasks(1).mse() == t.status.result().tasks(1).mse());
    // One column per task, in the order of the labels.
    const std::string scores = t.Predicted({.scores_only = true});
    CHECK(scores == Without(t.own, 3, ','));
    CHECK(LinesOf(scores)[0].find(',') != std::string::npos);
    const std::string named = t.Predicted({.header = true});
    CHECK(named == "click,stars,count,click_score,stars_score,count_score\n" + t.own);
    CHECK(t.Predicted({.scores_only = true, .header = true}) ==
          "click_score,stars_score,count_score\n" + scores);
    // No label nor weight in the header, or one of the labels.
    CHECK(Without(t.PredictedOf(Without(ReadAll(t.input), 4, ',')), 3, ',') == scores);
    CHECK(t.summary.labelled == 0);
    CHECK(Without(t.PredictedOf(Without(ReadAll(t.input), 2, ',')), 3, ',') == scores);
    CHECK(t.summary.labelled == 250);
    CHECK(t.summary.result.tasks(0).examples() == 0);
  }
}

TEST_CASE("a line scores the same whatever lines come with it", "[e2e][predict]") {
  const ScratchFolder folder = Folder();
  Trained t(Visits(folder.path()));
  const std::vector<std::string> lines = LinesOf(ReadAll(t.input));
  std::string each;
  for (size_t i = 1; i < 20; ++i) each += t.PredictedOf(lines[0] + "\n" + lines[i] + "\n");
  const std::vector<std::string> own = LinesOf(t.own);
  CHECK(each == absl::StrJoin(own.begin(), own.begin() + 19, "\n") + "\n");
}

TEST_CASE("a model larger than the limit of memory is served from SSD", "[e2e][predict]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = testing::ManyFeaturesJob(folder.path(), 32, 2);
  testing::WriteLibfm(folder.path() + "/eval.libfm", 2, 600, 6, 1000);
  SECTION("the job's") { job.mutable_spec()->mutable_storage()->set_dram_bytes_per_server("1MiB"); }
  SECTION("one that is given") {}
  SECTION("in RocksDB") { job.mutable_spec()->mutable_storage()->set_ssd("rocksdb"); }
  const bool of_job = !job.spec().storage().dram_bytes_per_server().empty();
  Trained t(job);
  {
    const testing::ReadsBelow reads;
    CHECK(t.Predicted(of_job ? PredictOptions() : PredictOptions{.dram_bytes = "1MiB"}) == t.own);
    CHECK(reads.count() > 0);
  }
  const testing::ReadsBelow reads;
  CHECK(t.Predicted({.dram_bytes = "0"}) == t.own);
  CHECK(reads.count() == 0);
  const auto says = [&](const char* limit) {
    const absl::Status s = t.Run({.dram_bytes = limit}).status();
    return std::string(s.message());
  };
  CHECK(says("much").find("--dram-bytes: 'much' is not a size") == 0);
  CHECK(says("4KiB").find("--dram-bytes is too small") != std::string::npos);
}

TEST_CASE("input of another job is told by what it lacks", "[e2e][predict]") {
  const ScratchFolder folder = Folder();
  Trained t(Visits(folder.path()));
  const auto says = [&](const PredictOptions& options) {
    const absl::Status s = t.Run(options).status();
    CHECK(absl::IsInvalidArgument(s));
    return std::string(s.message());
  };
  std::ofstream(folder.path() + "/other.csv") << "user,thing,tags,price\nu1,i1,t1,3\n";
  CHECK(says({.inputs = {folder.path() + "/other.csv"}}) ==
        folder.path() +
            "/other.csv:1: spec.fields[1].column: \"item\" is no column of the header, which "
            "names \"user\", \"thing\", \"tags\", \"price\"; name one of these, or give the file "
            "that "
            "column (of the job whose checkpoint it is)");
  CHECK(says({.format_override = "libfm"})
            .find("format libfm gives 0 numbers a line, and the "
                  "model takes 1") == 0);
  std::ofstream(folder.path() + "/bad.csv")
      << "user,item,tags,price\nu1,i1,t1,3\nu1,i1,t1,dear\nu2,i1,t1,4\n";
  const PredictOptions bad{.inputs = {folder.path() + "/bad.csv"}};
  CHECK(says(bad).find(folder.path() + "/bad.csv:3:10: ") == 0);
  PredictOptions allowed = bad;
  allowed.max_bad_lines = 1;
  CHECK(LinesOf(t.Predicted(allowed)).size() == 2);
  CHECK((t.summary.lines == 2 && t.summary.bad_lines == 1));
}

}  // namespace
}  // namespace strata
