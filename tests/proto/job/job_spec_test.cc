#include "proto/job/job_spec.h"

#include <google/protobuf/util/message_differencer.h>

#include <catch2/catch.hpp>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "proto/strata/job.pb.h"

namespace strata {
namespace {

TrainingJob Minimal() {
  TrainingJob job;
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name("clicks-1");
  job.mutable_spec()->mutable_data()->set_format("criteo");
  job.mutable_spec()->mutable_data()->add_train("train.tsv");
  job.mutable_spec()->mutable_model()->set_type("deepfm");
  return job;
}

// The message after `change` was made to a job that is otherwise right; "OK" when it stays right.
std::string Problem(const std::function<void(TrainingJob&)>& change) {
  TrainingJob job = Minimal();
  change(job);
  const absl::Status status = ResolveJob(job);
  if (status.ok()) return "OK";
  REQUIRE(absl::IsInvalidArgument(status));
  return std::string(status.message());
}

std::string SpecProblem(const std::function<void(JobSpec&)>& change) {
  return Problem([&](TrainingJob& job) { change(*job.mutable_spec()); });
}

TEST_CASE("a minimal job gets every default of job.proto", "[job_spec]") {
  TrainingJob job = Minimal();
  REQUIRE(ResolveJob(job).ok());
  const JobSpec& s = job.spec();
  CHECK(s.data().integer_features() == "dense");
  CHECK(s.data().shuffle().enabled());
  CHECK(s.data().shuffle().buffer_lines() == 16384);
  CHECK(s.data().max_bad_lines() == 0);
  CHECK(s.model().embedding_dim() == 16);
  REQUIRE(s.model().hidden().size() == 3);
  CHECK(s.model().hidden(2) == 400);
  CHECK(s.model().init_scale() == 0.01f);
  CHECK(s.optimizer().sparse().type() == "adagrad");
  CHECK(s.optimizer().sparse().learning_rate() == 0.05f);
  CHECK(s.optimizer().sparse().epsilon() == 1e-10f);
  CHECK(s.optimizer().dense().type() == "adam");
  CHECK(s.optimizer().dense().learning_rate() == 0.001f);
  CHECK(s.optimizer().dense().epsilon() == 1e-8f);
  CHECK(s.optimizer().dense().beta1() == 0.9f);
  CHECK(s.optimizer().dense().beta2() == 0.999f);
  CHECK(s.training().mode() == "bsp");
  CHECK(s.training().lanes() == 8);
  CHECK(s.training().batch_size() == 512);
  CHECK(s.training().epochs() == 1);
  CHECK(s.training().seed() == 1);
  CHECK(s.training().pipeline_depth() == 4);
  CHECK_FALSE(s.training().has_threads());
  CHECK(s.replicas().servers() == 1);
  CHECK(s.replicas().workers() == 1);
  CHECK(s.storage().dram_bytes_per_server() == "0");
  CHECK(s.storage().durability() == "logged");
  CHECK(s.storage().replicas() == 1);
  CHECK(s.storage().min_replicas() == 1);
  CHECK_FALSE(s.has_recovery());
  CHECK(s.storage().partitions() == 4096);
  CHECK(s.storage().log_bytes_per_server() == "1GiB");
  CHECK_FALSE(s.storage().has_shards_per_server());
  CHECK(s.checkpoint().keep() == 3);
}

TEST_CASE("resolving twice changes nothing", "[job_spec]") {
  for (const char* format : {"criteo", "libfm", "csv"}) {
    TrainingJob job = Minimal();
    job.mutable_spec()->mutable_data()->set_format(format);
    if (std::string(format) == "csv") {
      ColumnsSpec& columns = *job.mutable_spec()->mutable_data()->mutable_columns();
      columns.set_label("y");
      columns.add_categorical("a");
      columns.set_delimiter("\\t");
    }
    REQUIRE(ResolveJob(job).ok());
    TrainingJob again = job;
    REQUIRE(ResolveJob(again).ok());
    CHECK(google::protobuf::util::MessageDifferencer::Equals(job, again));
  }
}

TEST_CASE("values that were given are kept", "[job_spec]") {
  TrainingJob job = Minimal();
  job.mutable_spec()->mutable_training()->set_seed(0);
  job.mutable_spec()->mutable_data()->mutable_shuffle()->set_enabled(false);
  job.mutable_spec()->mutable_optimizer()->mutable_sparse()->set_type("sgd");
  REQUIRE(ResolveJob(job).ok());
  CHECK(job.spec().training().seed() == 0);
  CHECK_FALSE(job.spec().data().shuffle().enabled());
  CHECK(job.spec().optimizer().sparse().learning_rate() == 0.01f);
  CHECK_FALSE(job.spec().optimizer().sparse().has_epsilon());
}

TEST_CASE("the head of the file is checked", "[job_spec]") {
  CHECK(Problem([](TrainingJob& j) { j.clear_api_version(); }) ==
        "apiVersion: is missing; give one of: strata/v1");
  CHECK(Problem([](TrainingJob& j) { j.set_api_version("v2"); }) ==
        "apiVersion: 'v2' is not one of: strata/v1");
  CHECK(Problem([](TrainingJob& j) { j.set_kind("Job"); }) ==
        "kind: 'Job' is not one of: TrainingJob");
  CHECK(Problem([](TrainingJob& j) { j.clear_metadata(); }) ==
        "metadata.name: is missing; name the job");
  CHECK(Problem([](TrainingJob& j) { j.mutable_metadata()->set_name("a/b"); }) ==
        "metadata.name: 'a/b' may hold letters, digits, '-', '_' and '.' only");
  CHECK(Problem([](TrainingJob& j) { j.mutable_metadata()->set_name(".."); }) ==
        "metadata.name: '..' must not start with '-' or '.'");
  CHECK(Problem([](TrainingJob& j) { j.mutable_metadata()->set_name(std::string(64, 'a')); }) ==
        "metadata.name: has 64 characters; at most 63 are allowed");
  CHECK(Problem([](TrainingJob& j) { j.mutable_metadata()->set_name(std::string(63, 'a')); }) ==
        "OK");
}

TEST_CASE("data is checked", "[job_spec]") {
  CHECK(
      SpecProblem([](JobSpec& s) { s.clear_data(); }) ==
      "spec.data.format: is missing; give one of: criteo, criteo_csv, libfm, libsvm, libffm, csv");
  CHECK(
      SpecProblem([](JobSpec& s) { s.mutable_data()->set_format("parquet"); }) ==
      "spec.data.format: 'parquet' is not one of: criteo, criteo_csv, libfm, libsvm, libffm, csv");
  CHECK(SpecProblem([](JobSpec& s) { s.mutable_data()->clear_train(); }) ==
        "spec.data.train: is missing; name the files to train on");
  CHECK(SpecProblem([](JobSpec& s) { s.mutable_data()->add_eval(""); }) ==
        "spec.data.eval[0]: is empty; name a file");
  CHECK(SpecProblem([](JobSpec& s) { s.mutable_data()->set_integer_features("log"); }) ==
        "spec.data.integerFeatures: 'log' is not one of: dense, bucket");
  CHECK(SpecProblem([](JobSpec& s) {
          s.mutable_data()->set_format("libfm");
          s.mutable_data()->set_integer_features("dense");
        }) ==
        "spec.data.integerFeatures: applies to formats criteo and criteo_csv only, and the format "
        "is libfm; remove "
        "it");
  CHECK(SpecProblem([](JobSpec& s) { s.mutable_data()->mutable_columns()->set_label("y"); }) ==
        "spec.data.columns: applies to format csv only, and the format is criteo; remove it");
  CHECK(SpecProblem([](JobSpec& s) { s.mutable_data()->mutable_shuffle()->set_buffer_lines(0); }) ==
        "spec.data.shuffle.bufferLines: 0 is outside the limits; give a number from 1 to 16777216");
  CHECK(SpecProblem([](JobSpec& s) { s.mutable_data()->set_train(0, "-"); }) == "OK");
  CHECK(SpecProblem([](JobSpec& s) {
          s.mutable_data()->set_train(0, "-");
          s.mutable_data()->add_eval("-");
        }) ==
        "spec.data.eval: '-', standard input, is named more than once in spec.data; it can be read "
        "once");
  for (const char* format : {"criteo_csv", "libffm"}) {
    CHECK(SpecProblem([&](JobSpec& s) { s.mutable_data()->set_format(format); }) == "OK");
  }
}

TEST_CASE("removals are not streamed by copies", "[job_spec]") {
  const auto with = [](uint32_t replicas) {
    return SpecProblem([replicas](JobSpec& s) {
      s.mutable_life_cycle()->mutable_removal()->set_every_steps(1);
      s.mutable_life_cycle()->mutable_removal()->set_ttl_steps(10);
      s.mutable_output()->set_removed("/tmp/removed");
      s.mutable_storage()->set_replicas(replicas);
    });
  };
  CHECK(with(1) == "OK");
  CHECK(with(2) ==
        "spec.output.removed: each of 2 copies of a shard would write it; set "
        "spec.storage.replicas to 1 and spec.storage.durability to logged, or leave it out");
}

TEST_CASE("columns of csv are checked", "[job_spec]") {
  const auto csv = [](const std::function<void(ColumnsSpec&)>& change) {
    return SpecProblem([&](JobSpec& s) {
      s.mutable_data()->set_format("csv");
      ColumnsSpec& columns = *s.mutable_data()->mutable_columns();
      columns.set_label("y");
      columns.add_categorical("a");
      change(columns);
    });
  };
  CHECK(csv([](ColumnsSpec&) {}) == "OK");
  CHECK(csv([](ColumnsSpec& c) { c.clear_label(); }) ==
        "spec.data.columns.label: is missing; name the label's column");
  CHECK(csv([](ColumnsSpec& c) { c.add_numeric("a"); }) ==
        "spec.data.columns.categorical[0]: 'a' is named twice; a column has one use");
  CHECK(csv([](ColumnsSpec& c) { c.clear_categorical(); }) ==
        "spec.data.columns: names no feature; fill numeric, categorical or multiValued");
  CHECK(csv([](ColumnsSpec& c) { c.set_header(false); }) ==
        "spec.data.columns.label: 'y' is not a position; without a header columns are numbered "
        "from 0");
  CHECK(csv([](ColumnsSpec& c) { c.set_delimiter("::"); }) ==
        "spec.data.columns.delimiter: '::' must be one character, or \"\\t\"");
  CHECK(csv([](ColumnsSpec& c) { c.add_ignored("*"); }) == "OK");
  const auto multi = [&](const std::function<void(MultiValuedColumn&)>& change) {
    return csv([&](ColumnsSpec& c) {
      c.clear_categorical();
      MultiValuedColumn& column = *c.add_multi_valued();
      column.set_column("m");
      change(column);
    });
  };
  CHECK(multi([](MultiValuedColumn&) {}) == "OK");
  CHECK(multi([](MultiValuedColumn& m) { m.clear_column(); }) ==
        "spec.data.columns.multiValued[0].column: is empty; name a column");
  CHECK(multi([](MultiValuedColumn& m) { m.set_column("y"); }) ==
        "spec.data.columns.multiValued[0].column: 'y' is named twice; a column has one use");
  CHECK(multi([](MultiValuedColumn& m) { m.set_separator("||"); }) ==
        "spec.data.columns.multiValued[0].separator: '||' must be one character, or \"\\t\"");
  CHECK(multi([](MultiValuedColumn& m) { m.set_separator(","); }) ==
        "spec.data.columns.multiValued[0].separator: ',' is the delimiter of columns too; take "
        "another");
  CHECK(multi([](MultiValuedColumn& m) { m.set_pooling("max"); }) ==
        "spec.data.columns.multiValued[0].pooling: 'max' is not one of: sum, mean");
  CHECK(SpecProblem([](JobSpec& s) { s.mutable_data()->set_format("csv"); }) ==
        "spec.data.columns: is missing; format csv needs label, numeric, categorical, "
        "or spec.fields");
}

TEST_CASE("model and optimizers are checked", "[job_spec]") {
  CHECK(SpecProblem([](JobSpec& s) { s.mutable_model()->set_type("dfm"); }) ==
        "spec.model.type: 'dfm' is not one of: lr, fm, wide_deep, deepfm, dcn_v2, dlrm, "
        "shared_bottom, mmoe, din");
  CHECK(SpecProblem([](JobSpec& s) { s.mutable_model()->set_embedding_dim(0); }) ==
        "spec.model.embeddingDim: 0 is outside the limits; give a number from 1 to 4096");
  CHECK(SpecProblem([](JobSpec& s) {
          s.mutable_model()->add_hidden(8);
          s.mutable_model()->add_hidden(0);
        }) == "spec.model.hidden[1]: 0 is outside the limits; give a number from 1 to 16384");
  const auto sparse = [](const std::function<void(OptimizerConfig&)>& change) {
    return SpecProblem([&](JobSpec& s) { change(*s.mutable_optimizer()->mutable_sparse()); });
  };
  CHECK(sparse([](OptimizerConfig& o) { o.set_type("adamw"); }) ==
        "spec.optimizer.sparse.type: 'adamw' is not one of: sgd, momentum, adagrad, "
        "rowwise_adagrad, adam, ftrl");
  CHECK(sparse([](OptimizerConfig& o) { o.set_learning_rate(-0.5f); }) ==
        "spec.optimizer.sparse.learningRate: -0.5 is outside the limits; give a number above 0 and "
        "below 1e+06");
  CHECK(sparse([](OptimizerConfig& o) { o.set_learning_rate(1.0f / 0.0f); }) ==
        "spec.optimizer.sparse.learningRate: inf is outside the limits; give a number above 0 and "
        "below 1e+06");
  CHECK(sparse([](OptimizerConfig& o) {
          o.set_type("adam");
          o.set_beta2(1.0f);
        }) ==
        "spec.optimizer.sparse.beta2: 1 is outside the limits; give a number of at least 0 and "
        "below 1");
}

TEST_CASE("training, replicas and evaluation are checked together", "[job_spec]") {
  CHECK(SpecProblem([](JobSpec& s) { s.mutable_training()->set_mode("ssp"); }) ==
        "spec.training.mode: 'ssp' is not one of: bsp, async, downpour, easgd");
  CHECK(SpecProblem([](JobSpec& s) { s.mutable_training()->set_batch_size(0); }) ==
        "spec.training.batchSize: 0 is outside the limits; give a number from 1 to 1048576");
  CHECK(SpecProblem([](JobSpec& s) {
          s.mutable_training()->set_lanes(2);
          s.mutable_replicas()->set_workers(3);
        }) ==
        "spec.replicas.workers: 3 is more than spec.training.lanes, 2; a worker hosts at least one "
        "lane: use fewer workers or more lanes");
  CHECK(SpecProblem([](JobSpec& s) { s.mutable_evaluation()->set_every_steps(10); }) ==
        "spec.evaluation.everySteps: 10 needs held-out files; name them in spec.data.eval");
  CHECK(SpecProblem([](JobSpec& s) {
          s.mutable_data()->add_eval("e");
          s.mutable_evaluation()->set_patience(2);
        }) == "spec.evaluation.patience: 2 counts evaluations; set spec.evaluation.everySteps");
}

TEST_CASE("fields of downpour and easgd", "[job_spec]") {
  const auto resolved = [](const std::string& mode) {
    TrainingJob job = Minimal();
    job.mutable_spec()->mutable_training()->set_mode(mode);
    REQUIRE(ResolveJob(job).ok());
    return job.spec().training();
  };
  const TrainingSpec downpour = resolved("downpour");
  CHECK(downpour.n_fetch() == 1);
  CHECK(downpour.n_push() == 1);
  CHECK(downpour.has_warm_start_steps());
  CHECK(downpour.local_learning_rate() == 0.01f);
  CHECK_FALSE(downpour.has_tau());
  const TrainingSpec easgd = resolved("easgd");
  CHECK(easgd.tau() == 10);
  CHECK(easgd.alpha() == 0.9f / 8);
  CHECK_FALSE(easgd.has_n_push());
  const auto problem = [](const std::string& mode,
                          const std::function<void(TrainingSpec&)>& change) {
    return SpecProblem([&](JobSpec& s) {
      s.mutable_training()->set_mode(mode);
      change(*s.mutable_training());
    });
  };
  CHECK(problem("async", [](TrainingSpec& t) { t.set_n_fetch(2); }) ==
        "spec.training.nFetch: is used in mode downpour only, and spec.training.mode is async; "
        "remove it");
  CHECK(
      problem("bsp", [](TrainingSpec& t) { t.set_alpha(0.5f); }) ==
      "spec.training.alpha: is used in mode easgd only, and spec.training.mode is bsp; remove it");
  CHECK(problem("easgd", [](TrainingSpec& t) { t.set_local_learning_rate(0.1f); }) ==
        "spec.training.localLearningRate: is used in mode downpour only; in easgd a lane's step is "
        "that of spec.optimizer: set spec.optimizer.sparse.learningRate and "
        "spec.optimizer.dense.learningRate");
  CHECK(problem("downpour", [](TrainingSpec& t) { t.set_n_push(0); }) ==
        "spec.training.nPush: 0 is outside the limits; give a number from 1 to 8192");
  CHECK(problem("downpour", [](TrainingSpec& t) { t.set_local_learning_rate(-1); }) ==
        "spec.training.localLearningRate: -1 is outside the limits; give a number of at least 0 "
        "and below 1e+06");
  CHECK(problem("easgd", [](TrainingSpec& t) { t.set_tau(8193); }) ==
        "spec.training.tau: 8193 is outside the limits; give a number from 1 to 8192");
  for (const float alpha : {0.0f, 1.5f, std::numeric_limits<float>::quiet_NaN()}) {
    CHECK(problem("easgd", [&](TrainingSpec& t) { t.set_alpha(alpha); }) != "OK");
  }
  CHECK(problem("easgd", [](TrainingSpec& t) { t.set_alpha(1); }) == "OK");
}

TEST_CASE("what workers compute with is checked", "[job_spec]") {
  const auto problem = [](const char* device, const char* precision) {
    return SpecProblem([&](JobSpec& s) {
      s.mutable_worker()->set_device(device);
      s.mutable_worker()->set_precision(precision);
    });
  };
  for (const char* device : {"", "auto", "cuda:GPU-5d2c", "cuda:MIG-5d2c-1", "host"}) {
    for (const char* precision : {"", "fp32", "tf32", "bf16"}) {
      INFO(device << " " << precision);
      CHECK(problem(device, precision) == "OK");
    }
  }
  CHECK(problem("cpu", "") == "OK");
  CHECK(problem("cpu", "bf16") ==
        "spec.worker.precision: bf16 is a GPU's, but spec.worker.device is cpu, which computes in "
        "fp32; give fp32, or another device");
  CHECK(problem("gpu", "") ==
        "spec.worker.device: 'gpu' is not one of: auto, cpu, cuda:UUID, host");
  CHECK(problem("cuda:", "") ==
        "spec.worker.device: 'cuda:' names no GPU; add its UUID as `nvidia-smi -L` shows it, or "
        "give auto");
  CHECK(problem("cuda:GPU 0", "") ==
        "spec.worker.device: 'cuda:GPU 0' is not cuda: and a UUID as `nvidia-smi -L` shows it: "
        "letters, digits and '-'");
  CHECK(problem("auto", "fp16") == "spec.worker.precision: 'fp16' is not one of: fp32, tf32, bf16");
}

TEST_CASE("storage, checkpoint and output are checked", "[job_spec]") {
  CHECK(SpecProblem([](JobSpec& s) { s.mutable_storage()->set_durability("disk"); }) ==
        "spec.storage.durability: 'disk' is not one of: memory, logged, synced, replicated");
  CHECK(SpecProblem([](JobSpec& s) { s.mutable_storage()->set_partitions(1000); }) ==
        "spec.storage.partitions: 1000 is not a power of two");
  CHECK(SpecProblem([](JobSpec& s) {
          s.mutable_storage()->set_partitions(4);
          s.mutable_storage()->set_shards_per_server(4);
          s.mutable_replicas()->set_servers(2);
        }) ==
        "spec.storage.partitions: 4 is less than the 8 shards of 2 servers; a shard is at least "
        "one partition");
  CHECK(SpecProblem([](JobSpec& s) { s.mutable_storage()->set_dram_bytes_per_server("4 megs"); }) ==
        "spec.storage.dramBytesPerServer: '4 megs' is not a size; write bytes as in \"1048576\", "
        "\"4MiB\", \"1.5GiB\" or \"2GB\"");
  CHECK(SpecProblem([](JobSpec& s) { s.mutable_storage()->set_eviction("fifo"); }) ==
        "spec.storage.eviction: 'fifo' is not one of: lrfu, lfu, lru");
  CHECK(SpecProblem([](JobSpec& s) { s.mutable_storage()->set_gpu_backend("rocm"); }) ==
        "spec.storage.gpuBackend: 'rocm' is not one of: cuda, host");
  CHECK(SpecProblem([](JobSpec& s) { s.mutable_storage()->set_gpu_backend("host"); }) ==
        "spec.storage.gpuBackend: host, but there is no GPU tier; give "
        "spec.storage.gpuBytesPerServer too");
  CHECK(SpecProblem([](JobSpec& s) {
          s.mutable_storage()->set_gpu_backend("host");
          s.mutable_storage()->set_gpu_bytes_per_server("0");
        }) == "OK");
  CHECK(SpecProblem([](JobSpec& s) { s.mutable_storage()->set_gpu_bytes_per_server("8 gigs"); }) ==
        "spec.storage.gpuBytesPerServer: '8 gigs' is not a size; write bytes as in \"1048576\", "
        "\"4MiB\", \"1.5GiB\" or \"2GB\"");
  CHECK(SpecProblem([](JobSpec& s) { s.mutable_checkpoint()->set_every_steps(5); }) ==
        "spec.checkpoint.everySteps: 5 needs a place; set spec.checkpoint.directory");
  CHECK(SpecProblem([](JobSpec& s) { s.mutable_checkpoint()->set_keep(0); }) ==
        "spec.checkpoint.keep: 0 is outside the limits; give a number from 1 to 1000000");
  CHECK(SpecProblem([](JobSpec& s) { s.mutable_output()->set_predictions("p"); }) ==
        "spec.output.predictions: needs held-out files; name them in spec.data.eval");
}

TEST_CASE("copies of shards and durability say each other", "[job_spec]") {
  const auto resolved = [](const std::function<void(StorageSpec&)>& change) {
    TrainingJob job = Minimal();
    change(*job.mutable_spec()->mutable_storage());
    REQUIRE(ResolveJob(job).ok());
    return job.spec().storage();
  };
  const StorageSpec by_level = resolved([](StorageSpec& s) { s.set_durability("replicated"); });
  CHECK(by_level.replicas() == 2);
  CHECK(by_level.min_replicas() == 1);
  const StorageSpec by_number = resolved([](StorageSpec& s) { s.set_replicas(3); });
  CHECK(by_number.durability() == "replicated");
  CHECK(by_number.replicas() == 3);
  CHECK(resolved([](StorageSpec& s) { s.set_replicas(1); }).durability() == "logged");
  const auto problem = [](const char* durability, uint32_t replicas) {
    return SpecProblem([&](JobSpec& s) {
      s.mutable_storage()->set_durability(durability);
      s.mutable_storage()->set_replicas(replicas);
    });
  };
  CHECK(problem("replicated", 2) == "OK");
  for (const char* level : {"memory", "logged", "synced"}) {
    CHECK(problem(level, 1) == "OK");
    CHECK(problem(level, 2) ==
          std::string("spec.storage.replicas: 2 copies need spec.storage.durability replicated, "
                      "not ") +
              level + "; give that, or replicas: 1");
  }
  CHECK(problem("replicated", 1) ==
        "spec.storage.durability: 'replicated' needs copies, but spec.storage.replicas is 1; give "
        "2 or more, or durability logged");
  for (const uint32_t replicas : {0u, 17u}) {
    CHECK(problem("", replicas) == "spec.storage.replicas: " + std::to_string(replicas) +
                                       " is outside the limits; give a number from 1 to 16");
  }
  const auto least = [](uint32_t min_replicas) {
    return SpecProblem([&](JobSpec& s) {
      s.mutable_storage()->set_replicas(2);
      s.mutable_storage()->set_min_replicas(min_replicas);
    });
  };
  CHECK(least(1) == "OK");
  CHECK(least(2) == "OK");
  for (const uint32_t bad : {0u, 3u}) {
    CHECK(least(bad) == "spec.storage.minReplicas: " + std::to_string(bad) +
                            " is outside the limits; give a number from 1 to 2, which "
                            "spec.storage.replicas is");
  }
}

TEST_CASE("how long a server may stay away is a time within limits", "[job_spec]") {
  const auto problem = [](const std::string& text) {
    return SpecProblem([&](JobSpec& s) { s.mutable_recovery()->set_replace_after(text); });
  };
  for (const char* good : {"", "1s", "1000ms", "90s", "1.5h", "720h"}) {
    INFO(good);
    CHECK(problem(good) == "OK");
  }
  for (const char* bad : {"90", "s", "-5s", "+5s", "1h30m", "90 s", "90d", "inf", "1e3s", "1us"}) {
    CHECK(problem(bad) == std::string("spec.recovery.replaceAfter: '") + bad +
                              "' is not a time; write a number with ms, s, m or h, as in \"90s\"");
  }
  for (const char* bad : {"0s", "999ms", "721h", "99999999999h"}) {
    CHECK(problem(bad) == std::string("spec.recovery.replaceAfter: '") + bad +
                              "' is outside the limits; give a time from 1s to 720h");
  }
}

TEST_CASE("owners are names of certificates, each once", "[job_spec]") {
  const auto problem = [](const std::vector<std::string>& owners) {
    return Problem([&](TrainingJob& j) {
      for (const std::string& owner : owners) j.mutable_metadata()->add_owners(owner);
    });
  };
  CHECK(problem({"alice", "bob-2", "team_a.ops", "*"}) == "OK");
  CHECK(problem({"alice", ""}) ==
        "metadata.owners[1]: the name is empty; a name has letters, digits, '.', '_' and '-', and "
        "begins with a letter or a digit; \"*\": every operator");
  CHECK(problem({"-alice"}).substr(0, 19) == "metadata.owners[0]:");
  CHECK(problem({"alice", "bob", "alice"}) ==
        "metadata.owners[2]: 'alice' is named before; name each once");
  std::vector<std::string> many;
  for (int i = 0; i < 65; ++i) many.push_back("op" + std::to_string(i));
  CHECK(problem(many) ==
        "metadata.owners: has 65 names; at most 64 are allowed (\"*\": every operator)");
  many.pop_back();
  CHECK(problem(many) == "OK");
}

TEST_CASE("paths that the kernel would read otherwise are refused by field and path",
          "[job_spec]") {
  using Change = std::function<void(JobSpec&, const std::string&)>;
  const std::pair<const char*, Change> fields[] = {
      {"spec.data.train[1]", [](JobSpec& s, auto p) { s.mutable_data()->add_train(p); }},
      {"spec.data.eval[0]", [](JobSpec& s, auto p) { s.mutable_data()->add_eval(p); }},
      {"spec.model.initFrom",
       [](JobSpec& s, auto p) { s.mutable_model()->mutable_init_from()->set_checkpoint(p); }},
      {"spec.storage.directory", [](JobSpec& s, auto p) { s.mutable_storage()->set_directory(p); }},
      {"spec.checkpoint.directory",
       [](JobSpec& s, auto p) { s.mutable_checkpoint()->set_directory(p); }},
      {"spec.output.predictions",
       [](JobSpec& s, auto p) {
         s.mutable_data()->add_eval("e");
         s.mutable_output()->set_predictions(p);
       }},
      {"spec.output.metrics", [](JobSpec& s, auto p) { s.mutable_output()->set_metrics(p); }},
      {"spec.output.removed",
       [](JobSpec& s, auto p) {
         s.mutable_life_cycle()->mutable_removal()->set_every_steps(1);
         s.mutable_life_cycle()->mutable_removal()->set_ttl_steps(1);
         s.mutable_output()->set_removed(p);
       }},
  };
  for (const auto& field : fields) {
    const std::string name = field.first;
    const Change& change = field.second;
    const auto problem = [&](const std::string& path) {
      return SpecProblem([&](JobSpec& s) { change(s, path); });
    };
    CHECK(problem(std::string("/a\0b", 4)) ==
          name + ": '/a\\x00\\x62' has a control character (byte 0); name another file");
    CHECK(problem("/a\nb") ==
          name + ": '/a\\nb' has a control character (byte 10); name another file");
    CHECK(problem("/a\x7f") ==
          name + ": '/a\\x7f' has a control character (byte 127); name another file");
    CHECK(problem("/" + std::string(4095, 'x')) ==
          name + ": '/" + std::string(59, 'x') + "...' has 4096 bytes; a path has at most 4095");
    CHECK(problem("/" + std::string(4094, 'x')) == "OK");
    CHECK(problem("/\xc3\xa4 'b\"?*") == "OK");
  }
}

TEST_CASE("sizes are read with their units", "[job_spec]") {
  CHECK(*ParseBytes("0") == 0);
  CHECK(*ParseBytes("1048576") == 1048576);
  CHECK(*ParseBytes("4MiB") == 4u << 20);
  CHECK(*ParseBytes(" 4 MiB ") == 4u << 20);
  CHECK(*ParseBytes("1.5GiB") == 1610612736u);
  CHECK(*ParseBytes("2GB") == 2000000000u);
  CHECK(*ParseBytes("7B") == 7);
  CHECK(*ParseBytes("1TiB") == uint64_t{1} << 40);
  CHECK(*ParseBytes("18446744073709551615") == ~uint64_t{0});
  for (const char* text :
       {"", " ", "MiB", "-1", "+1", "1e3", "1.GiB", ".5GiB", "1.2.3", "4Mib", "4mb", "4M", "4 4",
        "18446744073709551616", "16777216TiB", "0.00000000000000000000000000000000000000000001GiB",
        "0x10", "1,5GiB", "nan"}) {
    INFO(text);
    CHECK(absl::IsInvalidArgument(ParseBytes(text).status()));
  }
}

}  // namespace
}  // namespace strata
