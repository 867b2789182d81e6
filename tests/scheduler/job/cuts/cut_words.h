// What tests of the cut coordinator say to it.
#ifndef STRATA_TESTS_SCHEDULER_JOB_CUTS_CUT_WORDS_H_
#define STRATA_TESTS_SCHEDULER_JOB_CUTS_CUT_WORDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/job/cuts/cut_coordinator.h"

namespace strata::scheduler {

inline CutConfig Config() {
  return {.bsp = true,
          .every_steps = 10,
          .directory = "/c",
          .keep = 2,
          .total_steps = 100,
          .servers = 2,
          .partitions = 8};
}

inline CutReport Word(uint64_t cut, CutReport::State state, uint32_t first = 0, uint32_t last = 7) {
  CutReport report;
  report.set_cut(cut);
  report.set_state(state);
  report.set_message("disk full");
  if (state == CutReport::DONE) {
    CheckpointFile* file = report.add_files();
    file->set_name("f" + std::to_string(first));
    file->set_first_partition(first);
    file->set_last_partition(last);
  }
  return report;
}

inline std::vector<uint64_t> Steps(const CutCoordinator& cuts) {
  std::vector<uint64_t> steps;
  for (const CutRecord& c : cuts.book().pending()) steps.push_back(c.step());
  return steps;
}

inline CheckpointRecord At(uint64_t step, const std::string& folder) {
  CheckpointRecord record;
  record.set_step(step);
  record.set_folder(folder);
  return record;
}

}  // namespace strata::scheduler

#endif  // STRATA_TESTS_SCHEDULER_JOB_CUTS_CUT_WORDS_H_
