// A backup takes records as a head commits: no faster than its snapshots allow, and each of them at
// last. Nobody is answered from rows that lack what the log has.
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/core/checksum.h"
#include "proto/core/ids.h"
#include "proto/runtime/base/executor.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/wire/buffer.h"
#include "server/protocol/step_gate.h"
#include "server/shard/cut.h"
#include "server/shard/runner.h"
#include "server/shard/shard.h"
#include "server/snapshot/pace.h"
#include "storage/log/record.h"
#include "storage/log/update_log.h"
#include "tests/server/shard/shard_fixture.h"
#include "tests/temp_folder.h"

namespace strata::server {
namespace {

constexpr uint64_t kSteps = 4;

struct Record {
  storage::LogHeader header;
  std::vector<uint8_t> payload;
};

// The log of a head that has committed kSteps steps.
std::vector<Record> HeadRecords(const std::string& folder, bool synchronous) {
  const auto log = OpenLog(folder);
  const auto head = MakeShard({.lanes = 1, .synchronous = synchronous, .log = log.get()});
  for (uint64_t step = 1; step <= kSteps; ++step) {
    ShardUpdate update =
        UpdateFor(NodeWork(1, step, {0, 1}), head->first_position(), head->last_position());
    if (synchronous) {
      head->Contribute(Step(step), {0, 1}, std::move(update));
      REQUIRE(head->TryCommit().value());
    } else {
      REQUIRE(head->ApplyWindow(TaskId(1), step - 1, LaneId(0), std::move(update)).value() ==
              Shard::WindowResult::kApplied);
    }
  }
  std::vector<Record> records;
  const auto take = [&](const storage::LogRecordView& r) {
    records.push_back({r.header, {r.payload.begin(), r.payload.end()}});
    return absl::OkStatus();
  };
  REQUIRE(log->Replay(0, take).ok());
  return records;
}

// Its disk and its executor run when the test says so.
struct Backup {
  explicit Backup(bool is_synchronous = true) : synchronous(is_synchronous) {
    ShardRunner::Options options;
    options.timer = &timer;
    options.disk = &disk;
    options.pace = &pace;
    options.committed = [] {};
    options.cut_done = [this](CutNumber, const ShardCut& cut) {
      ++cuts;
      last_cut = cut;
    };
    auto made = MakeShard({.lanes = 1, .synchronous = synchronous, .log = log.get()});
    shard = made.get();
    runner = std::make_unique<ShardRunner>(std::move(made), options);
    runner->SetExecutor(&executor);
    GoBy(1);
  }
  void GoBy(uint64_t chain_epoch) {
    runner->GoBy(chain_epoch, [] {});
    executor.RunAll();
  }
  ~Backup() {
    runner->Close(absl::UnavailableError("stopped"));
    executor.RunAll();
    runner->SetExecutor(nullptr);
    disk.RunAll();
    runner.reset();
  }

  // So many snapshots that commits of a head would wait.
  void BeginSnapshots() {
    std::vector<CutOrder> orders;
    for (CutNumber cut = 1; cut <= 3; ++cut) {
      orders.push_back({.cut = cut, .directory = absl::StrCat(folder.path(), "/cut-", cut)});
    }
    runner->SetCuts(orders);
    executor.RunAll();
  }
  void EndSnapshots() {
    while (disk.RunAll() + executor.RunAll() > 0) {
    }
  }
  // Sends all of them; the answer, once there is one.
  std::shared_ptr<std::optional<absl::Status>> Send() {
    std::vector<ReceivedRecord> received;
    for (const Record& r : records) received.push_back({{{}, r.header, r.payload}});
    auto answer = std::make_shared<std::optional<absl::Status>>();
    runner->Receive(1, received, [answer](absl::Status s) {
      REQUIRE_FALSE(answer->has_value());
      *answer = std::move(s);
    });
    executor.RunAll();
    return answer;
  }

  // All of them are in its log, as it says; the rows of the last one find the disk out of order.
  void SendWithTrouble() {
    const ScopedFailpoint trouble(
        "server.commit.appended",
        {.act = FailWith(absl::UnavailableError("disk")), .first_hit = kSteps, .hits = 1});
    const auto answer = Send();
    REQUIRE(answer->has_value());
    CHECK((*answer)->ok());
    CHECK(log->stats().records == kSteps);
    CHECK(runner->view().log_end == kSteps - 1);
    CHECK(runner->view().disk_errors == 1);
  }
  void RetryNow() {
    timer.Advance(ShardRunner::kRetryAfter);
    executor.RunAll();
  }

  const bool synchronous;
  TempFolder folder;
  const std::vector<Record> records = HeadRecords(folder.path() + "/head", synchronous);
  const std::unique_ptr<storage::UpdateLog> log = OpenLog(folder.path() + "/log");
  ManualTimer timer;
  ManualExecutor executor;
  ManualExecutor disk;
  SnapshotPace pace{0};
  int cuts = 0;
  ShardCut last_cut;
  Shard* shard = nullptr;  // the runner's
  std::unique_ptr<ShardRunner> runner;
};

TEST_CASE("a backup's records wait for its snapshots, as a head's commits do", "[server][chain]") {
  Backup backup;
  backup.BeginSnapshots();
  const auto answer = backup.Send();
  CHECK_FALSE(answer->has_value());
  CHECK(backup.runner->view().log_end == 0);
  CHECK(backup.log->stats().records == 0);
  backup.EndSnapshots();
  REQUIRE(answer->has_value());
  CHECK((*answer)->ok());
  CHECK(backup.cuts == 3);
  CHECK(backup.runner->view().log_end == kSteps);
  CHECK(backup.log->stats().records == kSteps);
}

// Nobody looked at what came before it goes into the log.
TEST_CASE("a record that was damaged on its way is neither written nor applied",
          "[server][chain]") {
  Backup backup;
  const auto send = [&](size_t damaged) {
    std::vector<ReceivedRecord> received;
    auto payloads = std::make_shared<std::vector<std::vector<uint8_t>>>();
    for (const Record& r : backup.records) payloads->push_back(r.payload);
    for (size_t i = 0; i < backup.records.size(); ++i) {
      const uint32_t crc = Crc32c((*payloads)[i]);
      if (i == damaged) (*payloads)[i].back() ^= 1;  // a value's: it reads well
      received.push_back({{{}, backup.records[i].header, (*payloads)[i]}, payloads, crc});
    }
    std::optional<absl::Status> answer;
    backup.runner->Receive(1, received, [&](absl::Status s) { answer = std::move(s); });
    backup.executor.RunAll();
    return *answer;
  };
  const absl::Status refused = send(2);
  INFO(refused);
  CHECK(absl::IsDataLoss(refused));
  CHECK(backup.runner->view().log_end == 2);
  CHECK(backup.log->stats().records == 2);
  CHECK(backup.runner->view().disk_errors == 0);
  CHECK(send(kSteps).ok());
  CHECK(backup.runner->view().log_end == kSteps);
  CHECK(backup.log->stats().records == kSteps);
}

// Who sent them is maybe no longer the copy before this one (R2).
TEST_CASE("records that wait for a snapshot end with their configuration", "[server][chain]") {
  Backup backup;
  backup.BeginSnapshots();
  const auto answer = backup.Send();
  CHECK_FALSE(answer->has_value());
  backup.GoBy(2);
  REQUIRE(answer->has_value());
  CHECK(absl::IsFailedPrecondition(**answer));
  backup.EndSnapshots();
  CHECK(backup.log->stats().records == 0);
}

TEST_CASE("records that are sent again while they wait are taken once", "[server][chain]") {
  Backup backup;
  backup.BeginSnapshots();
  const auto first = backup.Send(), second = backup.Send();
  REQUIRE(first->has_value());
  CHECK(absl::IsAborted(**first));
  CHECK_FALSE(second->has_value());
  backup.EndSnapshots();
  REQUIRE(second->has_value());
  CHECK((*second)->ok());
  CHECK(backup.log->stats().records == kSteps);
}

// The copy before this one sends no more, and nobody asks this one for anything.
TEST_CASE("a record that was acknowledged and not applied is applied later", "[server][chain]") {
  for (const bool synchronous : {true, false}) {
    INFO((synchronous ? "bsp" : "async"));
    Backup backup(synchronous);
    backup.SendWithTrouble();
    backup.RetryNow();
    CHECK(backup.runner->view().log_end == kSteps);
    CHECK(backup.runner->view().clock == kSteps);
  }
}

// By its clock the shard would show the rows after the last step as those before it.
TEST_CASE("a step that is in the log and not applied yet is not shown", "[server][chain]") {
  Backup backup;
  backup.SendWithTrouble();
  CHECK(backup.shard->CheckPull(Step(kSteps)) == PullVerdict::kWait);
  CHECK(backup.shard->CheckPull(Step(kSteps - 1)) == PullVerdict::kWait);
  backup.RetryNow();
  CHECK(backup.shard->CheckPull(Step(kSteps)) == PullVerdict::kServePreimage);
  CHECK(backup.shard->CheckPull(Step(kSteps + 1)) == PullVerdict::kServeCurrent);
}

// Its rows may be those of the next step by then.
TEST_CASE("no cut is taken at a step that the log is past", "[server][chain]") {
  Backup backup;
  backup.SendWithTrouble();
  backup.runner->SetCuts({{.cut = 1, .step = Step(kSteps - 1)}});
  backup.EndSnapshots();
  CHECK(backup.cuts == 0);
  backup.RetryNow();
  backup.EndSnapshots();
  REQUIRE(backup.cuts == 1);
  CHECK(backup.last_cut.outcome == ShardCut::Outcome::kRefused);
}

TEST_CASE("records that wait are refused when the shard closes", "[server][chain]") {
  Backup backup;
  backup.BeginSnapshots();
  const auto answer = backup.Send();
  backup.runner->Close(absl::UnavailableError("closed"));
  backup.executor.RunAll();
  REQUIRE(answer->has_value());
  CHECK(absl::IsUnavailable(**answer));
  CHECK(backup.log->stats().records == 0);
}

}  // namespace
}  // namespace strata::server
