#include "worker/eval/scorer.h"

#include <cstddef>

namespace strata {

absl::Status Scorer::Score(Step step, const Batch& batch, std::vector<float>* scores) {
  scores->clear();
  if (batch.size == 0) return absl::OkStatus();
  router_.Route(*o_.tables, batch, &routed_);
  if (absl::Status s =
          o_.client->Pull(step, {routed_.keys, routed_.positions, routed_.runs}, &weights_);
      !s.ok()) {
    return s;
  }
  scores->resize(size_t{batch.size} * batch.tasks);
  const auto tensors = o_.exchange->TensorsIn(static_cast<const float*>(weights_.dense.data()));
  return o_.model->Predict({&batch, &routed_, weights_.rows.data(), tensors}, scores->data(),
                           o_.parallel);
}

}  // namespace strata
