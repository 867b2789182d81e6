// What a server has on disk of jobs, over its processes: opened, removed, or kept.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/strata/control.pb.h"
#include "server/job/job_folder.h"
#include "server/job/job_note.h"
#include "server/job_keeper.h"
#include "tests/server/keeper_fixture.h"
#include "tests/server/one_shard_job.h"

namespace strata::server {
namespace {

using Fixture = KeeperFixture;

TEST_CASE("a job is removed from where it was opened, and only that very job",
          "[keeper][identity]") {
  Fixture f;
  const std::string far = f.folder.path() + "/far";
  f.job().mutable_spec()->mutable_spec()->mutable_storage()->set_directory(far);
  f.keeper->Follow(f.directive);
  REQUIRE(f.Settled().state() == ServerJobReport::OPEN);
  const std::string folder = JobFolder(far + "/s", kIdentity);
  REQUIRE(std::filesystem::exists(folder + "/generation-1/OPEN"));
  NodeDirective over;
  ServerJobDirective& d = *over.add_server_jobs();
  d.set_job(kJob.value);
  d.set_close(true);
  Name({kIdentity.cluster, {9, 9}}, &d);  // of the same number
  f.keeper->Follow(over);
  CHECK(f.Report().state() == ServerJobReport::OPEN);
  CHECK(f.Serves());
  Name(kIdentity, &d);
  auto user = f.keeper->Jobs();  // a request that has found it
  f.keeper->Follow(over);
  CHECK(f.Report().state() == ServerJobReport::KEPT);
  CHECK(f.Report().closes());
  CHECK(f.keeper->Busy());
  user.clear();
  f.AwaitGone();
  CHECK_FALSE(std::filesystem::exists(far + "/s"));
  CHECK(std::filesystem::exists(far));
  CHECK(std::filesystem::is_empty(f.folder.path() + "/s/held"));
}

TEST_CASE("a new process tells what it kept; it is opened, removed, or kept for good",
          "[keeper][identity]") {
  Fixture f;
  const std::string far = f.folder.path() + "/far";
  f.job().mutable_spec()->mutable_spec()->mutable_storage()->set_directory(far);
  f.job().set_index_fingerprint(99);
  f.keeper->Follow(f.directive);
  REQUIRE(f.Settled().state() == ServerJobReport::OPEN);
  const std::string folder = JobFolder(far + "/s", kIdentity);
  f.Restart();
  CHECK(f.Report().state() == ServerJobReport::KEPT);  // from the first report on
  CHECK(f.Looked().state() == ServerJobReport::KEPT);
  CHECK(f.Report().job() == kJob.value);
  CHECK(f.Report().job_uid() == kIdentity.job.text());
  CHECK(f.Report().kept_bytes() > 0);
  CHECK_FALSE(f.Serves());
  CHECK_FALSE(f.keeper->Busy());

  SECTION("opened") {
    f.job().set_was_open(true);
    f.keeper->Follow(f.directive);
    CHECK(f.Settled().state() == ServerJobReport::OPEN);
  }
  SECTION("removed, without a word on where it is") {
    NodeDirective over;
    ServerJobDirective& d = *over.add_server_jobs();
    d.set_job(kJob.value);
    Name(kIdentity, &d);
    d.set_close(true);
    f.keeper->Follow(over);
    f.AwaitGone();
    CHECK_FALSE(std::filesystem::exists(folder));
  }
  SECTION("kept") {
    NodeDirective unknown;
    ServerJobDirective& d = *unknown.add_server_jobs();
    d.set_job(kJob.value);
    Name(kIdentity, &d);
    d.set_close(true);
    d.set_quarantine(true);
    for (int i = 0; i < 2; ++i) {
      f.keeper->Follow(unknown);
      CHECK(f.Report().state() == ServerJobReport::QUARANTINED);
      CHECK(f.Report().kept_bytes() > 0);
      CHECK(f.keeper->quarantined() == 1);
      CHECK(std::filesystem::exists(folder + "/generation-1/OPEN"));
      CHECK(f.Report().kept().map_epoch() == 3);
    }
    f.Restart();  // it stays so
    CHECK(f.Looked().state() == ServerJobReport::QUARANTINED);
    // With what its directive said, or why that is not known.
    CHECK(f.Report().kept().generation() == 1);
    CHECK(f.Report().kept().spec().metadata().name() == "job");
    CHECK(f.Report().kept().shards_size() == 1);
    CHECK(f.Report().kept().index_fingerprint() == 99);
    std::filesystem::resize_file(folder + "/generation-1/NOTE", 100);
    f.Restart();
    CHECK(f.Looked().state() == ServerJobReport::QUARANTINED);
    CHECK_FALSE(f.Report().has_kept());
    CHECK(absl::StrContains(f.Report().message(), folder + "/generation-1/NOTE"));
    f.job().set_was_open(true);
    f.keeper->Follow(f.directive);  // its scheduler is back: it goes on
    CHECK(f.Settled().state() == ServerJobReport::OPEN);
    CHECK(f.keeper->quarantined() == 0);
    CHECK(ReadJobNote(far + "/s", kIdentity)->index_fingerprint() == 99);  // whole again
  }
}

TEST_CASE("an open job that no scheduler knows is closed, and nothing of it is lost",
          "[keeper][identity]") {
  Fixture f;
  f.keeper->Follow(f.directive);
  REQUIRE(f.Settled().state() == ServerJobReport::OPEN);
  NodeDirective unknown = f.directive;
  unknown.mutable_server_jobs(0)->set_close(true);
  unknown.mutable_server_jobs(0)->set_quarantine(true);
  f.keeper->Follow(unknown);
  CHECK_FALSE(f.Serves());
  CHECK(f.Report().state() == ServerJobReport::QUARANTINED);
  CHECK(f.Looked().kept_bytes() > 0);
  CHECK(std::filesystem::exists(f.Folder() + "/generation-1/OPEN"));
  f.job().set_was_open(true);
  f.keeper->Follow(f.directive);
  CHECK(f.Settled().state() == ServerJobReport::OPEN);
}

TEST_CASE("another job of the same number does not go on with the one before",
          "[keeper][identity]") {
  Fixture f;
  f.keeper->Follow(f.directive);
  REQUIRE(f.Settled().state() == ServerJobReport::OPEN);
  const JobIdentity other = {kIdentity.cluster, {9, 9}};
  Name(other, &f.job());
  f.keeper->Follow(f.directive);
  while (f.keeper->Busy()) std::this_thread::yield();
  REQUIRE(f.service.Find(kJob) != nullptr);
  CHECK(f.service.Find(kJob)->plan().identity == other);
  CHECK(std::filesystem::exists(f.Folder() + "/generation-1/OPEN"));
  CHECK(std::filesystem::exists(JobFolder(f.folder.path() + "/s", other) + "/generation-1/OPEN"));
}

// Follow of a directive that has the job closed, and what is on disk removed.
NodeDirective Over() {
  NodeDirective over;
  ServerJobDirective& d = *over.add_server_jobs();
  d.set_job(kJob.value);
  Name(kIdentity, &d);
  d.set_close(true);
  return over;
}

TEST_CASE("what cannot be removed is tried again after a while, without another word",
          "[keeper][identity]") {
  Fixture f;
  f.keeper->Follow(f.directive);
  REQUIRE(f.Settled().state() == ServerJobReport::OPEN);
  f.Restart();
  auto in_use = JobFolderLock::Take(f.Folder());
  REQUIRE(in_use.ok());
  f.keeper->Follow(Over());
  const auto tried = [&f] { f.Await([&f] { return !f.keeper->Busy(); }); };
  tried();
  CHECK(f.Report().state() == ServerJobReport::KEPT);  // it is told as long as it is there
  f.timer.Advance(JobKeeper::kReopenAfter);
  f.keeper->Tend();
  tried();
  CHECK(std::filesystem::exists(f.Folder()));
  in_use->reset();
  SECTION("it goes then") {
    f.timer.Advance(JobKeeper::kReopenAfter - absl::Milliseconds(1));
    f.keeper->Tend();
    CHECK_FALSE(f.keeper->Busy());
    CHECK(std::filesystem::exists(f.Folder()));
    f.timer.Advance(absl::Milliseconds(1));
    f.keeper->Tend();
    f.AwaitGone();
    CHECK_FALSE(std::filesystem::exists(f.Folder()));
    CHECK(std::filesystem::is_empty(f.folder.path() + "/s/held"));
  }
  SECTION("unless it is to be kept now") {
    NodeDirective unknown = Over();
    unknown.mutable_server_jobs(0)->set_quarantine(true);
    f.keeper->Follow(unknown);
    f.timer.Advance(2 * JobKeeper::kReopenAfter);
    f.keeper->Tend();
    CHECK_FALSE(f.keeper->Busy());
    CHECK(f.Report().state() == ServerJobReport::QUARANTINED);
    CHECK(std::filesystem::exists(f.Folder() + "/generation-1/OPEN"));
  }
  SECTION("or is open again") {
    f.job().set_was_open(true);
    f.keeper->Follow(f.directive);
    REQUIRE(f.Settled().state() == ServerJobReport::OPEN);
    f.timer.Advance(2 * JobKeeper::kReopenAfter);
    f.keeper->Tend();
    CHECK_FALSE(f.keeper->Busy());
    CHECK(f.Report().state() == ServerJobReport::OPEN);
    CHECK(std::filesystem::exists(f.Folder() + "/generation-1/OPEN"));
  }
}

TEST_CASE("files whose file system is not mounted are held until it is", "[keeper][identity]") {
  Fixture f;
  const std::string far = f.folder.path() + "/far", away = f.folder.path() + "/away";
  f.job().mutable_spec()->mutable_spec()->mutable_storage()->set_directory(far);
  f.keeper->Follow(f.directive);
  REQUIRE(f.Settled().state() == ServerJobReport::OPEN);
  const std::string folder = JobFolder(far + "/s", kIdentity);
  f.keeper.reset();
  std::filesystem::rename(far, away);
  f.Restart();
  CHECK(f.Report().state() == ServerJobReport::KEPT);
  f.keeper->Follow(Over());
  f.Await([&f] { return !f.keeper->Busy(); });
  CHECK(f.Report().state() == ServerJobReport::KEPT);
  f.Restart();
  CHECK(f.Report().state() == ServerJobReport::KEPT);
  f.keeper->Follow(Over());
  f.Await([&f] { return !f.keeper->Busy(); });
  std::filesystem::rename(away, far);
  CHECK(std::filesystem::exists(folder + "/generation-1/OPEN"));
  f.timer.Advance(JobKeeper::kReopenAfter);
  f.keeper->Tend();
  f.AwaitGone();
  CHECK_FALSE(std::filesystem::exists(far + "/s"));
  CHECK(std::filesystem::is_empty(f.folder.path() + "/s/held"));
}

TEST_CASE("a place that could not be made holds nothing", "[keeper][identity]") {
  Fixture f;
  f.job().mutable_spec()->mutable_spec()->mutable_storage()->set_directory("/dev/null/far");
  f.keeper->Follow(f.directive);
  while (f.Report().message().empty()) std::this_thread::yield();
  f.Restart();
  CHECK(f.keeper->Reports().empty());
  f.keeper->Follow(f.directive);
  while (f.Report().message().empty()) std::this_thread::yield();
  f.keeper->Follow(Over());
  f.AwaitGone();
}

TEST_CASE("what a later generation has is not replaced by an earlier one", "[keeper][identity]") {
  Fixture f;
  f.job().set_generation(2);
  f.keeper->Follow(f.directive);
  REQUIRE(f.Settled().state() == ServerJobReport::OPEN);
  f.Restart();
  CHECK(f.Looked().generation() == 2);
  f.job().set_generation(1);
  f.job().set_was_open(true);
  f.keeper->Follow(f.directive);
  while (f.Report().message().empty()) std::this_thread::yield();
  CHECK(f.Report().state() == ServerJobReport::OPENING);  // neither lost nor failed
  CHECK(absl::StrContains(f.Report().message(), "generation 2"));
  CHECK(absl::StrContains(f.Report().message(), "--restored"));
  CHECK(std::filesystem::exists(f.Folder() + "/generation-2/OPEN"));
  f.job().set_generation(1001);
  f.job().set_was_open(false);
  f.keeper->Follow(f.directive);
  CHECK(f.Settled().state() == ServerJobReport::OPEN);
}

TEST_CASE(
    "copies that were taken from this server while it was away are removed, once it hears of "
    "the job",
    "[keeper][chain]") {
  Fixture f;
  f.directive = TwoCopies("log-a");
  f.keeper->Follow(f.directive);
  f.Await([&] {
    const auto reports = f.keeper->Reports();
    return reports[0].state() == ServerJobReport::OPEN &&
           reports[1].state() == ServerJobReport::OPEN;
  });
  const std::string root = f.folder.path() + "/s";
  CHECK(CopiesIn(root, kIdentity).size() == 2);
  f.Restart();
  CHECK(f.Looked().state() == ServerJobReport::KEPT);
  CHECK(CopiesIn(root, kIdentity).size() == 2);  // nobody has said anything yet
  f.directive.mutable_server_jobs()->DeleteSubrange(0, 1);
  f.job().set_was_open(true);
  f.keeper->Follow(f.directive);
  CHECK(f.Settled().state() == ServerJobReport::OPEN);
  f.Await([&] { return CopiesIn(root, kIdentity) == std::vector<uint32_t>{1}; });
  CHECK(std::filesystem::exists(ShardsFolder(root, kIdentity, 1) + "/generation-1/OPEN"));
  // Named again, it begins with nothing.
  f.directive = TwoCopies("log-a");
  for (ServerJobDirective& d : *f.directive.mutable_server_jobs()) d.set_was_open(true);
  f.keeper->Follow(f.directive);
  f.Await([&] { return f.keeper->Reports()[0].state() != ServerJobReport::OPENING; });
  CHECK(f.keeper->Reports()[0].state() == ServerJobReport::LOST);
}

}  // namespace
}  // namespace strata::server
