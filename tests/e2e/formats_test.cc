// Data of other formats through a whole embedded job: the model depends neither on how a file is
// compressed nor on the cluster.
#include <fcntl.h>
#include <google/protobuf/text_format.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>

#include "proto/job/fields/field_form.h"
#include "proto/job/job_spec.h"
#include "proto/strata/job.pb.h"
#include "tests/e2e/cluster/small_job.h"
#include "tests/skip.h"
#include "tests/worker/data/files/compressed.h"
#include "tools/cluster/embedded/embedded.h"
#include "tools/cluster/embedded/scratch_folder.h"
#include "tools/generate/criteo_generator.h"
#include "tools/generate/movielens_generator.h"

namespace strata {
namespace {

JobStatus Train(const TrainingJob& job) {
  EmbeddedOptions options;
  options.job = job;
  auto status = RunEmbedded(options);
  INFO(status.status().ToString());
  REQUIRE(status.ok());
  for (const JobCondition& c : status->conditions()) {
    UNSCOPED_INFO(c.reason() << ": " << c.message());
  }
  REQUIRE(status->state() == SUCCEEDED);
  REQUIRE(status->bad_lines() == 0);
  return *status;
}

ScratchFolder Folder() {
  auto folder = ScratchFolder::Make("strata-test");
  REQUIRE(folder.ok());
  return *std::move(folder);
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string WriteFile(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

TrainingJob Spread(TrainingJob job) {
  job.mutable_spec()->mutable_replicas()->set_servers(2);
  job.mutable_spec()->mutable_replicas()->set_workers(3);
  job.mutable_spec()->mutable_training()->set_pipeline_depth(1);
  return job;
}

// Trains with the file as standard input.
JobStatus TrainFromStandardInput(const TrainingJob& job, const std::string& file) {
  const int before = dup(STDIN_FILENO);  // -1 where it is closed
  const int in = open(file.c_str(), O_RDONLY);
  REQUIRE(in >= 0);
  REQUIRE(dup2(in, STDIN_FILENO) == STDIN_FILENO);
  close(in);
  const JobStatus status = Train(job);
  if (before >= 0) {
    dup2(before, STDIN_FILENO);
    close(before);
  } else {
    close(STDIN_FILENO);
  }
  return status;
}

// "label id:1 ..." in the words of another format; `format` has one feature a field.
std::string FromLibfm(const std::string& libfm, const std::string& format) {
  std::string out = format == "csv" ? "y,a,b,c,d,e,f\n" : "";
  std::istringstream in(libfm);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    out += format == "csv" ? (word == "1" ? "1" : "0") : word;
    for (int f = 0; words >> word; ++f) {
      if (format == "csv") {
        out += "," + word.substr(0, word.find(':'));
      } else {
        out += " " + std::to_string(f) + ":" + word;
      }
    }
    out += "\n";
  }
  return out;
}

// Criteo's tab-separated lines as the csv file with its header.
std::string CriteoCsv(const std::string& tsv) {
  std::string out = "Id,Label";
  for (int i = 1; i <= 13; ++i) out += ",I" + std::to_string(i);
  for (int i = 1; i <= 26; ++i) out += ",C" + std::to_string(i);
  out += "\n";
  std::istringstream in(tsv);
  int id = 0;
  for (std::string line; std::getline(in, line);) {
    std::replace(line.begin(), line.end(), '\t', ',');
    out += std::to_string(id++) + "," + line + "\n";
  }
  return out;
}

// Training and held-out text of the format.
std::pair<std::string, std::string> DataOf(const std::string& format, const std::string& folder) {
  if (format.starts_with("criteo")) {
    std::pair<std::string, std::string> texts;
    CriteoGeneratorOptions lines;
    lines.rows = 200;
    lines.vocabulary = 260;
    for (std::string* text : {&texts.first, &texts.second}) {
      REQUIRE(GenerateCriteo(lines, folder + "/criteo.tsv").ok());
      *text = ReadFile(folder + "/criteo.tsv");
      if (format == "criteo_csv") *text = CriteoCsv(*text);
      lines.first_row = lines.rows;
    }
    return texts;
  }
  testing::WriteLibfm(folder + "/a", 1, 200, 6, 40);
  testing::WriteLibfm(folder + "/b", 2, 100, 6, 40);
  const std::string train = ReadFile(folder + "/a"), eval = ReadFile(folder + "/b");
  if (format == "libfm" || format == "libsvm") return {train, eval};
  return {FromLibfm(train, format), FromLibfm(eval, format)};
}

TEST_CASE("every format gives one model, compressed or not, and from standard input", "[e2e][p3]") {
  const std::string format = GENERATE("criteo", "criteo_csv", "libfm", "libsvm", "libffm", "csv");
  INFO(format);
  const ScratchFolder folder = Folder();
  const auto [train, eval] = DataOf(format, folder.path());
  TrainingJob job = testing::SmallJob(folder.path());
  DataSpec& data = *job.mutable_spec()->mutable_data();
  data.set_format(format);
  if (format == "csv") {
    data.mutable_columns()->set_label("y");
    for (const char* column : {"a", "b", "c", "d", "e", "f"}) {
      data.mutable_columns()->add_categorical(column);
    }
  }
  const auto with = [&](const std::string& train_file, const std::string& eval_file) {
    data.set_train(0, train_file);
    data.set_eval(0, eval_file);
    return job;
  };
  const std::string base = folder.path() + "/";
  const std::string plain = WriteFile(base + "train", train);
  const std::string plain_eval = WriteFile(base + "eval", eval);
  const std::string gz =
      WriteFile(base + "train.gz", Gzip(train.substr(0, 999)) + Gzip(train.substr(999)));
  const std::string zst = WriteFile(base + "train.zst", Zstd(train));
  const JobStatus reference = Train(with(plain, plain_eval));
  CHECK(reference.examples() == 400);
  CHECK(reference.result().examples() >= 100);
  const auto same = [&](const std::string& how, const JobStatus& status) {
    INFO(how);
    CHECK(status.model_hash() == reference.model_hash());
    CHECK(status.examples() == reference.examples());
    CHECK(status.result().logloss() == reference.result().logloss());
  };
  same("gz", Train(with(gz, WriteFile(base + "eval.zst", Zstd(eval)))));
  same("zst, on another cluster",
       Train(Spread(with(zst, WriteFile(base + "eval.gz", Gzip(eval))))));
  same("standard input", TrainFromStandardInput(with("-", plain_eval), plain));
}

TEST_CASE("several features of a field do not depend on the cluster", "[e2e][p3]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = testing::SmallJob(folder.path());
  // The features of each libfm line two by two: three fields of libffm, or three columns of csv.
  const std::string format = GENERATE("libffm", "csv");
  DataSpec& data = *job.mutable_spec()->mutable_data();
  data.set_format(format);
  const auto convert = [&](const std::string& path) {
    std::ifstream in(path);
    std::string out = format == "csv" ? "y,a,b,c\n" : "";
    std::string label;
    for (std::string token; in >> label;) {
      out += label;
      for (int f = 0; f < 6; ++f) {
        in >> token;
        if (format == "libffm") {
          out += " " + std::to_string(f / 2) + ":" + token;
        } else {
          out += (f % 2 == 0 ? "," : "|") + token.substr(0, token.find(':'));
        }
      }
      out += "\n";
    }
    return WriteFile(path + "." + format, out);
  };
  data.set_train(0, convert(data.train(0)));
  data.set_eval(0, convert(data.eval(0)));
  if (format == "csv") {
    ColumnsSpec& columns = *data.mutable_columns();
    columns.set_label("y");
    columns.add_multi_valued()->set_column("a");
    columns.add_multi_valued()->set_column("b");
    columns.mutable_multi_valued(1)->set_pooling("mean");
    columns.add_multi_valued()->set_column("c");
  }
  const JobStatus reference = Train(job);
  CHECK(reference.examples() == 1200);
  CHECK(reference.result().auc() > 0.5);
  const JobStatus spread = Train(Spread(job));
  CHECK(spread.model_hash() == reference.model_hash());
  CHECK(spread.result().logloss() == reference.result().logloss());
}

// A csv job whose columns spec.fields says, over clicks of `strata generate movielens`.
TrainingJob MovielensJob(const std::string& folder) {
  TrainingJob job = testing::SmallJob(folder);
  JobSpec& spec = *job.mutable_spec();
  MovielensGeneratorOptions rows;
  rows.rows = 400;
  rows.users = 50;
  rows.items = 64;
  for (const char* name : {"/part-0", "/part-1", "/eval"}) {
    REQUIRE(GenerateMovielens(rows, folder + name + ".csv").ok());
    rows.first_row += rows.rows;
  }
  REQUIRE(google::protobuf::TextFormat::ParseFromString(R"(
    format: "csv" max_bad_lines: 0 shuffle { buffer_lines: 64 } columns { label: "clicked" })",
                                                        spec.mutable_data()));
  spec.mutable_data()->add_train(folder + "/part-0.csv");
  spec.mutable_data()->add_train(folder + "/part-1.csv");
  spec.mutable_data()->add_eval(folder + "/eval.csv");
  WriteFile(folder + "/items.txt", "i3\ni1\ni4\ni5\ni9\n");
  JobSpec fields;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(R"(
    fields { name: "user" column: "user_id" kind: "categorical" }
    fields { name: "item" column: "item_id" kind: "categorical"
             vocabulary { out_of_vocabulary: 20 } }
    fields { name: "clicks" column: "clicked_items" kind: "multiValued" pooling: "mean" }
    fields { name: "tags" kind: "multiValued" pooling: "max" default_value: "none" }
    fields { name: "price" kind: "numeric" transform { type: "log" } }
    fields { name: "cheap" column: "price" kind: "numeric"
             transform { type: "bucketise" bounds: [2, 5, 20] } })",
                                                        &fields));
  *spec.mutable_fields() = fields.fields();
  spec.mutable_fields(1)->mutable_vocabulary()->set_file(folder + "/items.txt");
  return job;
}

TEST_CASE("columns that spec.fields says train, in part files too", "[e2e][p3]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = MovielensJob(folder.path());
  const JobStatus reference = Train(job);
  CHECK(reference.examples() == 2 * 800);
  CHECK(reference.result().examples() == 400);
  CHECK(reference.result().auc() > 0.55);
  const auto same = [&](const JobStatus& status) {
    CHECK(status.model_hash() == reference.model_hash());
    CHECK(status.result().logloss() == reference.result().logloss());
  };
  same(Train(Spread(job)));
  // The same files as a glob, and as a folder.
  DataSpec& data = *job.mutable_spec()->mutable_data();
  data.clear_train();
  data.add_train(folder.path() + "/part-[01].c*");
  const JobStatus globbed = Train(job);
  same(globbed);
  CHECK(globbed.train_input().files() == 2);
  CHECK(globbed.train_input().first() == folder.path() + "/part-0.csv");
  CHECK(globbed.train_input().last() == folder.path() + "/part-1.csv");
  std::filesystem::create_directory(folder.path() + "/day=2026-11-24");
  for (const char* name : {"part-0.csv", "part-1.csv"}) {
    std::filesystem::rename(folder.path() + "/" + name, folder.path() + "/day=2026-11-24/" + name);
  }
  WriteFile(folder.path() + "/day=2026-11-24/_SUCCESS", "");
  data.set_train(0, folder.path() + "/day=2026-11-24");
  same(Train(job));
  data.set_train(0, folder.path() + "/day=2026-1[12]-*");
  same(Train(Spread(job)));
}

TEST_CASE("a GPU's code pools by max as the CPU does", "[e2e][device]") {
  const ScratchFolder folder = Folder();
  for (const char* type : {"lr", "deepfm", "dlrm"}) {
    INFO(type);
    TrainingJob job = MovielensJob(folder.path());
    JobSpec& spec = *job.mutable_spec();
    spec.mutable_model()->set_type(type);
    spec.mutable_worker()->set_device("cpu");
    const JobStatus cpu = Train(job);
    spec.mutable_worker()->set_device("host");
    const JobStatus host = Train(job);
    CHECK(std::fabs(cpu.result().auc() - host.result().auc()) < 0.005);
    CHECK(std::fabs(cpu.result().logloss() - host.result().logloss()) < 0.005);
  }
}

TEST_CASE("criteo's fields said by spec.fields are its short form", "[e2e]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = testing::SmallJob(folder.path());
  CriteoGeneratorOptions lines;
  lines.rows = 200;
  lines.vocabulary = 260;
  DataSpec& data = *job.mutable_spec()->mutable_data();
  data.set_format("criteo");
  data.set_train(0, folder.path() + "/train.tsv");
  data.set_eval(0, folder.path() + "/train.tsv");
  REQUIRE(GenerateCriteo(lines, data.train(0)).ok());
  REQUIRE(ResolveJob(job).ok());
  const JobStatus reference = Train(job);
  REQUIRE(ToFieldsForm(*job.mutable_spec()).ok());
  CHECK(job.spec().fields_size() == 39);
  CHECK(Train(job).model_hash() == reference.model_hash());
}

TEST_CASE("Criteo's own rows as csv train and evaluate without a bad line", "[e2e][criteo_csv]") {
  const auto real = DataFolder();
  if (!real.has_value()) STRATA_SKIP("needs tools/test --data DIR with criteo_tiny/");
  const ScratchFolder folder = Folder();
  TrainingJob job = testing::SmallJob(folder.path());
  DataSpec& data = *job.mutable_spec()->mutable_data();
  data.set_format("criteo_csv");
  data.set_train(0, *real + "/criteo_tiny/train.csv");
  data.set_eval(0, *real + "/criteo_tiny/train.csv");
  data.add_eval(*real + "/criteo_tiny/test.csv");
  const JobStatus status = Train(job);
  CHECK(status.examples() == 2 * 1999);
  CHECK(status.result().examples() == 2 * 1999);
  CHECK(status.result().positives() > 0);
  CHECK(status.result().positives() < 1999);  // the labels of test.csv are all 0
  CHECK(status.result().auc() > 0.6);         // half of the held-out lines are those of training
  CHECK(Train(Spread(job)).model_hash() == status.model_hash());
}

}  // namespace
}  // namespace strata
