// When the checkpoints go that a job replaces, and when they stay.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/runtime/files/manifest_io.h"
#include "scheduler/store/memory_metadata_store.h"
#include "tests/scheduler/one_job.h"
#include "tests/temp_folder.h"

namespace strata::scheduler {
namespace {

// A folder with a checkpoint of step 5, and a job that is to replace it.
SubmitRequest Replacing(const std::string& directory, const std::string& file) {
  SubmitRequest request = Job("a", directory);
  Manifest manifest;
  *manifest.mutable_job() = request.job();
  manifest.set_step(5);
  if (!file.empty()) manifest.add_files()->set_name(file);
  REQUIRE(WriteManifest(directory + "/step-000000000005", manifest).ok());
  request.set_overwrite(true);
  return request;
}

// A replacing job's end where nodes say what `change` makes of their reports.
void CheckFailsAndKeeps(const std::function<void(NodeReport&)>& change, const std::string& why) {
  TempFolder folder;
  const std::string directory = folder.path() + "/c";
  ManualTimer timer;
  auto scheduler = Start(MakeMemoryMetadataStore(), &timer);
  REQUIRE(scheduler->Submit(Replacing(directory, ""), kTimeout).ok());
  Nodes nodes;
  const auto sync = [&](NodeReport report) {
    change(report);
    auto told = scheduler->Sync(report, kTimeout);
    REQUIRE(told.ok());
    return *told;
  };
  for (int i = 0; i < 500 && Get(*scheduler, "a").state() == PENDING; ++i) {
    nodes.servers.at("s0").Act(sync(nodes.servers.at("s0").Report()));
    nodes.worker.Act(sync(nodes.worker.Report()));
  }
  const JobStatus status = Get(*scheduler, "a");
  REQUIRE(status.state() == FAILED);
  CHECK(status.conditions().rbegin()->message().find(why) != std::string::npos);
  CHECK(ListCheckpoints(directory)->complete.size() == 1);
}

TEST_CASE("a job that cannot begin to train removes no checkpoint", "[scheduler]") {
  const std::string unreadable = "train.libfm.gz: is cut off";
  CheckFailsAndKeeps(
      [&](NodeReport& report) {
        for (WorkerJobReport& job : *report.mutable_worker_jobs()) {
          job.clear_train_index();
          job.set_fatal(unreadable);
        }
      },
      unreadable);
  const std::string small = "spec.storage.gpuBytesPerServer is too small";
  CheckFailsAndKeeps(
      [&](NodeReport& report) {
        for (ServerJobReport& job : *report.mutable_server_jobs()) {
          job.set_state(ServerJobReport::FAILED);
          job.set_message(small);
        }
      },
      small);
  // The servers have long opened when a worker finds that its model does not fit.
  const std::string memory = "a model's step: 9 bytes requested";
  int reports = 0;
  CheckFailsAndKeeps(
      [&](NodeReport& report) {
        for (WorkerJobReport& job : *report.mutable_worker_jobs()) {
          if (!job.ready()) continue;
          job.set_ready(false);
          if (++reports > 20) job.set_fatal(memory);
        }
      },
      memory);
}

TEST_CASE("a job for a GPU that no node has is refused, and replaces nothing", "[scheduler]") {
  TempFolder folder;
  const std::string directory = folder.path() + "/c";
  ManualTimer timer;
  auto scheduler = Start(MakeMemoryMetadataStore(), &timer);
  Nodes nodes;
  nodes.Round(*scheduler);
  SubmitRequest bf16 = Replacing(directory, ""), tier = bf16;
  bf16.mutable_job()->mutable_spec()->mutable_worker()->set_precision("bf16");
  tier.mutable_job()->mutable_spec()->mutable_storage()->set_gpu_bytes_per_server("1MiB");
  for (const SubmitRequest& request : {bf16, tier}) {
    CHECK(absl::IsFailedPrecondition(scheduler->Submit(request, kTimeout).status()));
  }
  CHECK(scheduler->ListJobs(kTimeout)->jobs_size() == 0);
  CHECK(ListCheckpoints(directory)->complete.size() == 1);
}

TEST_CASE("what replaces begins the metrics anew, once; what resumes goes on in them",
          "[scheduler]") {
  TempFolder folder;
  const std::string directory = folder.path() + "/c", metrics = folder.path() + "/m.jsonl";
  const auto write = [&](const std::string& text, std::ios::openmode mode) {
    std::ofstream(metrics, mode) << text;
  };
  const auto read = [&] {
    std::ifstream in(metrics);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  write("earlier\n", std::ios::trunc);
  ManualTimer timer;
  const bool overwrite = GENERATE(true, false);
  auto scheduler = Start(MakeMemoryMetadataStore(), &timer);
  SubmitRequest request = overwrite ? Replacing(directory, "") : Job("a", directory);
  request.mutable_job()->mutable_spec()->mutable_output()->set_metrics(metrics);
  request.set_resume(!overwrite);
  REQUIRE(scheduler->Submit(request, kTimeout).ok());
  CHECK(read() == "earlier\n");  // nothing has begun
  Nodes nodes;
  nodes.works = false;
  nodes.Until(*scheduler, [&] { return Get(*scheduler, "a").state() == RUNNING; });
  CHECK(read() == (overwrite ? "" : "earlier\n"));
  write("line\n", std::ios::app);
  nodes.works = true;
  nodes.Until(*scheduler, [&] { return Get(*scheduler, "a").state() == SUCCEEDED; });
  CHECK(read() == (overwrite ? "line\n" : "earlier\nline\n"));
}

// The command line refuses such a job before it asks a scheduler; another client may not.
TEST_CASE("a job whose output is what it reads, or another output, is refused at submit",
          "[scheduler]") {
  TempFolder folder;
  const std::string data = folder.path() + "/train.libfm", metrics = folder.path() + "/m.jsonl";
  std::ofstream(data) << "1 7:1\n";
  std::filesystem::create_hard_link(data, metrics);
  ManualTimer timer;
  auto scheduler = Start(MakeMemoryMetadataStore(), &timer);
  SubmitRequest reads = Replacing(folder.path() + "/c", ""), writes = reads;
  reads.mutable_job()->mutable_spec()->mutable_data()->set_train(0, data);
  reads.mutable_job()->mutable_spec()->mutable_output()->set_metrics(metrics);
  OutputSpec& outputs = *writes.mutable_job()->mutable_spec()->mutable_output();
  writes.mutable_job()->mutable_spec()->mutable_data()->add_eval("/data/eval.libfm");
  outputs.set_metrics(folder.path() + "/out");
  outputs.set_predictions(folder.path() + "/x/../out");
  for (const SubmitRequest& request : {reads, writes}) {
    const absl::Status refused = scheduler->Submit(request, kTimeout).status();
    INFO(refused);
    CHECK(absl::IsInvalidArgument(refused));
    CHECK(absl::StrContains(refused.message(), "spec.output.metrics: "));
    CHECK(absl::StrContains(refused.message(), "is the same file as"));
  }
  CHECK(scheduler->ListJobs(kTimeout)->jobs_size() == 0);
  CHECK(std::filesystem::file_size(data) == 6);
  CHECK(ListCheckpoints(folder.path() + "/c")->complete.size() == 1);
}

TEST_CASE("what resumes behind its own end says so", "[scheduler]") {
  TempFolder folder;
  const std::string directory = folder.path() + "/c";
  ManualTimer timer;
  auto scheduler = Start(MakeMemoryMetadataStore(), &timer);
  REQUIRE(scheduler->Submit(Job("a", directory), kTimeout).ok());
  {
    Nodes nodes;
    nodes.Until(*scheduler, [&] { return Get(*scheduler, "a").state() == SUCCEEDED; });
    nodes.Close(*scheduler, "a");
  }
  scheduler = Start(MakeMemoryMetadataStore(), &timer);
  SubmitRequest request = Job("b", directory);
  request.set_resume(true);
  REQUIRE(scheduler->Submit(request, kTimeout).ok());
  Nodes nodes;
  nodes.worker.index_lines /= 2;
  nodes.Until(*scheduler, [&] { return Get(*scheduler, "b").state() == FAILED; });
  const JobStatus status = Get(*scheduler, "b");
  const JobCondition& why = *status.conditions().rbegin();
  CHECK(why.reason() == "NothingToTrain");
  for (const char* part : {"spec.training.epochs", "8 steps", "/c/step-000000000016", "step 16"}) {
    CHECK(absl::StrContains(why.message(), part));
  }
}

TEST_CASE("metrics that cannot be begun anew end the job, by field and path", "[scheduler]") {
  TempFolder folder;
  const std::string directory = folder.path() + "/c", metrics = folder.path() + "/loop";
  std::filesystem::create_symlink(metrics, metrics);
  ManualTimer timer;
  auto scheduler = Start(MakeMemoryMetadataStore(), &timer);
  SubmitRequest request = Replacing(directory, "");
  request.mutable_job()->mutable_spec()->mutable_output()->set_metrics(metrics);
  REQUIRE(scheduler->Submit(request, kTimeout).ok());
  Nodes nodes;
  nodes.Until(*scheduler, [&] { return Get(*scheduler, "a").state() == FAILED; });
  const JobStatus status = Get(*scheduler, "a");
  const std::string& why = status.conditions().rbegin()->message();
  INFO(why);
  CHECK(status.conditions().rbegin()->reason() == "OverwriteFailed");
  CHECK(why.find("spec.output.metrics") != std::string::npos);
  CHECK(why.find(metrics) != std::string::npos);
  CHECK(why.find("checkpoint") == std::string::npos);
}

TEST_CASE("a checkpoint that cannot be replaced ends the job, and says what to do", "[scheduler]") {
  TempFolder folder;
  const std::string directory = folder.path() + "/c";
  ManualTimer timer;
  auto scheduler = Start(MakeMemoryMetadataStore(), &timer);
  SubmitRequest request = Replacing(directory, "rows");
  std::filesystem::create_directories(directory + "/step-000000000005/rows/not-a-file");
  REQUIRE(scheduler->Submit(request, kTimeout).ok());
  Nodes nodes;
  nodes.Until(*scheduler, [&] { return Get(*scheduler, "a").state() == FAILED; });
  const JobStatus status = Get(*scheduler, "a");
  const JobCondition& last = *status.conditions().rbegin();
  INFO(last.message());
  CHECK(last.reason() == "OverwriteFailed");
  CHECK(last.message().find(directory + "/step-000000000005/rows") != std::string::npos);
  CHECK(last.message().find("spec.checkpoint.directory") != std::string::npos);
}

}  // namespace
}  // namespace strata::scheduler
