#include "worker/async/replica.h"

#include <algorithm>
#include <utility>

#include "worker/step/key_runs.h"

namespace strata {

Replica::Replica(const ReplicaOptions& options)
    : push_dims_(PushDims(options.tables)),
      dense_floats_(options.dense_rows * ModelTables::kDenseRowDim),
      alpha_(options.alpha),
      dense_optimizer_(options.tables[ModelTables::kDenseTable]),
      elsewhere_(options.dense_optimizer) {
  for (const TableSpec& table : options.tables) {
    row_dims_.push_back(table.dim());
    sparse_.push_back({LocalOptimizer(table)});
  }
}

KeyList Replica::Plan(std::span<const RoutedKeys* const> batches) {
  lists_.clear();
  if (alpha_ > 0) {
    HoldTouched();
    lists_.push_back(&held_);
  }
  first_batch_ = lists_.size();
  lists_.insert(lists_.end(), batches.begin(), batches.end());
  MergeLanes(lists_, &union_);
  return {union_.keys, union_.positions, union_.runs};
}

// Every batch of the last Plan was stepped on since, or the copy was forgotten.
void Replica::HoldTouched() {
  std::vector<bool> touched(union_.keys.size(), false);
  for (size_t l = first_batch_; l < union_.place.size(); ++l) {
    for (const uint32_t u : union_.place[l]) touched[u] = true;
  }
  std::vector<uint64_t> keys, positions;
  KeyRuns runs;
  held_rows_.clear();
  ForRuns(union_.runs, row_dims_, [&](const KeyRun& run, size_t begin) {
    const size_t dim = row_dims_[run.table], first = keys.size();
    for (size_t u = run.first; u < run.end(); ++u, begin += dim) {
      if (!touched[u]) continue;
      keys.push_back(union_.keys[u]);
      positions.push_back(union_.positions[u]);
      held_rows_.insert(held_rows_.end(), &rows_[begin], &rows_[begin] + dim);
    }
    if (keys.size() > first) runs.push_back({run.table, first, keys.size() - first});
  });
  held_.keys = std::move(keys);
  held_.positions = std::move(positions);
  held_.runs = std::move(runs);
}

void Replica::Pulled() {
  if (alpha_ == 0) return;
  rows_ = pulled_.rows;
  if (!held_.keys.empty()) {
    ForPlaces(held_.runs, union_.place[0], union_.runs, row_dims_,
              [&](size_t own, size_t all, size_t floats) {
                std::copy_n(&held_rows_[own], floats, &rows_[all]);
              });
  }
  if (!std::exchange(has_dense_, true)) dense_ = pulled_.dense;
}

const float* Replica::Rows(size_t i) {
  if (lists_.size() == 1) return base();  // the union is the batch
  const KeyRuns& runs = lists_[first_batch_ + i]->runs;
  scratch_.resize(FloatsOf(runs, row_dims_));
  ForPlaces(runs, union_.place[first_batch_ + i], union_.runs, row_dims_,
            [&](size_t own, size_t all, size_t floats) {
              std::copy_n(base() + all, floats, &scratch_[own]);
            });
  return scratch_.data();
}

void Replica::ResolveStates(Sparse& table, std::span<const uint64_t> positions) {
  const size_t floats = table.optimizer.state_floats();
  state_pointers_.assign(positions.size(), nullptr);
  if (floats == 0) return;
  std::vector<size_t> slots(positions.size());
  for (size_t k = 0; k < positions.size(); ++k) {
    const auto [it, fresh] = table.slot_of.try_emplace(positions[k], table.slot_of.size());
    slots[k] = it->second;
    if (!fresh) continue;
    table.states.resize(table.states.size() + floats);
    table.optimizer.InitState(&table.states[it->second * floats]);
  }
  for (size_t k = 0; k < slots.size(); ++k) state_pointers_[k] = &table.states[slots[k] * floats];
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
  row_places_.clear();
  ForPlaces(gradient.runs, place, union_.runs, row_dims_,
            [&](size_t, size_t all, size_t) { row_places_.push_back(base() + all); });
  LocalOptimizer::Counts sum;
  ForRuns(gradient.runs, push_dims_, [&](const KeyRun& run, size_t begin) {
    Sparse& table = sparse_[run.table];
    ResolveStates(table, std::span(gradient.positions.begin(), gradient.positions.end())
                             .subspan(run.first, run.count));
    const size_t dim = row_dims_[run.table], stride = push_dims_[run.table];
    const float* sums = gradient.rows.data() + begin;
    if (stride > dim) {  // without the counts
      sums_.resize(run.count * dim);
      for (size_t k = 0; k < run.count; ++k) std::copy_n(sums + k * stride, dim, &sums_[k * dim]);
      sums = sums_.data();
    }
    const LocalOptimizer::Counts counts =
        table.optimizer.Apply(steps_, gradient.examples, run.count, row_places_.data() + run.first,
                              state_pointers_.data(), sums);
    sum.refused += counts.refused;
    sum.clipped += counts.clipped;
  });
  const auto dense = StepDense(gradient);
  if (!dense.ok()) return dense.status();
  return LocalOptimizer::Counts{sum.refused + dense->refused, sum.clipped + dense->clipped};
}

std::shared_ptr<const Gradient> Replica::Exchange() {
  auto delta = std::make_shared<Gradient>();
  delta->examples = 1;
  delta->keys = held_.keys;
  delta->positions = held_.positions;
  delta->runs = held_.runs;
  delta->rows.resize(FloatsOf(held_.runs, row_dims_));
  delta->dense.resize(dense_floats_);
  std::vector<bool> kept(union_.keys.size(), false);
  if (first_batch_ < lists_.size()) {
    for (const uint32_t u : union_.place[first_batch_]) kept[u] = true;
  }
  const auto exchange = [this](float& x, float c, float& d) {
    d = alpha_ * (x - c);
    x -= d;
  };
  size_t j = 0;
  ForPlaces(held_.runs, union_.place[0], union_.runs, row_dims_,
            [&](size_t own, size_t all, size_t floats) {
              const bool keep = kept[union_.place[0][j++]];
              for (size_t e = 0; e < floats; ++e) {
                float& x = rows_[all + e];
                const float c = pulled_.rows[all + e];
                float& d = delta->rows[own + e];
                exchange(x, c, d);
                if (!keep) x = c + d;
              }
            });
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
