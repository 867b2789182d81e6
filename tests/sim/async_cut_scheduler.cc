#include "tests/sim/async_cut_scheduler.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "proto/core/partition.h"
#include "tests/server/shard/shard_fixture.h"

namespace strata::sim {
namespace {

using server::ShardCut;

scheduler::CutConfig Config(const AsyncCutOptions& o) {
  return {.bsp = false,
          .every_steps = 1,
          .directory = absl::StrCat(o.folder, "/", o.seed),
          .servers = o.shards,
          .partitions = server::kPartitions,
          .spread = o.seed};
}

CutReport::State StateOf(ShardCut::Outcome outcome) {
  if (outcome == ShardCut::Outcome::kDone) return CutReport::DONE;
  return outcome == ShardCut::Outcome::kRefused ? CutReport::REFUSED : CutReport::FAILED;
}

}  // namespace

CutScheduler::CutScheduler(const AsyncCutOptions& options)
    : o_(options),
      random_(options.seed ^ 0x1a57),
      cuts_(Config(options), {}),
      faults_left_(options.last_faults == 0
                       ? 0
                       : static_cast<uint32_t>(random_() % (options.last_faults + 1))) {}

server::CutNumber CutScheduler::cut() const {
  const auto& pending = cuts_.book().pending();
  return pending.empty() ? 0 : pending[0].cut();
}

std::string CutScheduler::folder() const {
  const auto& pending = cuts_.book().pending();
  return pending.empty() ? "" : pending[0].folder();
}

bool CutScheduler::Plan(uint64_t windows, bool everything, bool ready, int64_t now_ms) {
  if (everything && !last_wanted_) {
    cuts_.WantLast(0);
    last_wanted_ = true;
  }
  const server::CutNumber before = cut();
  cuts_.Plan(1, windows, ready, now_ms);
  if (cut() == 0 || cut() == before) return false;
  fault_ = LastFault::kNone;
  if (!cuts_.book().pending(0).last()) return false;
  ++tries_of_last_;
  DrawFault();
  return true;
}

void CutScheduler::DrawFault() {
  if (faults_left_ == 0) return;
  --faults_left_;
  fault_ = static_cast<LastFault>(1 + random_() % 6);
  // Three in a row would end the job.
  const bool ends = cuts_.book().failures() + 1 == scheduler::CutCoordinator::kMaxFailures;
  if (fault_ == LastFault::kNoFolder && ends) fault_ = LastFault::kFull;
  if (fault_ != LastFault::kNoFolder) return;
  std::filesystem::create_directories(cuts_.config().directory);
  std::ofstream(folder()) << "in the way";
}

void CutScheduler::Word(uint32_t shard, server::CutNumber cut, const ShardCut& said) {
  CutReport word;
  word.set_cut(cut);
  word.set_state(StateOf(said.outcome));
  word.set_message(said.message);
  word.set_code(static_cast<uint32_t>(said.code));
  const PartitionRange range = server::Ranges(o_.shards)[shard];
  for (const server::CutFile& f : said.files) {
    CheckpointFile* file = word.add_files();
    file->set_name(f.name);
    file->set_first_partition(range.first.value);
    file->set_last_partition(range.last.value);
  }
  for (const auto& [lane, mark] : said.marks) {
    LanePosition* position = word.add_lanes();
    position->set_lane(lane);
    position->set_task(mark.task.value);
    position->set_next_window(mark.next_window);
  }
  cuts_.Report(shard, word);
}

std::vector<CutScheduler::Result> CutScheduler::Settle(int64_t now_ms) {
  std::vector<Result> results = cuts_.Settle(now_ms);
  for (Result& result : results) {
    if (result.outcome != Outcome::kDone) continue;
    const uint64_t cut = result.cut.cut();
    cuts_.Writing(cut, {});
    if (fault_ == LastFault::kManifest && result.cut.last()) {
      result = cuts_.WritingFailed(cut, absl::InternalError("EIO"), now_ms);
      continue;
    }
    scheduler::CheckpointRecord record;
    record.set_step(cut);
    record.set_folder(result.cut.folder());
    cuts_.Complete(cut, std::move(record));
    cuts_.TakeExcess(0);
  }
  return results;
}

bool CutScheduler::Abort() { return !cuts_.Abort().empty(); }

}  // namespace strata::sim
