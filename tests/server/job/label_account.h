// An account of what a job with labels has: weights by the names of keys, inputs and labels,
// wherever they lie. It knows of labels by name alone.
#ifndef STRATA_TESTS_SERVER_JOB_LABEL_ACCOUNT_H_
#define STRATA_TESTS_SERVER_JOB_LABEL_ACCOUNT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "proto/core/table_spec.h"
#include "storage/row/layout.h"

namespace strata::server {

inline constexpr uint32_t kDim = 4;        // of dense rows
inline constexpr uint32_t kInputs = 5;     // of the output layer
inline constexpr uint32_t kEmbedding = 2;  // floats before a row's weights
inline constexpr uint64_t kSeed = 3;

using Labels = std::vector<std::string>;

// A job of those labels, under one optimizer. Its tensors lie where `first` says: the output layer,
// its bias, and one that has nothing of labels.
struct Model {
  Labels labels;
  OptimizerType optimizer = OptimizerType::kSgd;
  std::vector<uint64_t> first;
  bool scored = false;

  std::vector<TableSpec> Tables() const;
};

// What was trained: a number of each name, and of each time that it was trained.
class Trained {
 public:
  explicit Trained(int time) : time_(time) {}
  float operator()(const std::string& name) {
    const auto [at, fresh] = numbers_.emplace(name, 0.0f);
    if (fresh) at->second = static_cast<float>(time_ * 10000) + static_cast<float>(++last_);
    return at->second;
  }

 private:
  const int time_;
  int last_ = 0;
  std::map<std::string, float> numbers_;
};

using Rows = std::map<std::pair<uint32_t, uint64_t>, std::vector<uint8_t>>;  // by table, position

bool Has(const Labels& labels, const std::string& label);
void SetFloat(std::vector<uint8_t>& row, size_t place, float value);
void SetMeta(std::vector<uint8_t>& row, storage::RowMeta meta);

// The rows of a job of `model` that was trained as `trained` says, where the labels in `known` have
// been trained alone, and what others have is new. `reset`: and so is the optimizers' state.
Rows AccountOf(const Model& model, const Labels& known, Trained& trained, bool reset,
               const std::vector<uint64_t>& keys);

}  // namespace strata::server

#endif  // STRATA_TESTS_SERVER_JOB_LABEL_ACCOUNT_H_
