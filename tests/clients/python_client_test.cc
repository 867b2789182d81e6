// The wire as another language sees it: client_cases.py, one case a test, against the real
// programs.
#include <sys/wait.h>

#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/e2e/cluster/small_job.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

// A job that goes on training until it is cancelled.
TrainingJob EndlessJob(const std::string& folder) {
  TrainingJob job = SmallJob(folder);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_model()->set_type("fm");
  spec.mutable_model()->clear_hidden();
  spec.mutable_model()->set_embedding_dim(6);
  spec.mutable_optimizer()->clear_dense();
  spec.mutable_optimizer()->mutable_sparse()->set_type("sgd");
  spec.mutable_optimizer()->mutable_sparse()->set_learning_rate(0.5f);
  spec.mutable_training()->set_mode("async");
  spec.mutable_training()->set_lanes(1);
  spec.mutable_training()->set_epochs(1'000'000);
  return job;
}

// Exit code of a command; its output is in the test's.
int Run(const std::string& command, std::string& output) {
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> chunk;
  while (size_t n = std::fread(chunk.data(), 1, chunk.size(), pipe)) output.append(chunk.data(), n);
  const int status = pclose(pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

// One cluster and job for all cases, which use keys of their own.
struct Running {
  Running() : folder(*ScratchFolder::Make("strata-client")) {
    cluster = std::make_unique<ProcessCluster>(ProcessClusterOptions{
        .servers = 1, .workers = 1, .folder = folder.path() + "/cluster", .lease_ms = kLeaseMs});
    job = cluster->Submit(EndlessJob(folder.path()));
    cluster->AwaitStep(job, 3);
    // Its session goes on hosting the lane, and is the client's.
    cluster->process("worker-0").Signal(SIGSTOP);
  }
  static constexpr int kLeaseMs = 3'600'000;
  ScratchFolder folder;
  std::unique_ptr<ProcessCluster> cluster;
  uint64_t job = 0;
};

void RunCase(const std::string& name) {
  static Running running;
  const std::string command =
      "PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/clients/stubs:tests/clients "
      "/usr/bin/python3 tests/clients/client_cases.py " +
      running.cluster->address() + " " + std::to_string(running.job) + " " + name;
  std::string output;
  const int code = Run(command, output);
  INFO(output);
  CHECK(code == 0);
  CHECK(output.find("case " + name + " passed") != std::string::npos);
}

TEST_CASE("a client in Python pulls", "[client]") { RunCase("pull"); }
TEST_CASE("a client in Python pushes, once each", "[client]") { RunCase("push"); }
TEST_CASE("a client in Python reads every codec", "[client]") { RunCase("codecs"); }
TEST_CASE("a client in Python uses tickets", "[client]") { RunCase("tickets"); }
TEST_CASE("a client in Python is told what is wrong", "[client]") { RunCase("errors"); }

}  // namespace
}  // namespace strata::testing
