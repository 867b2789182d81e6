// Random models and batches for them.
#ifndef STRATA_TESTS_WORKER_MODELS_PROBLEM_H_
#define STRATA_TESTS_WORKER_MODELS_PROBLEM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ops/parallel.h"
#include "proto/job/tables/model_tables.h"
#include "worker/step/batch.h"
#include "worker/step/model.h"

namespace strata::testing {

// What a batch's features tell of their fields.
enum class Fields {
  kOrdinal,  // nothing: fields by ordinal; some examples have fewer or more features than fields
  kSingle,   // fields named, at most one feature each, some missing
  kMulti,    // fields named, none to four features each
};

struct Shape {
  std::string type;
  uint32_t fields = 0, numeric = 0, dim = 0;
  std::vector<uint32_t> hidden;
  uint32_t batch = 0, unique = 0;
  bool values = false;  // random, or all 1
  Fields named = Fields::kOrdinal;
  std::vector<uint32_t> bottom_hidden = {};   // dlrm
  uint32_t cross_layers = 0, cross_rank = 0;  // dcn_v2
  // A letter a label: b (binary), s (squared), p (poisson), h (huber), S and H (of counts); some
  // lines lack some labels. Empty: one binary label, by the short form.
  std::string labels = "";
  bool weighted = false;
  std::vector<uint32_t> tower_hidden = {};  // shared_bottom
  bool max = false;                         // every second field is pooled by max
  bool mean = false;                        // fields, which are named, are pooled by mean
  // Mmoe, din: widths of the tables, which fields take in turn. Empty: one table of width `dim`.
  std::vector<uint32_t> dims = {};
  uint32_t experts = 0;                         // mmoe
  std::vector<uint32_t> expert_hidden = {};     // mmoe
  uint32_t sequences = 0;                       // din: so many fields more, before the others
  std::vector<uint32_t> attention_hidden = {};  // din
  bool means = false;                           // labels state them
};

std::string Describe(const Shape& shape);

class Random {
 public:
  explicit Random(uint64_t seed) : x_(seed * 2654435761u + 1) {}
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>((Next() >> 33) % n); }
  float Uniform(float scale) {
    return (static_cast<float>(Next() >> 40) * 0x1p-24f * 2 - 1) * scale;
  }

 private:
  uint64_t Next() { return x_ = x_ * 6364136223846793005ull + 1442695040888963407ull; }
  uint64_t x_;
};

// A model, a batch for it and weights, all random.
struct Problem {
  Problem(const Shape& shape, uint64_t seed);

  // Fills `routed` from the batch's keys, which count from 0: `unique` of each table.
  void Route(uint32_t unique);
  // The table of a key, and the first float of its row.
  uint32_t TableOf(uint64_t key) const;
  size_t RowOf(uint64_t key) const;

  ModelTables tables;
  uint32_t unique = 0;  // keys of each table
  Batch batch;
  RoutedKeys routed;
  std::vector<float> rows;
  std::vector<std::vector<float>> tensors;
};

// Everything that a step gives.
struct StepResult {
  double loss = 0;
  std::vector<float> predictions, rows;
  std::vector<std::vector<float>> tensors;
};

// One TrainStep of `model` on p; gradients go to memory that held NaNs.
StepResult Run(const Problem& p, Model& model, ops::Parallel* parallel);
// Predict's.
std::vector<float> RunPredict(const Problem& p, Model& model, ops::Parallel* parallel);

bool SameBits(const std::vector<float>& a, const std::vector<float>& b);
bool SameBits(const StepResult& a, const StepResult& b);

}  // namespace strata::testing

#endif  // STRATA_TESTS_WORKER_MODELS_PROBLEM_H_
