// Jobs whose models must not depend on anything else of a P3 row.
#ifndef STRATA_TESTS_E2E_P3_MODELS_H_
#define STRATA_TESTS_E2E_P3_MODELS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"

namespace strata::testing {

struct Model {
  const char* name;
  // Changes a SmallJob, whose data lie in `folder`, into this job.
  void (*make)(const std::string& folder, TrainingJob& job);
  // Limits of a server. "": it has none.
  const char* dram = "";
  const char* hbm = "";
  // The limit of a server with four shards where `dram` is for one alone.
  const char* dram_of_four = "";
  // So many servers' DRAM is too little for its rows.
  uint32_t below_on = 3;
  // A limit of DRAM is for one shard of a server: each keeps the layers of the deep part apart.
  bool one_shard = false;
  // Features come and go, and are streamed out as they go.
  bool life_cycle = false;
  // The table whose rows lie below DRAM for the most part where `below_on` holds. "": none is
  // named.
  const char* mostly_below = "";
};

const std::vector<Model>& Models();

// A model's job and what it gives on one server and one worker that keep all rows in DRAM.
struct Reference {
  TrainingJob job;
  JobStatus status;
  std::vector<std::pair<uint64_t, uint64_t>> removed;  // (step, key)
  // The model's `mostly_below`; where that names a table, a checkpoint of the end.
  std::string mostly_below;
  std::string checkpoint;
};

// Makes the model's data in a folder below `folder`, and trains it; `epochs`: of 0, as many as the
// model has.
Reference MakeReference(const Model& model, const std::string& folder, uint32_t epochs = 0);

// Everything whose update depends on the step's number or on a row's state, at once: four
// optimizers, three schedules, decay, both clips.
void UseManyOptimizers(JobSpec& spec);

}  // namespace strata::testing

#endif  // STRATA_TESTS_E2E_P3_MODELS_H_
