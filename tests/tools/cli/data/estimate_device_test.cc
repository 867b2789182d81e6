// What `strata estimate` says of a device's memory, against what jobs take of one that is host
// threads.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "ops/cuda/api/host_api.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/products/blas.h"
#include "ops/cuda/products/host_blas.h"
#include "proto/core/memory_part.h"
#include "proto/core/mutex.h"
#include "proto/job/job_spec.h"
#include "proto/job/tables/model_tables.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/strata/control.pb.h"
#include "tests/e2e/cluster/small_job.h"
#include "tests/temp_folder.h"
#include "tools/cli/data/data_measure.h"
#include "tools/cli/data/estimate.h"
#include "tools/cluster/embedded/cluster.h"
#include "worker/device/worker_device.h"
#include "worker/train/model_source.h"

namespace strata {
namespace {

using device::RowPath;

// The most that was out at a time.
struct Account {
  uint64_t now = 0, most = 0;
  std::map<void*, size_t> pieces;
  void Take(void* p, size_t bytes) {
    pieces[p] = bytes;
    now += bytes;
    most = std::max(most, now);
  }
  void GiveBack(void* p) {
    now -= pieces[p];
    pieces.erase(p);
  }
};

class CountingApi : public ops::gpu::HostApi {
 public:
  CountingApi() : HostApi(Options()) {}
  uint64_t device_now() const { return Read(device_, &Account::now); }
  uint64_t device_most() const { return Read(device_, &Account::most); }
  uint64_t pinned_most() const { return Read(pinned_, &Account::most); }

 protected:
  absl::Status DoMalloc(size_t bytes, void** out) override {
    absl::Status s = HostApi::DoMalloc(bytes, out);
    MutexLock lock(&mu_);
    if (s.ok()) device_.Take(*out, bytes);
    return s;
  }
  absl::Status DoMallocHost(size_t bytes, void** out) override {
    absl::Status s = HostApi::DoMallocHost(bytes, out);
    MutexLock lock(&mu_);
    if (s.ok()) pinned_.Take(*out, bytes);
    return s;
  }
  // Before the piece may be given out again.
  absl::Status DoFree(void* p) override {
    {
      MutexLock lock(&mu_);
      device_.GiveBack(p);
    }
    return HostApi::DoFree(p);
  }
  absl::Status DoFreeHost(void* p) override {
    {
      MutexLock lock(&mu_);
      pinned_.GiveBack(p);
    }
    return HostApi::DoFreeHost(p);
  }

 private:
  uint64_t Read(const Account& account, uint64_t Account::*what) const {
    MutexLock lock(&mu_);
    return account.*what;
  }
  mutable Mutex mu_;
  Account device_, pinned_;
};

device::WorkerDevice DeviceOf(CountingApi* api) {
  device::WorkerDevice gpu;
  gpu.api = api;
  gpu.open_blas = [api](ops::gpu::Arena*) { return ops::gpu::MakeHostBlas(api); };
  gpu.blas_bytes = ops::gpu::Blas::Options::kBytes;
  gpu.uuid = api->properties().uuid;
  gpu.numerics_id = "a GPU of host threads";
  return gpu;
}

// Rows weigh most: of 20 steps with some 1350 keys each.
TrainingJob Job(const std::string& folder) {
  TrainingJob job = testing::SmallJob(folder);
  testing::WriteLibfm(folder + "/train.libfm", 1, 5120, 6, 1000);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->clear_eval();
  spec.mutable_model()->set_embedding_dim(64);
  spec.mutable_training()->set_batch_size(64);
  spec.mutable_training()->set_epochs(1);
  spec.mutable_worker()->set_device("cuda:host");
  spec.mutable_storage()->set_gpu_bytes_per_server("1MiB");
  spec.mutable_storage()->set_gpu_backend("cuda");
  return job;
}

struct Told {
  JobSpec spec;
  DataMeasure data;
  JobEstimate estimate;
};
Told Estimate(TrainingJob job) {
  const absl::Status resolved = ResolveJob(job);
  INFO(resolved);
  REQUIRE(resolved.ok());
  const auto data = MeasureData(job.spec());
  REQUIRE(data.ok());
  auto estimate = EstimateJob(job.spec(), *data, 0, 2);
  REQUIRE(estimate.ok());
  return {job.spec(), *data, *std::move(estimate)};
}

uint64_t BytesOf(const std::vector<MemoryPart>& parts, const std::string& name) {
  for (const MemoryPart& part : parts) {
    if (part.name == name) return part.bytes;
  }
  FAIL("no part " << name);
  return 0;
}

// scheduler, server, worker
const ProcessEstimate& Worker(const Told& told) { return told.estimate.processes[2]; }

// Three labels, weights, numbers, and a field that is pooled by max, as csv.
TrainingJob LabelledJob(const std::string& folder) {
  TrainingJob job = Job(folder);
  std::ofstream out(folder + "/train.csv");
  out << "user,tags,age,click,stars,visits,weight\n";
  for (int l = 0; l < 640; ++l) {
    out << 'u' << l % 37 << ",t" << l % 11 << ',' << l % 70 << ',' << l % 2 << ',' << l % 5 << ','
        << l % 3 << ",2\n";
  }
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->set_format("csv");
  spec.mutable_data()->set_train(0, folder + "/train.csv");
  for (const auto& [name, kind] : {std::pair("user", "categorical"),
                                   std::pair("tags", "multiValued"), std::pair("age", "numeric")}) {
    FieldConfig& field = *spec.add_fields();
    field.set_name(name);
    field.set_kind(kind);
  }
  spec.mutable_fields(1)->set_pooling("max");
  for (const auto& [name, kind] :
       {std::pair("click", "binary"), std::pair("stars", "real"), std::pair("visits", "count")}) {
    LabelConfig& label = *spec.add_labels();
    label.set_name(name);
    label.set_kind(kind);
  }
  spec.set_sample_weight("weight");
  return job;
}

// What a worker's models take of a device when they are made.
void CheckModels(const Told& told, bool evaluates, CountingApi* api) {
  const auto tables = MakeModelTables(told.spec, told.data.fields, told.data.numeric);
  REQUIRE(tables.ok());
  const device::WorkerDevice gpu = DeviceOf(api);
  ModelSourceOptions options;
  options.tables = &*tables;
  options.device = &gpu;
  options.worker = told.spec.worker();
  options.batch_size = told.spec.training().batch_size();
  options.evaluates = evaluates;
  const auto models = ModelSource::Make(options);
  REQUIRE(models.ok());
  CHECK(BytesOf(Worker(told).device_parts, "model") == api->device_now());
  CHECK(BytesOf(Worker(told).parts, "batches on their way to the GPU") == api->pinned_most());
}

TEST_CASE("a model takes of a device what was estimated, to the byte", "[estimate][device]") {
  const TempFolder folder;
  uint64_t fp32 = 0;
  for (const std::string precision : {"fp32", "tf32", "bf16"}) {
    for (const bool evaluates : {false, true}) {
      INFO(precision << ", " << evaluates);
      TrainingJob job = Job(folder.path());
      JobSpec& spec = *job.mutable_spec();
      spec.mutable_worker()->set_precision(precision);
      if (evaluates) spec.mutable_data()->add_eval(folder.path() + "/eval.libfm");
      const Told told = Estimate(job);
      CountingApi api;
      CheckModels(told, evaluates, &api);
      // Factors are rounded into memory of their own.
      if (evaluates) continue;
      if (precision == "fp32") fp32 = api.device_most();
      if (precision == "tf32") CHECK(api.device_most() == fp32);
      if (precision == "bf16") CHECK(api.device_most() > fp32);
    }
  }
}

TEST_CASE("and so do models of several labels and of weights", "[estimate][device]") {
  const TempFolder folder;
  for (const char* type :
       {"lr", "fm", "wide_deep", "deepfm", "dcn_v2", "dlrm", "shared_bottom", "mmoe"}) {
    for (const char* precision : {"fp32", "bf16"}) {
      INFO(type << ", " << precision);
      TrainingJob job = LabelledJob(folder.path());
      JobSpec& spec = *job.mutable_spec();
      ModelSpec& model = *spec.mutable_model();
      model.set_type(type);
      if (model.type() == "lr" || model.type() == "fm" || model.type() == "mmoe") {
        model.clear_hidden();
      }
      if (model.type() == "lr") model.clear_embedding_dim();
      spec.mutable_worker()->set_precision(precision);
      const Told told = Estimate(job);
      CountingApi api;
      CheckModels(told, false, &api);
      // More than one label takes.
      spec.mutable_labels()->DeleteSubrange(1, 2);
      spec.clear_sample_weight();
      const Told plain = Estimate(job);
      CHECK(BytesOf(Worker(plain).device_parts, "model") <
            BytesOf(Worker(told).device_parts, "model"));
      CHECK(BytesOf(Worker(plain).parts, "batches prepared ahead") <
            BytesOf(Worker(told).parts, "batches prepared ahead"));
    }
  }
}

// Trains; both share the device.
void Train(const TrainingJob& job, RowPath path, CountingApi* api) {
  const device::WorkerDevice gpu = DeviceOf(api);
  const TempFolder folder;
  EmbeddedClusterOptions options;
  options.servers = std::max(1u, job.spec().replicas().servers());
  options.workers = std::max(1u, job.spec().replicas().workers());
  options.directory = folder.path();
  options.row_path = path;
  options.devices.assign(options.workers, &gpu);
  options.server_device = api;
  auto cluster = EmbeddedCluster::Start(options);
  REQUIRE(cluster.ok());
  SubmitRequest submit;
  *submit.mutable_job() = job;
  submit.set_request_id("test");
  const auto id = (*cluster)->scheduler().Submit(submit, absl::Seconds(10));
  REQUIRE(id.ok());
  JobRef ref;
  ref.set_job(id->job());
  while (true) {
    const auto status = (*cluster)->scheduler().GetJob(ref, absl::Seconds(10));
    REQUIRE(status.ok());
    for (const JobCondition& c : status->conditions()) UNSCOPED_INFO(c.message());
    REQUIRE(status->state() != FAILED);
    if (status->state() == SUCCEEDED) return;
    absl::SleepFor(absl::Milliseconds(5));
  }
}

// Without the products' own, which is a constant and nearly all of so small a job.
uint64_t WithoutBlas(const JobSpec& spec, uint64_t bytes) {
  return bytes - spec.replicas().workers() * ops::gpu::Blas::Options::kBytes;
}

TEST_CASE("rows and keys of several tables are those of one that has them all", "[estimate]") {
  const TempFolder folder;
  const auto job = [&](int key_step) {
    TrainingJob made = testing::SmallJob(folder.path());
    const std::string path = folder.path() + "/" + std::to_string(key_step);
    testing::WriteLibffm(path, 1, 5120, 6, 1000, key_step);
    JobSpec& spec = *made.mutable_spec();
    spec.mutable_data()->set_format("libffm");
    spec.mutable_data()->set_train(0, path);
    spec.mutable_data()->clear_eval();
    return made;
  };
  const Told one = Estimate(job(1000));
  // Each field has the same numbers as the others.
  TrainingJob six = job(0);
  for (int f = 0; f < 6; ++f) {
    const std::string number = std::to_string(f);
    six.mutable_spec()->add_tables()->set_name("t" + number);
    FieldConfig& field = *six.mutable_spec()->add_fields();
    field.set_name(number);
    field.set_kind("multiValued");
    field.set_table("t" + number);
  }
  const Told told = Estimate(six);
  CHECK(told.data.keys_per_batch == one.data.keys_per_batch);
  CHECK(told.data.keys_per_step == one.data.keys_per_step);
  REQUIRE(told.data.of_table.size() == 7);
  DataMeasure::OfTable sum;
  for (const DataMeasure::OfTable& t : told.data.of_table) {
    sum.rows += t.rows;
    sum.per_step += t.per_step;
  }
  CHECK(sum.rows == told.data.distinct_keys);
  const auto near = [](uint64_t a, uint64_t b, double share) {
    return std::abs(static_cast<double>(a) / static_cast<double>(b) - 1) < share;
  };
  CHECK(near(sum.rows, one.data.distinct_keys, .02));
  CHECK(near(sum.per_step, one.data.keys_per_step, .05));
  // What a table costs is pages that it begins, and room to grow.
  const auto rows = [](const Told& t) {
    uint64_t bytes = 0;
    for (const MemoryPart& part : t.estimate.processes[1].parts) {
      if (part.name.starts_with("rows and index") && part.name.find("dense") == std::string::npos) {
        bytes += part.bytes;
      }
    }
    return bytes;
  };
  CHECK(rows(told) >= rows(one));
  CHECK(rows(told) < rows(one) + 6 * 4 * (uint64_t{128} << 10));
}

TEST_CASE("a job in one process takes of its device what was estimated", "[estimate][device]") {
  const TempFolder folder;
  const struct {
    const char* what;
    std::function<void(JobSpec&)> change;
  } kinds[] = {
      {"four lanes", [](JobSpec&) {}},
      {"bf16", [](JobSpec& s) { s.mutable_worker()->set_precision("bf16"); }},
      {"one lane", [](JobSpec& s) { s.mutable_training()->set_lanes(1); }},
      {"two workers and servers",
       [](JobSpec& s) {
         s.mutable_replicas()->set_workers(2);
         s.mutable_replicas()->set_servers(2);
       }},
      {"asynchronous",
       [](JobSpec& s) {
         s.mutable_training()->set_mode("async");
         s.mutable_training()->set_lanes(2);
       }},
  };
  for (const auto& kind : kinds) {
    TrainingJob job = Job(folder.path());
    kind.change(*job.mutable_spec());
    const Told told = Estimate(job);
    CountingApi api;
    Train(job, RowPath::kDevice, &api);
    const double bytes = WithoutBlas(told.spec, told.estimate.one_process_device_bytes);
    const double measured = WithoutBlas(told.spec, api.device_most());
    INFO(kind.what << ": estimated " << bytes << ", measured " << measured);
    CHECK(bytes > .97 * measured);
    CHECK(bytes < 1.1 * measured);
  }
}

// Each key counts as one of the widest table.
TEST_CASE("a job of several widths takes no more of its device than was estimated",
          "[estimate][device]") {
  const TempFolder folder;
  TrainingJob job = Job(folder.path());
  testing::UseFiveTables(folder.path(), 5120, 1000, job);
  for (TableConfig& table : *job.mutable_spec()->mutable_tables()) {
    table.clear_pull_codec();
    table.clear_life_cycle();
  }
  const Told told = Estimate(job);
  CountingApi api;
  Train(job, RowPath::kDevice, &api);
  const double bytes = WithoutBlas(told.spec, told.estimate.one_process_device_bytes);
  const double measured = WithoutBlas(told.spec, api.device_most());
  INFO("estimated " << bytes << ", measured " << measured);
  CHECK(bytes > .97 * measured);
  CHECK(bytes < 1.3 * measured);
}

TEST_CASE("rows in messages leave a device to model and tier", "[estimate][device]") {
  const TempFolder folder;
  const TrainingJob job = Job(folder.path());
  const Told told = Estimate(job);
  CountingApi api;
  Train(job, RowPath::kHost, &api);
  uint64_t parts = 0;
  for (const ProcessEstimate& p : told.estimate.processes) parts += TotalBytes(p.device_parts);
  const double bytes = WithoutBlas(told.spec, parts);
  const double measured = WithoutBlas(told.spec, api.device_most());
  INFO("estimated " << bytes << ", measured " << measured);
  CHECK(bytes > .97 * measured);
  CHECK(bytes < 1.1 * measured);
  CHECK(told.estimate.one_process_device_bytes > parts + 1'000'000);
}

}  // namespace
}  // namespace strata
