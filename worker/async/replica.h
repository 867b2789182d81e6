// A lane's own copy of the weights that its next batches need, beside the servers' (DESIGN.md
// section 7): what downpour and easgd step on between two calls.
#ifndef STRATA_WORKER_ASYNC_REPLICA_H_
#define STRATA_WORKER_ASYNC_REPLICA_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "proto/job/tables/model_tables.h"
#include "worker/client/exchange.h"
#include "worker/step/batch.h"
#include "worker/step/dense_optimizer.h"
#include "worker/step/gradient.h"
#include "worker/step/local_optimizer.h"
#include "worker/step/router.h"

namespace strata {

struct ReplicaOptions {
  // The job's, by number, with the optimizers of the local step.
  std::vector<TableSpec> tables;
  size_t dense_rows = 0;
  // Easgd: rows and dense part live on over pulls, until they are exchanged with this share of
  // their distance from the centre. 0: what is pulled replaces what was there (downpour).
  float alpha = 0.0f;
  // The local step of the dense part; null: here, on the CPU. Outlives the replica.
  DenseOptimizer* dense_optimizer = nullptr;
};

// Weights and optimizer state only: when to pull, step and exchange is the TrainingStrategy's, and
// how the caller's. One thread at a time.
//
// Memory: the rows of the batches between two pulls, and those between the two pulls before, as
// wide as their tables' are; with alpha also the dense part, and the optimizer state of every row
// that the lane ever stepped on (ALGORITHMS.md: it lives in the lane).
class Replica {
 public:
  explicit Replica(const ReplicaOptions& options);

  // 1. The keys to pull before these batches: theirs, and those that the next exchange is about.
  // `batches` outlive the calls about them. The list is good until the next Plan.
  KeyList Plan(std::span<const RoutedKeys* const> batches);
  // 2. Where the weights of these keys, and of the dense table, are to be put.
  ParameterBlock* pulled() { return &pulled_; }
  // 3. They are there.
  void Pulled();

  // Weights of the distinct keys of batch `i` of Plan, (keys, row dim of the table); good until the
  // next call.
  const float* Rows(size_t i);
  // (dense rows, dense row dim)
  const float* dense() const { return alpha_ > 0 ? dense_.data() : pulled_.dense.data(); }

  // One step of the local optimizer with the gradient of batch `i`; one without examples does
  // nothing. Errors: the dense optimizer's.
  absl::StatusOr<LocalOptimizer::Counts> LocalStep(size_t i, const Gradient& gradient);

  // Easgd: d = alpha (x - c) with c what was pulled last, for the rows touched since the exchange
  // before and for the dense part; x -= d. Returns d, to be added to the centre: it stands for one
  // example, so that no division changes it. Afterwards only rows of batch 0 of the last Plan are
  // kept (their step with the gradient from before the exchange comes next); others start from the
  // centre again.
  std::shared_ptr<const Gradient> Exchange();

  // Easgd: x := c as it was pulled last, for all rows. Where an exchange turns out to have been
  // done before, by a lane that is gone: the steps before it are in the centre as far as they ever
  // will.
  void Reset();

  // Forgets the copy: x := c at the next pull. Optimizer state stays.
  void Forget();

 private:
  void HoldTouched();
  struct Sparse;
  // Sets state_pointers_ of one table's keys.
  void ResolveStates(Sparse& table, std::span<const uint64_t> positions);
  absl::StatusOr<LocalOptimizer::Counts> StepDense(const Gradient& gradient);

  std::vector<uint32_t> row_dims_, push_dims_;  // by table
  const size_t dense_floats_;
  const float alpha_;
  LocalOptimizer dense_optimizer_;
  DenseOptimizer* const elsewhere_;  // ReplicaOptions::dense_optimizer
  uint64_t steps_ = 0;

  // What the lane steps on, of union_'s keys: (union, row dim of the table).
  float* base() { return alpha_ > 0 ? rows_.data() : pulled_.rows.data(); }

  // Of the last Plan: its lists and their union. With alpha the first list is held_, the keys that
  // were touched since the last exchange, and held_rows_ what the copy had of them.
  std::vector<const RoutedKeys*> lists_;
  size_t first_batch_ = 0;  // of lists_: batch 0
  UnionKeys union_;
  ParameterBlock pulled_;
  RoutedKeys held_;
  std::vector<float> held_rows_;
  // Easgd: the copy, of union_'s keys and of the dense table.
  std::vector<float> rows_;
  std::vector<float> dense_;
  bool has_dense_ = false;
  std::vector<float> scratch_;
  std::vector<float> sums_;  // gradients without the counts of a push
  // A hashed table's local step, and its rows' optimizer state: slots of state_floats, in order of
  // first use.
  struct Sparse {
    LocalOptimizer optimizer;
    absl::flat_hash_map<uint64_t, size_t> slot_of = {};  // by position
    std::vector<float> states = {};
  };
  std::vector<Sparse> sparse_;  // by table; of the dense one unused
  std::vector<float> dense_states_;
  std::vector<float*> row_pointers_, state_pointers_;
  std::vector<float*> row_places_;  // of a batch's keys
};

}  // namespace strata

#endif  // STRATA_WORKER_ASYNC_REPLICA_H_
