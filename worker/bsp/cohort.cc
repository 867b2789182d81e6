#include "worker/bsp/cohort.h"

#include <cstring>
#include <utility>

namespace strata {

BatchRows CohortData::LaneRows(size_t i, size_t dim, std::vector<float>* scratch) const {
  const bool alone = lanes.size() == 1;
  if (memory != nullptr) {
    RowsThere there;
    there.rows = weights.rows_there.get();
    if (!alone) there.place = all.place[i];
    return {nullptr, there, memory};
  }
  const float* rows = weights.rows.data();
  if (alone) return {rows};
  const std::vector<uint32_t>& place = all.place[i];
  scratch->resize(place.size() * dim);
  for (size_t u = 0; u < place.size(); ++u) {
    std::memcpy(scratch->data() + u * dim, rows + place[u] * dim, dim * sizeof(float));
  }
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
