#include "worker/async/replica.h"

#include <algorithm>
#include <utility>

namespace strata {

Replica::Replica(const ReplicaOptions& options)
    : row_dim_(options.features.dim()),
      push_dim_(options.features.push_dim()),
      dense_floats_(options.dense_rows * ModelTables::kDenseRowDim),
      alpha_(options.alpha),
      features_(options.features),
      dense_optimizer_(options.dense),
      elsewhere_(options.dense_optimizer) {}

KeyList Replica::Plan(std::span<const RoutedKeys* const> batches) {
  lists_.clear();
  if (alpha_ > 0) {
    HoldTouched();
    lists_.push_back(&held_);
  }
  first_batch_ = lists_.size();
  lists_.insert(lists_.end(), batches.begin(), batches.end());
  MergeLanes(lists_, &union_);
  return {union_.keys, union_.positions};
}

// Every batch of the last Plan was stepped on since, or the copy was forgotten.
void Replica::HoldTouched() {
  std::vector<bool> touched(union_.keys.size(), false);
  for (size_t l = first_batch_; l < union_.place.size(); ++l) {
    for (const uint32_t u : union_.place[l]) touched[u] = true;
  }
  std::vector<uint64_t> keys, positions;
  held_rows_.clear();
  for (size_t u = 0; u < touched.size(); ++u) {
    if (!touched[u]) continue;
    keys.push_back(union_.keys[u]);
    positions.push_back(union_.positions[u]);
    held_rows_.insert(held_rows_.end(), &rows_[u * row_dim_], &rows_[u * row_dim_] + row_dim_);
  }
  held_.keys = std::move(keys);
  held_.positions = std::move(positions);
}

void Replica::Pulled() {
  if (alpha_ == 0) return;
  rows_ = pulled_.rows;
  for (size_t j = 0; j < held_.keys.size(); ++j) {
    std::copy_n(&held_rows_[j * row_dim_], row_dim_, &rows_[union_.place[0][j] * size_t{row_dim_}]);
  }
  if (!std::exchange(has_dense_, true)) dense_ = pulled_.dense;
}

const float* Replica::Rows(size_t i) {
  if (lists_.size() == 1) return base();  // the union is the batch
  const std::vector<uint32_t>& place = union_.place[first_batch_ + i];
  scratch_.resize(place.size() * row_dim_);
  for (size_t k = 0; k < place.size(); ++k) {
    std::copy_n(base() + place[k] * size_t{row_dim_}, row_dim_, &scratch_[k * row_dim_]);
  }
  return scratch_.data();
}

void Replica::ResolveStates(std::span<const uint64_t> positions) {
  const size_t floats = features_.state_floats();
  state_pointers_.assign(positions.size(), nullptr);
  if (floats == 0) return;
  std::vector<size_t> slots(positions.size());
  for (size_t k = 0; k < positions.size(); ++k) {
    const auto [it, fresh] = slot_of_.try_emplace(positions[k], slot_of_.size());
    slots[k] = it->second;
    if (!fresh) continue;
    states_.resize(states_.size() + floats);
    features_.InitState(&states_[it->second * floats]);
  }
  for (size_t k = 0; k < slots.size(); ++k) state_pointers_[k] = &states_[slots[k] * floats];
}

absl::StatusOr<LocalOptimizer::Counts> Replica::StepDense(const Gradient& gradient) {
  float* dense = alpha_ > 0 ? dense_.data() : pulled_.dense.data();
  if (elsewhere_ != nullptr) {
    return elsewhere_->Apply(steps_, gradient.examples, dense, gradient.dense.data());
  }
  const size_t floats = dense_optimizer_.state_floats();
  const size_t n = dense_floats_ / ModelTables::kDenseRowDim;
  if (dense_states_.size() != n * floats) {
    dense_states_.resize(n * floats);
    for (size_t r = 0; r < n; ++r) dense_optimizer_.InitState(&dense_states_[r * floats]);
  }
  row_pointers_.resize(n);
  state_pointers_.assign(n, nullptr);
  for (size_t r = 0; r < n; ++r) {
    row_pointers_[r] = dense + r * ModelTables::kDenseRowDim;
    if (floats > 0) state_pointers_[r] = &dense_states_[r * floats];
  }
  return dense_optimizer_.Apply(steps_, gradient.examples, n, row_pointers_.data(),
                                state_pointers_.data(), gradient.dense.data());
}

absl::StatusOr<LocalOptimizer::Counts> Replica::LocalStep(size_t i, const Gradient& gradient) {
  if (gradient.examples == 0) return LocalOptimizer::Counts();
  ++steps_;
  const std::vector<uint32_t>& place = union_.place[first_batch_ + i];
  ResolveStates(gradient.positions);
  row_pointers_.resize(place.size());
  for (size_t k = 0; k < place.size(); ++k) {
    row_pointers_[k] = base() + place[k] * size_t{row_dim_};
  }
  const float* sums = gradient.rows.data();
  if (push_dim_ > row_dim_) {  // without the counts
    sums_.resize(place.size() * row_dim_);
    for (size_t k = 0; k < place.size(); ++k) {
      std::copy_n(&gradient.rows[k * push_dim_], row_dim_, &sums_[k * row_dim_]);
    }
    sums = sums_.data();
  }
  const LocalOptimizer::Counts sparse = features_.Apply(
      steps_, gradient.examples, place.size(), row_pointers_.data(), state_pointers_.data(), sums);
  const auto dense = StepDense(gradient);
  if (!dense.ok()) return dense.status();
  return LocalOptimizer::Counts{sparse.refused + dense->refused, sparse.clipped + dense->clipped};
}

std::shared_ptr<const Gradient> Replica::Exchange() {
  auto delta = std::make_shared<Gradient>();
  delta->examples = 1;
  delta->keys = held_.keys;
  delta->positions = held_.positions;
  delta->rows.resize(held_.keys.size() * row_dim_);
  delta->dense.resize(dense_floats_);
  std::vector<bool> kept(union_.keys.size(), false);
  if (first_batch_ < lists_.size()) {
    for (const uint32_t u : union_.place[first_batch_]) kept[u] = true;
  }
  const auto exchange = [this](float& x, float c, float& d) {
    d = alpha_ * (x - c);
    x -= d;
  };
  for (size_t j = 0; j < held_.keys.size(); ++j) {
    const size_t u = union_.place[0][j];
    float* x = &rows_[u * row_dim_];
    const float* c = &pulled_.rows[u * row_dim_];
    float* d = &delta->rows[j * row_dim_];
    for (uint32_t e = 0; e < row_dim_; ++e) {
      exchange(x[e], c[e], d[e]);
      if (!kept[u]) x[e] = c[e] + d[e];
    }
  }
  for (size_t e = 0; e < dense_floats_; ++e) exchange(dense_[e], pulled_.dense[e], delta->dense[e]);
  return delta;
}

void Replica::Reset() {
  rows_ = pulled_.rows;
  dense_ = pulled_.dense;
}

void Replica::Forget() {
  lists_.clear();
  first_batch_ = 0;
  union_ = UnionKeys();
  held_ = RoutedKeys();
  has_dense_ = false;
}

}  // namespace strata
