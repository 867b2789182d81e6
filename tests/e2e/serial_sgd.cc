#include "tests/e2e/serial_sgd.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>

#include "ops/parallel.h"
#include "proto/core/model_tables.h"
#include "storage/row_layout.h"
#include "storage/shard_file.h"
#include "worker/batch.h"
#include "worker/data_access.h"
#include "worker/models/models.h"
#include "worker/router.h"

namespace strata::testing {
namespace {

class Serial {
 public:
  Serial(const JobSpec& spec, const ModelTables& tables)
      : spec_(spec), tables_(tables), rate_(spec.optimizer().sparse().learning_rate()) {
    for (const TableSpec& t : tables_.tables) layouts_.push_back(storage::RowLayout::For(t));
    auto model = MakeModel(tables_);
    REQUIRE(model.ok());
    model_ = *std::move(model);
  }

  void Step(const Batch& batch) {
    if (batch.size == 0) return;
    RoutedKeys routed;
    router_.Route(tables_.tables[0], batch.keys, &routed);
    const uint32_t dim = tables_.row_dim();
    std::vector<float> rows(routed.keys.size() * dim), row_sums(rows.size());
    for (size_t k = 0; k < routed.keys.size(); ++k) {
      const std::vector<float>& w = Row(0, routed.positions[k]);
      std::copy(w.begin(), w.end(), &rows[k * dim]);
    }
    // A tensor's rows side by side, and the same for its gradient.
    std::vector<std::vector<float>> tensors, tensor_sums;
    std::vector<const float*> in;
    std::vector<float*> out;
    for (size_t t = 0; t < tables_.tensor_count(); ++t) {
      const TensorSpec& tensor = tables_.tensor(t);
      std::vector<float> all;
      for (uint64_t r = 0; r < tensor.Rows(ModelTables::kDenseRowDim); ++r) {
        const std::vector<float>& w = Row(1, tensor.first.value + r);
        all.insert(all.end(), w.begin(), w.end());
      }
      tensor_sums.push_back(std::vector<float>(all.size(), 0.0f));
      tensors.push_back(std::move(all));
    }
    for (size_t t = 0; t < tensors.size(); ++t) {
      in.push_back(tensors[t].data());
      out.push_back(tensor_sums[t].data());
    }
    std::vector<float> predictions(batch.size);
    model_->TrainStep({&batch, &routed, rows.data(), in}, {row_sums.data(), out},
                      predictions.data(), parallel_.get());
    for (size_t k = 0; k < routed.keys.size(); ++k) {
      Update(Row(0, routed.positions[k]), &row_sums[k * dim], batch.size);
    }
    for (size_t t = 0; t < tensors.size(); ++t) {
      const TensorSpec& tensor = tables_.tensor(t);
      for (uint64_t r = 0; r < tensor.Rows(ModelTables::kDenseRowDim); ++r) {
        Update(Row(1, tensor.first.value + r), &tensor_sums[t][r * ModelTables::kDenseRowDim],
               batch.size);
      }
    }
  }

  Weights TakeWeights() { return std::move(weights_); }

 private:
  std::vector<float>& Row(uint32_t table, uint64_t position) {
    std::vector<float>& row = weights_[{table, position}];
    if (row.empty()) {
      const TableSpec& t = tables_.tables[table];
      row.resize(t.dim());
      storage::InitialWeights(t, layouts_[table], spec_.training().seed(),
                              t.KeyAtPosition(Position(position)), row.data());
    }
    return row;
  }

  void Update(std::vector<float>& row, const float* sums, uint32_t examples) {
    for (size_t d = 0; d < row.size(); ++d) {
      const float g = sums[d] / static_cast<float>(examples);
      row[d] = std::fma(-rate_, g, row[d]);
    }
  }

  const JobSpec spec_;
  const ModelTables tables_;
  const float rate_;
  std::vector<storage::RowLayout> layouts_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<ops::Parallel> parallel_ = ops::MakeParallel(1);
  Router router_;
  Weights weights_;
};

}  // namespace

Weights SerialSgd(const TrainingJob& job) {
  const JobSpec& spec = job.spec();
  const auto index = DataAccess::Files()->BuildIndex(
      spec.data(), {spec.data().train().begin(), spec.data().train().end()});
  REQUIRE(index.ok());
  const auto source = DataAccess::Files()->Open(spec, *index, index->shape());
  REQUIRE(source.ok());
  const auto tables = MakeModelTables(spec, index->shape().fields(), index->shape().numeric());
  REQUIRE(tables.ok());
  REQUIRE(index->tasks_size() == 1);  // every epoch's tasks are then the same, but for the shuffle
  const uint64_t windows =
      (index->lines() + spec.training().batch_size() - 1) / spec.training().batch_size();
  Serial serial(spec, *tables);
  Batch batch;
  for (uint64_t epoch = 0; epoch < spec.training().epochs(); ++epoch) {
    for (uint64_t w = 0; w < windows; ++w) {
      REQUIRE((*source)->ReadWindow(TaskId(epoch), w, &batch).ok());
      serial.Step(batch);
    }
  }
  return serial.TakeWeights();
}

Weights CheckpointWeights(const std::string& folder) {
  Weights weights;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename() == "MANIFEST.json") continue;
    const auto reader = storage::ShardFileReader::Open(entry.path());
    REQUIRE(reader.ok());
    const storage::ShardFileHeader& header = (*reader)->header();
    for (const storage::TableShape& t : header.tables) {
      const absl::Status s = (*reader)->ReadRows(
          t.id, header.partitions, [&](std::span<const Position> positions, const uint8_t* rows) {
            for (size_t i = 0; i < positions.size(); ++i) {
              std::vector<float> w(t.dim);
              std::memcpy(w.data(), rows + i * t.row_bytes(), t.dim * sizeof(float));
              weights[{t.id.value, positions[i].value}] = std::move(w);
            }
            return absl::OkStatus();
          });
      REQUIRE(s.ok());
    }
  }
  return weights;
}

}  // namespace strata::testing
