// SimServer: cuts.
#include "tests/scheduler/sim_nodes.h"

namespace strata::scheduler {

void SimServer::Finish(Open& open, const CutDirective& cut) {
  CutReport& report = open.cuts[cut.cut()];
  report.set_cut(cut.cut());
  report.set_state(CutReport::DONE);
  report.set_step(open.shard.clock);
  CheckpointFile* file = report.add_files();
  file->set_name(name_);
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
    return end(CutReport::FAILED);
  }
  if (cut.cut() != barrier.pending() || !barrier.Ready()) return;
  Finish(open, cut);
  barrier.Taken();
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
