// SimServer: cuts.
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/core/shard_trailer.h"
#include "proto/core/uid.h"
#include "proto/runtime/files/manifest_io.h"
#include "tests/scheduler/sim_nodes.h"
#include "tests/shard_header.h"

namespace strata::scheduler {

namespace {

// Begins and ends as a file of a checkpoint does.
void WriteFinished(const std::string& folder, const FileWriter& writer, CheckpointFile* file) {
  const std::string header = ShardHeader(writer);
  std::array<uint8_t, kShardTrailerBytes> end;
  const uint64_t bytes = header.size() + end.size();
  EncodeShardTrailer({.footer_offset = header.size(), .file_bytes = bytes}, end.data());
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/" + file->name(), std::ios::binary)
      .write(header.data(), static_cast<std::streamsize>(header.size()))
      .write(reinterpret_cast<const char*>(end.data()), end.size());
  file->set_bytes(bytes);
  SetWriter(writer, file);
}

}  // namespace

void SimServer::Finish(Open& open, const CutDirective& cut) {
  CutReport& report = open.cuts[cut.cut()];
  report.set_cut(cut.cut());
  report.set_state(CutReport::DONE);
  report.set_step(open.shard.clock);
  CheckpointFile* file = report.add_files();
  // Real files have the names that servers give, by which leftovers are told.
  file->set_name(job_.real_files ? absl::StrCat("shard-0000", name_.substr(1), "-g",
                                                open.told.generation(), "-c", cut.cut(), ".strata")
                                 : name_);
  file->set_first_partition(0);
  file->set_last_partition(15);
  file->set_hash_low(1000 + open.shard.clock);
  if (open.barrier) {
    for (const auto& [lane, mark] : open.barrier->marks()) {
      LanePosition* position = report.add_lanes();
      position->set_lane(lane);
      position->set_task(mark.task.value);
      position->set_next_window(mark.next_window);
    }
  }
  if (job_.real_files && !cut.directory().empty()) {
    const auto identity = ParseJobIdentity(open.told.cluster_id(), open.told.job_uid());
    WriteFinished(cut.directory(),
                  {identity.value_or(JobIdentity()), Generation(open.told.generation()), cut.cut()},
                  file);
  }
  if (!cut.directory().empty()) (*disk_)[cut.directory()].files[name_] = open.shard;
}

// As ShardRunner::TakeCut.
void SimServer::TakeAsync(Open& open, const CutDirective& cut) {
  server::CutBarrier& barrier = *open.barrier;
  const auto end = [&](CutReport::State state) {
    open.cuts[cut.cut()].set_cut(cut.cut());
    open.cuts[cut.cut()].set_state(state);
    open.cuts[cut.cut()].set_message(name_ + " has no file");
  };
  if (cut.cut() <= barrier.over()) return end(CutReport::REFUSED);
  if (failing_cuts_ > 0) {
    --failing_cuts_;
    barrier.End(cut.cut());
    end(CutReport::FAILED);
    open.cuts[cut.cut()].set_code(static_cast<uint32_t>(failing_code_));
    return;
  }
  if (cut.cut() != barrier.pending() || !barrier.Ready()) return;
  Finish(open, cut);
  barrier.Taken();
}

// As ShardRunner looks before it keeps anything.
bool SimServer::MayExist(const Open& open, uint64_t cut) {
  if (open.barrier->MayExist(cut)) return true;
  ++impossible_cuts_;
  return false;
}

void SimServer::LosePatience() {
  for (auto& [id, open] : open_) {
    if (!open.barrier) continue;
    open.barrier->End(open.barrier->pending());
    TakeCuts(open);
  }
}

void SimServer::TakeCuts(Open& open) {
  if (open.state != ServerJobReport::OPEN) return;
  for (const CutDirective& cut : open.told.cuts()) {
    if (open.cuts.count(cut.cut()) > 0) continue;
    if (open.barrier) {
      TakeAsync(open, cut);
    } else if (open.shard.clock == cut.step()) {
      Finish(open, cut);
    } else if (open.shard.clock > cut.step()) {
      open.cuts[cut.cut()].set_cut(cut.cut());
      open.cuts[cut.cut()].set_state(CutReport::REFUSED);
    }
  }
}

}  // namespace strata::scheduler
