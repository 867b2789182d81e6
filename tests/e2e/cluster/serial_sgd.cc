#include "tests/e2e/cluster/serial_sgd.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "ops/parallel.h"
#include "proto/job/tables/model_tables.h"
#include "storage/checkpoint/shard_file.h"
#include "storage/row/layout.h"
#include "worker/data/reading/data_access.h"
#include "worker/models/models.h"
#include "worker/step/batch.h"
#include "worker/step/router.h"

namespace strata::testing {
namespace {

using Place = std::pair<uint32_t, uint64_t>;  // table, position

// Gradients of a batch, and the weights that it is computed at, both by place.
class Gradients {
 public:
  Gradients(const JobSpec& spec, const ModelTables& tables)
      : seed_(spec.training().seed()), tables_(tables) {
    for (const TableSpec& t : tables_.tables) layouts_.push_back(storage::RowLayout::For(t));
    auto model = MakeModel(tables_);
    REQUIRE(model.ok());
    model_ = *std::move(model);
  }

  // The row at a place of `weights`; put there as it begins where it is not.
  std::vector<float>& Row(Weights& weights, Place place) const {
    std::vector<float>& row = weights[place];
    if (row.empty()) {
      const auto& [table, position] = place;
      const TableSpec& t = tables_.tables[table];
      row.resize(t.dim());
      storage::InitialWeights(t, layouts_[table], seed_, t.KeyAtPosition(Position(position)),
                              row.data());
    }
    return row;
  }

  // The mean over the batch's examples; empty without any. `at` gives the weights of a place.
  template <typename At>
  Weights Mean(const Batch& batch, const At& at) {
    Weights mean;
    if (batch.size == 0) return mean;
    RoutedKeys routed;
    router_.Route(tables_.tables[0], batch.keys, &routed);
    const uint32_t dim = tables_.row_dim();
    std::vector<float> rows(routed.keys.size() * dim), row_sums(rows.size());
    for (size_t k = 0; k < routed.keys.size(); ++k) {
      const std::vector<float>& w = at(Place(0, routed.positions[k]));
      std::copy(w.begin(), w.end(), &rows[k * dim]);
    }
    // A tensor's rows side by side, and the same for its gradient.
    std::vector<std::vector<float>> tensors, tensor_sums;
    std::vector<const float*> in;
    std::vector<float*> out;
    for (size_t t = 0; t < tables_.tensor_count(); ++t) {
      std::vector<float> all;
      for (uint64_t r = 0; r < TensorRows(t); ++r) {
        const std::vector<float>& w = at(TensorPlace(t, r));
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
    REQUIRE(model_
                ->TrainStep({&batch, &routed, rows.data(), in}, {row_sums.data(), out},
                            predictions.data(), parallel_.get())
                .ok());
    const auto put = [&](Place place, const float* sums, uint32_t n) {
      std::vector<float>& g = mean[place];
      for (uint32_t d = 0; d < n; ++d) g.push_back(sums[d] / static_cast<float>(batch.size));
    };
    for (size_t k = 0; k < routed.keys.size(); ++k) {
      put(Place(0, routed.positions[k]), &row_sums[k * dim], dim);
    }
    for (size_t t = 0; t < tensors.size(); ++t) {
      for (uint64_t r = 0; r < TensorRows(t); ++r) {
        put(TensorPlace(t, r), &tensor_sums[t][r * ModelTables::kDenseRowDim],
            ModelTables::kDenseRowDim);
      }
    }
    return mean;
  }

 private:
  uint64_t TensorRows(size_t t) const { return tables_.tensor(t).Rows(ModelTables::kDenseRowDim); }
  Place TensorPlace(size_t t, uint64_t row) const {
    return {1, tables_.tensor(t).first.value + row};
  }

  const uint64_t seed_;
  const ModelTables tables_;
  std::vector<storage::RowLayout> layouts_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<ops::Parallel> parallel_ = ops::MakeParallel(1);
  Router router_;
};

void Descend(std::vector<float>& row, float rate, const std::vector<float>& g) {
  for (size_t d = 0; d < row.size(); ++d) row[d] = std::fma(-rate, g[d], row[d]);
}

// The only lane of a job: one step for each batch b of the n of a task, in order.
class Lane {
 public:
  Lane(const JobSpec& spec, const ModelTables& tables)
      : spec_(spec), gradients_(spec, tables), rate_(spec.optimizer().sparse().learning_rate()) {}
  virtual ~Lane() = default;
  virtual void Step(uint64_t b, uint64_t n, const Batch& batch) = 0;
  Weights TakeCentre() { return std::move(centre_); }

 protected:
  const JobSpec spec_;
  Gradients gradients_;
  const float rate_;
  Weights centre_;
};

// Every nFetch batches w := centre; acc += g and w -= local rate * g; every nPush batches, and at a
// task's end, centre -= rate * acc and acc := 0.
class DownpourLane : public Lane {
 public:
  using Lane::Lane;
  void Step(uint64_t b, uint64_t n, const Batch& batch) override {
    const TrainingSpec& training = spec_.training();
    if (b % training.n_fetch() == 0) copy_ = centre_;
    const Weights mean = gradients_.Mean(
        batch, [&](Place p) -> const std::vector<float>& { return gradients_.Row(copy_, p); });
    for (const auto& [place, g] : mean) {
      std::vector<float>& sum = acc_[place];
      sum.resize(g.size());
      for (size_t d = 0; d < g.size(); ++d) sum[d] += g[d];
      Descend(gradients_.Row(copy_, place), training.local_learning_rate(), g);
    }
    if ((b + 1) % training.n_push() != 0 && b + 1 != n) return;
    for (const auto& [place, g] : acc_) Descend(gradients_.Row(centre_, place), rate_, g);
    acc_.clear();
  }

 private:
  Weights copy_, acc_;
};

// Between two batches, every tau and after a task's last, d = alpha (x - centre), x -= d,
// centre += d; the next batch's gradient was computed before. Rows that it does not have are
// dropped, and begin from the centre again.
class ElasticLane : public Lane {
 public:
  using Lane::Lane;
  void Step(uint64_t b, uint64_t n, const Batch& batch) override {
    const Weights mean =
        gradients_.Mean(batch, [&](Place p) -> const std::vector<float>& { return At(p); });
    if (b > 0 && b % spec_.training().tau() == 0) Exchange(mean);
    for (const auto& [place, g] : mean) {
      Descend(copy_.try_emplace(place, At(place)).first->second, rate_, g);
    }
    if (b + 1 == n) Exchange({});
  }

 private:
  const std::vector<float>& At(Place place) {
    const auto own = copy_.find(place);
    return own != copy_.end() ? own->second : gradients_.Row(centre_, place);
  }

  void Exchange(const Weights& next) {
    const float alpha = spec_.training().alpha();
    for (auto it = copy_.begin(); it != copy_.end();) {
      std::vector<float>& centre = gradients_.Row(centre_, it->first);
      for (size_t e = 0; e < centre.size(); ++e) {
        const float d = alpha * (it->second[e] - centre[e]);
        it->second[e] -= d;
        centre[e] += d;
      }
      const bool keep = it->first.first == 1 || next.contains(it->first);
      it = keep ? std::next(it) : copy_.erase(it);
    }
  }

  Weights copy_;
};

}  // namespace

Weights SerialSgd(const TrainingJob& job) {
  const JobSpec& spec = job.spec();
  const auto index = DataAccess::Files()->BuildIndex(
      spec, {spec.data().train().begin(), spec.data().train().end()}, {});
  REQUIRE(index.ok());
  const auto source = DataAccess::Files()->Open(spec, *index, index->shape());
  REQUIRE(source.ok());
  const auto tables = MakeModelTables(spec, index->shape().fields(), index->shape().numeric());
  REQUIRE(tables.ok());
  REQUIRE(index->tasks_size() == 1);  // every epoch's tasks are then the same, but for the shuffle
  const uint64_t batches =
      (index->lines() + spec.training().batch_size() - 1) / spec.training().batch_size();
  std::unique_ptr<Lane> lane;
  if (spec.training().mode() == "easgd") {
    lane = std::make_unique<ElasticLane>(spec, *tables);
  } else {
    REQUIRE(spec.training().mode() == "downpour");
    lane = std::make_unique<DownpourLane>(spec, *tables);
  }
  Batch batch;
  for (uint64_t epoch = 0; epoch < spec.training().epochs(); ++epoch) {
    for (uint64_t b = 0; b < batches; ++b) {
      REQUIRE((*source)->ReadWindow(TaskId(epoch), b, &batch).ok());
      lane->Step(b, batches, batch);
    }
  }
  return lane->TakeCentre();
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
