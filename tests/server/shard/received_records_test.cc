// A backup takes records as a head commits: no faster than its snapshots allow.
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/core/checksum.h"
#include "proto/core/ids.h"
#include "proto/runtime/base/executor.h"
#include "proto/runtime/base/manual_timer.h"
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
std::vector<Record> HeadRecords(const std::string& folder) {
  const auto log = OpenLog(folder);
  const auto head = MakeShard({.lanes = 1, .log = log.get()});
  for (uint64_t step = 1; step <= kSteps; ++step) {
    head->Contribute(
        Step(step), {0, 1},
        UpdateFor(NodeWork(1, step, {0, 1}), head->first_position(), head->last_position()));
    REQUIRE(head->TryCommit().value());
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
  Backup() {
    ShardRunner::Options options;
    options.timer = &timer;
    options.disk = &disk;
    options.pace = &pace;
    options.committed = [] {};
    options.cut_done = [this](CutNumber, const ShardCut&) { ++cuts; };
    runner = std::make_unique<ShardRunner>(MakeShard({.lanes = 1, .log = log.get()}), options);
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

  TempFolder folder;
  const std::vector<Record> records = HeadRecords(folder.path() + "/head");
  const std::unique_ptr<storage::UpdateLog> log = OpenLog(folder.path() + "/log");
  ManualTimer timer;
  ManualExecutor executor;
  ManualExecutor disk;
  SnapshotPace pace{0};
  int cuts = 0;
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
