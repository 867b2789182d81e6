#include "worker/bsp/cohort.h"

#include <cstring>
#include <utility>

#include "worker/step/key_runs.h"

namespace strata {

BatchRows CohortData::LaneRows(size_t i, std::span<const uint32_t> dims,
                               std::vector<float>* scratch) const {
  const bool alone = lanes.size() == 1;
  if (memory != nullptr) {
    RowsThere there;
    there.rows = weights.rows_there.get();
    if (!alone) {
      there.place = all.place[i];
      there.runs = all.runs;
    }
    return {nullptr, there, memory};
  }
  const float* rows = weights.rows.data();
  if (alone) return {rows};
  const KeyRuns& runs = prepared[i]->routed.runs;
  scratch->resize(FloatsOf(runs, dims));
  float* const own = scratch->data();
  ForPlaces(runs, all.place[i], all.runs, dims, [&](size_t to, size_t from, size_t floats) {
    std::memcpy(own + to, rows + from, floats * sizeof(float));
  });
  return {scratch->data()};
}

absl::StatusOr<std::shared_ptr<CohortData>> PrepareCohort(LanePreparer* preparer,
                                                          const Exchange* exchange,
                                                          device::RowMemory* memory, Step step,
                                                          const std::vector<uint32_t>& lanes,
                                                          StageClock* clock) {
  const InStage read(clock, Stage::kRead);
  auto data = std::make_shared<CohortData>();
  data->step = step;
  data->lanes = lanes;
  std::vector<const RoutedKeys*> routed;
  for (uint32_t lane : lanes) {
    auto prepared = preparer->Get(step, lane);
    if (!prepared.ok()) return prepared.status();
    data->prepared.push_back(*std::move(prepared));
    routed.push_back(&data->prepared.back()->routed);
  }
  const InStage route(clock, Stage::kRoute);
  if (routed.size() == 1) {  // its keys as they are
    data->all.keys = routed[0]->keys;
    data->all.positions = routed[0]->positions;
    data->all.runs = routed[0]->runs;
  } else {
    MergeLanes(routed, &data->all);
  }
  if (lanes.empty()) return data;
  data->memory = memory;
  if (memory == nullptr) {
    exchange->Prepare(data->keys(), &data->weights);
  } else if (absl::Status s = exchange->PrepareThere(data->keys(), memory, &data->weights);
             !s.ok()) {
    return s;
  }
  return data;
}

absl::StatusOr<std::shared_ptr<CohortData>> Cohorts::Get(Step step,
                                                         const std::vector<uint32_t>& lanes) {
  const auto it = by_step_.find(step);
  if (it != by_step_.end() && it->second->lanes == lanes) return it->second;
  auto data = PrepareCohort(preparer_, exchange_, memory_, step, lanes, clock_);
  if (data.ok()) by_step_[step] = *data;
  return data;
}

}  // namespace strata
