// Data of other formats through a whole embedded job: the model depends neither on how a file is
// compressed nor on the cluster.
#include <catch2/catch.hpp>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "proto/strata/job.pb.h"
#include "tests/e2e/small_job.h"
#include "tests/skip.h"
#include "tests/worker/data/compressed.h"
#include "tools/cluster/embedded.h"
#include "tools/cluster/scratch_folder.h"

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

TEST_CASE("compressed files train the model of their text, on any cluster", "[e2e][p3]") {
  const ScratchFolder folder = Folder();
  const TrainingJob job = testing::SmallJob(folder.path());
  const JobStatus plain = Train(job);
  const std::string train = ReadFile(job.spec().data().train(0));
  const std::string eval = ReadFile(job.spec().data().eval(0));
  TrainingJob compressed = job;
  DataSpec& data = *compressed.mutable_spec()->mutable_data();
  data.set_train(0, WriteFile(folder.path() + "/train.gz",
                              Gzip(train.substr(0, 999)) + Gzip(train.substr(999))));
  data.set_eval(0, WriteFile(folder.path() + "/eval.zst", Zstd(eval)));
  for (const TrainingJob& other : {compressed, Spread(compressed)}) {
    const JobStatus status = Train(other);
    CHECK(status.model_hash() == plain.model_hash());
    CHECK(status.result().auc() == plain.result().auc());
    CHECK(status.result().logloss() == plain.result().logloss());
  }
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
  CHECK(status.result().auc() > 0.6);  // half of the held-out lines are those of training
  CHECK(Train(Spread(job)).model_hash() == status.model_hash());
}

}  // namespace
}  // namespace strata
