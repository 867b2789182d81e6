// What a server says of itself: what jobs may take of it, what they have, and its GPU.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "proto/strata/control.pb.h"
#include "server/server.h"
#include "tests/server/one_shard_job.h"
#include "tests/server/scripted_cluster.h"

namespace strata::server {
namespace {

TEST_CASE("a server says what jobs may take of it", "[server]") {
  ScriptedCluster c;
  ServerOptions options = c.Options();
  {
    auto server = Server::Start(options);
    REQUIRE(server.ok());
    c.scheduler.AwaitCalls(1);
    const NodeReport all = c.scheduler.Await([](const NodeReport& r) { return !r.name().empty(); });
    CHECK(all.memory_bytes() > 0);  // the machine's
    CHECK_FALSE(all.memory_given());
    CHECK(all.machine_id().empty());
    CHECK(all.disk_bytes() == 0);
  }
  options.disk_id = "boot/1";
  {
    auto server = Server::Start(options);
    REQUIRE(server.ok());
    const NodeReport seen =
        c.scheduler.Await([](const NodeReport& r) { return !r.disk_id().empty(); });
    CHECK(seen.disk_id() == "boot/1");
    CHECK(seen.disk_bytes() > 0);  // what is free
    CHECK_FALSE(seen.disk_given());
    CHECK(seen.disk_job_bytes() == 0);
  }
  options.memory_bytes = 7;
  options.disk_bytes = 8;
  options.gpu_bytes = 9;
  options.machine_id = "m";
  auto server = Server::Start(options);
  REQUIRE(server.ok());
  const NodeReport given = c.scheduler.Await([](const NodeReport& r) { return r.memory_given(); });
  CHECK(given.memory_bytes() == 7);
  CHECK(given.disk_bytes() == 8);
  CHECK(given.disk_given());
  CHECK(given.gpu_bytes() == 9);
  CHECK(given.gpu_given());
  CHECK(given.machine_id() == "m");
}

TEST_CASE("a server says what its jobs have on its file system, without what is kept for nobody",
          "[server]") {
  ScriptedCluster c;
  ServerOptions options = c.Options();
  options.disk_id = "boot/1";
  std::filesystem::create_directories(options.directory);
  std::ofstream(options.directory + "/foreign") << std::string(8 << 20, 'x');
  auto server = Server::Start(options);
  REQUIRE(server.ok());
  NodeDirective directive;
  AddJob(directive, "logged");
  c.scheduler.Say(directive);
  c.scheduler.Await([](const NodeReport& r) { return HasState(r, ServerJobReport::OPEN); });
  // A new process finds what the one before wrote.
  server->reset();
  c.scheduler.Say({});
  server = Server::Start(options);
  REQUIRE(server.ok());
  c.scheduler.Await([](const NodeReport& r) {
    return HasState(r, ServerJobReport::KEPT) && r.disk_job_bytes() > 0;
  });
  directive.mutable_server_jobs(0)->set_was_open(true);
  c.scheduler.Say(directive);
  const NodeReport open =
      c.scheduler.Await([](const NodeReport& r) { return HasState(r, ServerJobReport::OPEN); });
  CHECK(open.disk_job_bytes() > 0);
  CHECK(open.disk_job_bytes() < 8 << 20);
  CHECK(open.server_jobs(0).disk_bytes() == open.disk_job_bytes());
  directive.mutable_server_jobs(0)->set_close(true);
  directive.mutable_server_jobs(0)->set_quarantine(true);
  c.scheduler.Say(directive);
  c.scheduler.Await([](const NodeReport& r) {
    return HasState(r, ServerJobReport::QUARANTINED) && r.disk_job_bytes() == 0;
  });
}

TEST_CASE("a GPU tier that a server cannot have fails the job, and says what to do", "[server]") {
  ScriptedCluster c;
  NodeDirective directive;
  ServerJobDirective* job = AddJob(directive, "logged");
  StorageSpec& storage = *job->mutable_spec()->mutable_spec()->mutable_storage();
  storage.set_gpu_bytes_per_server("64MiB");
  c.scheduler.Say(directive);
  auto server = Server::Start(c.Options());
  CHECK(c.scheduler.Await([](const NodeReport& r) { return true; }).device().empty());
  REQUIRE(server.ok());
  const auto failure = [&](uint64_t generation) {
    const NodeReport report = c.scheduler.Await([&](const NodeReport& r) {
      return HasState(r, ServerJobReport::FAILED) && r.server_jobs(0).generation() == generation;
    });
    return report.server_jobs(0).message();
  };
  const std::string no_gpu = failure(1);
  INFO(no_gpu);
  CHECK(no_gpu.find("spec.storage.gpuBytesPerServer: server ") == 0);
  CHECK(no_gpu.find("has no GPU; start it with --device") != std::string::npos);
  CHECK(no_gpu.find("spec.storage.gpuBackend: host") != std::string::npos);

  job->set_generation(2);
  storage.set_gpu_backend("host");
  storage.set_gpu_bytes_per_server("100");
  c.scheduler.Say(directive);
  const std::string small = failure(2);
  INFO(small);
  CHECK(small.find("spec.storage.gpuBytesPerServer is too small: ") != std::string::npos);
  CHECK(small.find("set it to at least ") != std::string::npos);

  job->set_generation(3);
  storage.set_gpu_bytes_per_server("1000TiB");
  c.scheduler.Say(directive);
  const std::string large = failure(3);
  INFO(large);
  CHECK(large.find("spec.storage.gpuBytesPerServer is 1099511627776000 bytes, ") == 0);
  CHECK(large.find(" bytes of memory; lower it") != std::string::npos);

  job->set_generation(4);
  storage.set_gpu_bytes_per_server("8MiB");
  c.scheduler.Say(directive);
  c.scheduler.Await([](const NodeReport& r) { return HasState(r, ServerJobReport::OPEN); });
}

TEST_CASE("a server says which GPU it has", "[server]") {
  ScriptedCluster c;
  c.scheduler.Say({});
  ServerOptions options = c.Options();
  options.make_gpu = [](const storage::gpu::GpuShape&) {
    return absl::UnimplementedError("no tier");
  };
  CHECK(absl::IsInvalidArgument(Server::Start(options).status()));
  options.device = "GPU-0123";
  auto server = Server::Start(options);
  REQUIRE(server.ok());
  c.scheduler.Await([](const NodeReport& r) { return r.device() == "GPU-0123"; });
}

}  // namespace
}  // namespace strata::server
