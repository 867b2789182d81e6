// Deltas against whole exports: a copy that follows them has the checkpoint's rows, bit for bit.
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "proto/core/ids.h"
#include "proto/strata/job.pb.h"
#include "storage/delta/file.h"
#include "tests/e2e/cluster/small_job.h"
#include "tests/temp_folder.h"
#include "tools/cluster/checkpoint/row_changes.h"
#include "tools/cluster/checkpoint/rows.h"
#include "tools/cluster/embedded/embedded.h"
#include "tools/cluster/export/delta_copy.h"
#include "tools/cluster/export/export.h"

namespace strata {
namespace {

// Checkpoints at steps 5, 10, 15 and 20, the ends of epochs, of a job whose features come and go.
std::string Train(const TempFolder& folder, uint32_t servers) {
  EmbeddedOptions options;
  options.job = testing::SmallJob(folder.path());
  testing::WriteLibfm(folder.path() + "/train.libfm", 1, 300, 6, 40);
  JobSpec& spec = *options.job.mutable_spec();
  spec.mutable_model()->set_type("fm");
  spec.mutable_model()->clear_hidden();
  spec.mutable_replicas()->set_servers(servers);
  spec.mutable_checkpoint()->set_directory(folder.path() + "/ck" + std::to_string(servers));
  spec.mutable_checkpoint()->set_keep(10);
  AdmissionSpec& a = *spec.mutable_life_cycle()->mutable_admission();
  a.set_type("exact");
  a.set_min_steps(2);
  spec.mutable_life_cycle()->mutable_removal()->set_every_steps(2);
  spec.mutable_life_cycle()->mutable_removal()->set_ttl_steps(2);
  uint64_t removed = 0;
  for (uint32_t epochs = 1; epochs <= 4; ++epochs) {
    spec.mutable_training()->set_epochs(epochs);
    options.resume = epochs > 1;
    auto status = RunEmbedded(options);
    INFO(status.status());
    REQUIRE(status.ok());
    REQUIRE(status->state() == SUCCEEDED);
    REQUIRE(status->step() == 5 * epochs);
    removed += status->life_cycle().removed_by_ttl();
  }
  REQUIRE(removed >= 10);
  return spec.checkpoint().directory();
}

std::string At(const std::string& checkpoints, uint64_t step) {
  auto folder = CheckpointOfStep(checkpoints, step);
  INFO(folder.status());
  REQUIRE(folder.ok());
  return *folder;
}

CheckpointRows Rows(const std::string& folder) {
  auto rows = CheckpointRows::Open(folder);
  INFO(rows.status());
  REQUIRE(rows.ok());
  return *std::move(rows);
}

std::string Read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  INFO(path);
  REQUIRE(in.good());
  return {std::istreambuf_iterator<char>(in), {}};
}

// Exports what changed from `from` (0: everything) to `to`; gives the folder.
std::string Export(const std::string& checkpoints, uint64_t from, uint64_t to, ExportFormat format,
                   bool with_state, const std::string& out, ExportSummary* summary = nullptr) {
  ExportOptions options{.checkpoint_dir = At(checkpoints, to), .output = out};
  if (from > 0) options.since_dir = At(checkpoints, from);
  options.plan.format = format;
  options.plan.with_state = with_state;
  auto done = ExportCheckpoint(options);
  INFO(done.status());
  REQUIRE(done.ok());
  CHECK(done->since == from);
  CHECK(done->step == to);
  if (summary != nullptr) *summary = *done;
  return out;
}

std::string DeltaIn(const std::string& folder, uint64_t from, uint64_t to) {
  char name[64];
  std::snprintf(name, sizeof name, "/delta-%012d-%012d.strata", static_cast<int>(from),
                static_cast<int>(to));
  return folder + name;
}

void CheckCopy(const DeltaCopy& copy, const CheckpointRows& rows, bool with_state) {
  for (uint32_t t = 0; t < rows.rows().size(); ++t) {
    CHECK(copy.rows(TableId(t)) == rows.rows(t));
    const size_t bytes = with_state ? rows.layout(t).row_bytes() : rows.layout(t).dim * 4;
    const TableSpec& table = rows.tables().tables[t];
    REQUIRE(rows.ReadAll(t,
                         [&](Position p, const uint8_t* row) {
                           const auto* mine = copy.Find(TableId(t), table.KeyAtPosition(p).value);
                           REQUIRE(mine != nullptr);
                           REQUIRE(mine->size() == bytes);
                           REQUIRE(std::memcmp(mine->data(), row, bytes) == 0);
                           return absl::OkStatus();
                         })
                .ok());
  }
}

TEST_CASE("a whole model and the deltas after it are the newest checkpoint", "[export][delta]") {
  TempFolder folder;
  const std::string checkpoints = Train(folder, 2);
  for (const bool with_state : {false, true}) {
    const std::string out = folder.path() + (with_state ? "/state-" : "/weights-");
    DeltaCopy copy;
    std::vector<std::string> files;
    uint64_t removed = 0;
    for (const uint64_t from : {0, 5, 10, 15}) {
      ExportSummary summary;
      const std::string where = out + std::to_string(from);
      Export(checkpoints, from, from + 5, ExportFormat::kDelta, with_state, where, &summary);
      files.push_back(DeltaIn(where, from, from + 5));
      removed += summary.removed;
      const absl::Status s = copy.Apply(files.back());
      INFO(s);
      REQUIRE(s.ok());
      CheckCopy(copy, Rows(At(checkpoints, from + 5)), with_state);
    }
    CHECK(removed >= 3);
    CHECK(copy.applied().deletes == removed);
    // Deltas may span several checkpoints.
    DeltaCopy other;
    REQUIRE(other.Apply(files[0]).ok());
    const std::string span =
        Export(checkpoints, 5, 20, ExportFormat::kDelta, with_state, out + "x");
    REQUIRE(other.Apply(DeltaIn(span, 5, 20)).ok());
    CheckCopy(other, Rows(At(checkpoints, 20)), with_state);
    // A gap, a repetition and a start without a whole model are refused, and change nothing.
    DeltaCopy gap;
    CHECK(absl::IsFailedPrecondition(gap.Apply(files[1])));
    REQUIRE(gap.Apply(files[0]).ok());
    CHECK(absl::IsFailedPrecondition(gap.Apply(files[2])));
    CHECK(absl::IsFailedPrecondition(gap.Apply(files[0])));
    CheckCopy(gap, Rows(At(checkpoints, 5)), with_state);
    // Damage is found before anything is applied.
    std::string bytes = Read(files[1]);
    bytes[bytes.size() - 3] = static_cast<char>(bytes[bytes.size() - 3] ^ 1);
    std::ofstream(folder.path() + "/damaged", std::ios::binary) << bytes;
    CHECK(absl::IsDataLoss(gap.Apply(folder.path() + "/damaged")));
    CheckCopy(gap, Rows(At(checkpoints, 5)), with_state);
    REQUIRE(gap.Apply(files[1]).ok());
  }
}

std::vector<uint64_t> Keys(const std::string& path) {
  const std::string bytes = Read(path);
  const size_t header = 10 + static_cast<uint8_t>(bytes[8]) + 256 * static_cast<uint8_t>(bytes[9]);
  std::vector<uint64_t> keys((bytes.size() - header) / 8);
  if (!keys.empty()) std::memcpy(keys.data(), bytes.data() + header, keys.size() * 8);
  return keys;
}

TEST_CASE("arrays of what changed: keys with rows, and keys without one", "[export][delta]") {
  TempFolder folder;
  const std::string checkpoints = Train(folder, 1);
  const std::string out = folder.path() + "/";
  const auto keys = [&](uint64_t at) {
    Export(checkpoints, 0, at, ExportFormat::kNpy, false, out + "full" + std::to_string(at));
    const auto all = Keys(out + "full" + std::to_string(at) + "/features.keys.npy");
    return std::set<uint64_t>(all.begin(), all.end());
  };
  std::set<uint64_t> model = keys(10);
  ExportSummary summary;
  Export(checkpoints, 10, 20, ExportFormat::kNpy, true, out + "changes", &summary);
  const auto changed = Keys(out + "changes/features.keys.npy");
  const auto removed = Keys(out + "changes/features.removed_keys.npy");
  CHECK(summary.rows == changed.size());
  CHECK(summary.removed == removed.size());
  CHECK(!removed.empty());
  for (const uint64_t key : removed) CHECK(model.erase(key) == 1);
  model.insert(changed.begin(), changed.end());
  CHECK(model == keys(20));
  const std::string index = Read(out + "changes/index.json");
  CHECK(index.find("\"since\"") != std::string::npos);
  CHECK(index.find("\"removed\"") != std::string::npos);
  Export(checkpoints, 10, 20, ExportFormat::kSafetensors, false, out + "safetensors");
  CHECK(Read(out + "safetensors/model.safetensors.index.json").find("features.removed_keys") !=
        std::string::npos);
}

TEST_CASE("a delta does not depend on how many servers wrote the checkpoints", "[export][delta]") {
  TempFolder folder;
  const std::string one = Train(folder, 1), three = Train(folder, 3);
  const std::string out = folder.path() + "/";
  Export(one, 10, 20, ExportFormat::kDelta, true, out + "one");
  Export(three, 10, 20, ExportFormat::kDelta, true, out + "three");
  CHECK(Read(DeltaIn(out + "one", 10, 20)) == Read(DeltaIn(out + "three", 10, 20)));
  // Checkpoints of other servers, too, are of the same model.
  uint64_t changes = 0;
  const CheckpointRows a = Rows(At(one, 20)), b = Rows(At(three, 20));
  for (uint32_t t = 0; t < 2; ++t) {
    REQUIRE(VisitChanges(&a, b, t, [&](Position, const uint8_t*, const uint8_t*) {
              ++changes;
              return absl::OkStatus();
            }).ok());
  }
  CHECK(changes == 0);
}

TEST_CASE("a step without a checkpoint, and one that is not before, are told", "[export][delta]") {
  TempFolder folder;
  const std::string checkpoints = Train(folder, 1);
  for (const std::string& where : {checkpoints, checkpoints + "/", At(checkpoints, 10)}) {
    const auto none = CheckpointOfStep(where, 7);
    REQUIRE(absl::IsNotFound(none.status()));
    CHECK(none.status().message().find("there are: 5, 10, 15, 20") != std::string::npos);
    CHECK(CheckpointOfStep(where, 5).ok());
  }
  ExportOptions options{.checkpoint_dir = At(checkpoints, 10), .output = folder.path() + "/out"};
  for (const uint64_t since : {10, 15}) {
    options.since_dir = At(checkpoints, since);
    CHECK(absl::IsFailedPrecondition(ExportCheckpoint(options).status()));
  }
}

}  // namespace
}  // namespace strata
