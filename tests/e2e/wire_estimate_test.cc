// What `strata estimate` says of bytes on the wire, held against the messages of real servers and
// workers.
#include "tools/cli/data/wire_estimate.h"

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/job/job_spec.h"
#include "proto/job/tables/model_tables.h"
#include "proto/runtime/transport/inproc_transport.h"
#include "proto/runtime/transport/transport.h"
#include "proto/strata/control.pb.h"
#include "scheduler/scheduler.h"
#include "scheduler/store/memory_metadata_store.h"
#include "server/server.h"
#include "tests/e2e/cluster/small_job.h"
#include "tests/temp_folder.h"
#include "tools/cli/data/data_measure.h"
#include "worker/worker.h"

namespace strata {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

// Passes calls on and adds up their bytes, requests and replies, by method.
class CountingTransport : public DataTransport {
 public:
  absl::StatusOr<std::unique_ptr<DataListener>> Listen(const std::string& address,
                                                       DataHandler* handler) override {
    return inner_->Listen(address, handler);
  }
  std::shared_ptr<DataChannel> Connect(const DataPeer& peer, const Caller& caller) override {
    return std::make_shared<Channel>(&bytes_, inner_->Connect(peer, caller));
  }
  uint64_t Bytes(DataMethod method) const { return bytes_[static_cast<size_t>(method)]; }

 private:
  using Counts = std::array<std::atomic<uint64_t>, kDataMethods>;
  class Channel : public DataChannel {
   public:
    Channel(Counts* bytes, std::shared_ptr<DataChannel> inner)
        : bytes_(bytes), inner_(std::move(inner)) {}
    void Call(DataMethod method, Buffer request, absl::Duration timeout, DataReply done) override {
      std::atomic<uint64_t>& bytes = (*bytes_)[static_cast<size_t>(method)];
      bytes += request.size();
      inner_->Call(method, std::move(request), timeout,
                   [&bytes, done = std::move(done)](absl::StatusOr<Buffer> reply) {
                     if (reply.ok()) bytes += reply->size();
                     done(std::move(reply));
                   });
    }

   private:
    Counts* const bytes_;
    const std::shared_ptr<DataChannel> inner_;
  };

  Counts bytes_ = {};
  const std::unique_ptr<DataTransport> inner_ = MakeInProcTransport();
};

// Two servers and two workers that train the job to its end.
JobStatus TrainCounted(const TrainingJob& job, const std::string& folder,
                       CountingTransport& transport) {
  auto scheduler = scheduler::Scheduler::Start({.store = scheduler::MakeMemoryMetadataStore()});
  REQUIRE(scheduler.ok());
  std::vector<std::unique_ptr<server::Server>> servers;
  std::vector<std::unique_ptr<Worker>> workers;
  for (int i = 0; i < 2; ++i) {
    server::ServerOptions options;
    options.name = absl::StrCat("server-", i);
    options.scheduler = scheduler->get();
    options.transport = &transport;
    options.listen_address = options.name;
    options.directory = absl::StrCat(folder, "/", options.name);
    auto server = server::Server::Start(options);
    REQUIRE(server.ok());
    servers.push_back(*std::move(server));
    WorkerOptions worker;
    worker.name = absl::StrCat("worker-", i);
    worker.scheduler = scheduler->get();
    worker.transport = &transport;
    worker.caller = Caller::Nobody();
    auto started = Worker::Start(worker);
    REQUIRE(started.ok());
    workers.push_back(*std::move(started));
  }
  SubmitRequest submit;
  *submit.mutable_job() = job;
  submit.set_request_id("test");
  const auto submitted = (*scheduler)->Submit(submit, kPatience);
  INFO(submitted.status());
  REQUIRE(submitted.ok());
  JobRef ref;
  ref.set_job(submitted->job());
  for (const absl::Time give_up = absl::Now() + kPatience; absl::Now() < give_up;) {
    auto status = (*scheduler)->GetJob(ref, kPatience);
    REQUIRE(status.ok());
    if (status->state() == SUCCEEDED || status->state() == FAILED) {
      workers.clear();
      return *std::move(status);
    }
    absl::SleepFor(absl::Milliseconds(5));
  }
  FAIL("the job does not end");
  return {};
}

// Half of the most keys is the least that batches of these data have.
void CheckNear(const WireEstimate& wire, const std::string& part, double measured) {
  INFO(part << ": " << measured);
  for (const MemoryPart& p : wire.parts) {
    if (p.name != part) continue;
    CHECK(measured <= 1.10 * static_cast<double>(p.bytes));
    CHECK(measured >= .75 * static_cast<double>(p.bytes));
    return;
  }
  FAIL("no such part");
}

TEST_CASE("bytes on the wire are those of the estimate", "[estimate][e2e]") {
  struct Case {
    const char* mode;
    uint32_t copies;
    const char* codec;
    const char* model;
  };
  const auto c = GENERATE(Case{"bsp", 1, "float32", "fm"}, Case{"bsp", 2, "bf16", "deepfm"},
                          Case{"async", 2, "int8", "fm"});
  CAPTURE(c.mode, c.copies, c.codec, c.model);
  const TempFolder folder;
  TrainingJob job = testing::ManyFeaturesJob(folder.path(), 16, 4);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->clear_eval();
  spec.mutable_data()->mutable_shuffle()->set_enabled(false);
  spec.mutable_model()->set_type(c.model);
  if (std::string(c.model) == "deepfm") spec.mutable_model()->add_hidden(64);
  spec.mutable_training()->set_mode(c.mode);
  spec.mutable_training()->set_batch_size(160);
  spec.mutable_training()->set_lanes(2);
  spec.mutable_training()->set_pull_codec(c.codec);
  spec.mutable_storage()->set_shards_per_server(1);
  spec.mutable_replicas()->set_servers(1);
  spec.mutable_replicas()->set_workers(2);
  if (c.copies > 1) {
    spec.mutable_storage()->set_durability("replicated");
    spec.mutable_storage()->set_replicas(c.copies);
  }
  REQUIRE(ResolveJob(job).ok());
  const auto data = MeasureData(job.spec());
  REQUIRE(data.ok());
  const auto tables = MakeModelTables(job.spec(), data->fields, data->numeric);
  REQUIRE(tables.ok());
  const WireEstimate wire = EstimateWire(job.spec(), *data, *tables);

  CountingTransport transport;
  const JobStatus end = TrainCounted(job, folder.path(), transport);
  REQUIRE(end.state() == SUCCEEDED);
  // Bsp counts steps of all lanes; async batches.
  REQUIRE(end.step() == (wire.of_step ? 16 : 32));
  const auto each = [&](DataMethod method) {
    return static_cast<double>(transport.Bytes(method)) / static_cast<double>(end.step());
  };
  CheckNear(wire, "pulls", each(DataMethod::kPull));
  CheckNear(wire, "pushes", each(DataMethod::kPush));
  if (c.copies > 1) CheckNear(wire, "log entries for copies", each(DataMethod::kForward));
}

}  // namespace
}  // namespace strata
