// A JobKeeper with a job of one shard, a scheduler that says what the test wants, and a timer that
// it moves.
#ifndef STRATA_TESTS_SERVER_KEEPER_FIXTURE_H_
#define STRATA_TESTS_SERVER_KEEPER_FIXTURE_H_

#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "proto/core/ids.h"
#include "proto/runtime/base/executor.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/strata/control.pb.h"
#include "server/data_service.h"
#include "server/job/job_folder.h"
#include "server/job_keeper.h"
#include "server/shard/request.h"
#include "tests/server/one_shard_job.h"
#include "tests/temp_folder.h"

namespace strata::server {

inline constexpr JobId kJob(1);

struct KeeperFixture {
  KeeperFixture() {
    JobSpec& spec = *AddJob(directive, "logged")->mutable_spec()->mutable_spec();
    spec.mutable_model()->set_type("fm");
    spec.mutable_model()->set_embedding_dim(16);
    spec.mutable_training()->set_mode("bsp");
    Restart();
  }

  // As a new process.
  void Restart() {
    keeper.reset();
    JobKeeper::Options options;
    options.root = folder.path() + "/s";
    options.name = "s";
    options.job = {pool.get(), pool.get(), &timer, &memory, 100, nullptr};
    options.service = &service;
    keeper = std::make_unique<JobKeeper>(options);
    REQUIRE(keeper->Begin().ok());
  }

  ServerJobDirective& job() { return *directive.mutable_server_jobs(0); }
  std::string Folder() const { return JobFolder(folder.path() + "/s", kIdentity); }
  ServerJobReport Report() const {
    const auto reports = keeper->Reports();
    REQUIRE(reports.size() == 1);
    return reports[0];
  }
  // Waits until the opening has come to an end; nothing but time would change it then.
  ServerJobReport Settled() const {
    while (Report().state() == ServerJobReport::OPENING) std::this_thread::yield();
    return Report();
  }
  bool Serves() const { return service.Find(kJob) != nullptr; }
  // What is done beside; nothing else would end the loop.
  void Await(const std::function<bool()>& done) const {
    while (!done()) std::this_thread::yield();
  }
  void AwaitGone() const {
    Await([this] { return keeper->Reports().empty(); });
  }
  // Waits until what is kept was looked at.
  ServerJobReport Looked() const {
    Await([this] { return !keeper->Reports().empty() && Report().kept_bytes() > 0; });
    return Report();
  }

  TempFolder folder;
  ManualTimer timer;
  RequestMemory memory{uint64_t{64} << 20};
  const std::unique_ptr<Executor> pool = MakeThreadPool(1, "shards");
  DataService service;
  NodeDirective directive;
  std::unique_ptr<JobKeeper> keeper;
};

}  // namespace strata::server

#endif  // STRATA_TESTS_SERVER_KEEPER_FIXTURE_H_
