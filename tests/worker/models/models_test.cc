#include "worker/models/models.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "ops/cpu_features.h"
#include "ops/parallel.h"
#include "proto/core/model_tables.h"
#include "proto/strata/job.pb.h"
#include "worker/batch.h"

namespace strata {
namespace {

struct Shape {
  std::string type;
  uint32_t fields, numeric, dim;
  std::vector<uint32_t> hidden;
  uint32_t batch, unique;
  bool values;
};

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
  Problem(const Shape& shape, uint64_t seed) : random(seed), tables(Tables(shape)) {
    batch.Clear();
    batch.size = shape.batch;
    batch.numeric = shape.numeric;
    for (uint32_t i = 0; i < shape.batch; ++i) {
      batch.labels.push_back(static_cast<float>(random.Below(2)));
      for (uint32_t j = 0; j < shape.numeric; ++j) batch.dense.push_back(random.Uniform(1.5f));
      // Some examples lack fields, one has none, some have more than the model knows.
      uint32_t count = shape.fields;
      if (i % 5 == 1) count = random.Below(shape.fields + 1);
      if (i % 7 == 3) count += 2;
      if (i == 2) count = 0;
      for (uint32_t f = 0; f < count; ++f) {
        // One key in four is the same, so that it occurs in several chunks of a sum.
        batch.keys.push_back(random.Below(4) == 0 ? 0 : random.Below(shape.unique));
        if (shape.values) batch.values.push_back(random.Uniform(2.0f));
      }
      batch.offsets.push_back(static_cast<uint32_t>(batch.keys.size()));
    }
    std::vector<std::vector<uint32_t>> places(shape.unique);
    for (uint32_t f = 0; f < batch.keys.size(); ++f) {
      places[batch.keys[f]].push_back(f);
      routed.unique_of.push_back(static_cast<uint32_t>(batch.keys[f]));
    }
    routed.first.push_back(0);
    for (uint32_t u = 0; u < shape.unique; ++u) {
      routed.keys.push_back(u);
      routed.positions.push_back(u);
      routed.occurrences.insert(routed.occurrences.end(), places[u].begin(), places[u].end());
      routed.first.push_back(static_cast<uint32_t>(routed.occurrences.size()));
    }
    for (size_t i = 0; i < size_t{shape.unique} * tables.row_dim(); ++i) {
      rows.push_back(random.Uniform(0.7f));
    }
    for (size_t t = 0; t < tables.tensor_count(); ++t) {
      tensors.emplace_back();
      for (size_t i = 0; i < tables.tensor(t).elements; ++i) {
        tensors.back().push_back(random.Uniform(0.5f));
      }
    }
  }

  static ModelTables Tables(const Shape& shape) {
    JobSpec spec;
    spec.mutable_model()->set_type(shape.type);
    spec.mutable_model()->set_embedding_dim(shape.dim);
    for (uint32_t h : shape.hidden) spec.mutable_model()->add_hidden(h);
    spec.mutable_optimizer()->mutable_sparse()->set_type("sgd");
    spec.mutable_optimizer()->mutable_dense()->set_type("sgd");
    spec.mutable_storage()->set_partitions(16);
    const auto tables = MakeModelTables(spec, shape.fields, shape.numeric);
    REQUIRE(tables.ok());
    return *tables;
  }

  Random random;
  ModelTables tables;
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

ModelInputs InputsOf(const Problem& p, std::vector<const float*>* tensors) {
  tensors->clear();
  for (const auto& t : p.tensors) tensors->push_back(t.data());
  return {&p.batch, &p.routed, p.rows.data(), *tensors};
}

StepResult Run(const Problem& p, Model& model, ops::Parallel* parallel) {
  StepResult r;
  r.predictions.assign(p.batch.size, NAN);
  r.rows.assign(p.rows.size(), NAN);  // the model must not rely on cleared memory
  std::vector<float*> out;
  for (const auto& t : p.tensors) r.tensors.emplace_back(t.size(), NAN);
  for (auto& t : r.tensors) out.push_back(t.data());
  std::vector<const float*> tensors;
  r.loss =
      model.TrainStep(InputsOf(p, &tensors), {r.rows.data(), out}, r.predictions.data(), parallel);
  return r;
}

// The reference: equations of models.h, example by example, in double.
class Reference {
 public:
  explicit Reference(const Problem& p) : p_(p), t_(p.tables) {
    rows.assign(p.rows.begin(), p.rows.end());
    for (const auto& t : p.tensors) tensors.emplace_back(t.begin(), t.end());
  }

  double Logit(uint32_t i) const {
    const uint32_t d = t_.embedding_dim, stride = d + 1;
    const Batch& b = p_.batch;
    double z = tensors[0][0];
    std::vector<double> sum(d), square(d), input(size_t{t_.fields} * d);
    const auto add = [&](const double* v, double x) {
      for (uint32_t e = 0; e < d; ++e) {
        sum[e] += v[e] * x;
        square[e] += v[e] * x * v[e] * x;
      }
    };
    for (uint32_t f = b.offsets[i]; f < b.offsets[i + 1]; ++f) {
      const double x = b.values.empty() ? 1.0 : b.values[f];
      const double* row = &rows[b.keys[f] * stride];
      z += row[d] * x;
      add(row, x);
      const uint32_t field = f - b.offsets[i];
      for (uint32_t e = 0; e < d && field < t_.fields; ++e) input[field * d + e] = row[e] * x;
    }
    for (uint32_t j = 0; j < t_.numeric; ++j) {
      const double x = b.dense[i * t_.numeric + j];
      z += tensors[1][j] * x;
      if (t_.type == ModelType::kFm) add(&tensors[2][j * d], x);
      input.push_back(x);
    }
    for (uint32_t e = 0; e < d; ++e) z += 0.5 * (sum[e] * sum[e] - square[e]);
    if (t_.type == ModelType::kDeepFm) z += Perceptron(input);
    return z;
  }

  double Loss() const {
    double loss = 0;
    for (uint32_t i = 0; i < p_.batch.size; ++i) {
      const double z = Logit(i), y = p_.batch.labels[i];
      loss += std::max(z, 0.0) - z * y + std::log1p(std::exp(-std::abs(z)));
    }
    return loss;
  }

  // Derivatives of Loss() by the elements of `weights`, one of ours, by central differences.
  std::vector<double> Derivatives(std::vector<double>* weights) const {
    constexpr double kStep = 1e-6;
    std::vector<double> out;
    for (double& w : *weights) {
      const double saved = w;
      w = saved + kStep;
      const double above = Loss();
      w = saved - kStep;
      out.push_back((above - Loss()) / (2 * kStep));
      w = saved;
    }
    return out;
  }

  std::vector<double> rows;
  std::vector<std::vector<double>> tensors;

 private:
  double Perceptron(std::vector<double> x) const {
    size_t t = t_.numeric > 0 ? 2 : 1;
    for (size_t layer = 0; layer <= t_.hidden.size(); ++layer, t += 2) {
      std::vector<double> h = tensors[t + 1];
      for (size_t j = 0; j < h.size(); ++j) {
        for (size_t k = 0; k < x.size(); ++k) h[j] += x[k] * tensors[t][k * h.size() + j];
        if (layer < t_.hidden.size()) h[j] = std::max(h[j], 0.0);
      }
      x = h;
    }
    return x[0];
  }

  const Problem& p_;
  const ModelTables& t_;
};

// Largest difference, relative to the largest derivative of the same tensor.
double RelativeError(const std::vector<float>& got, const std::vector<double>& expected) {
  double worst = 0, scale = 1e-3;
  for (double e : expected) scale = std::max(scale, std::abs(e));
  for (size_t i = 0; i < got.size(); ++i) {
    if (!(std::abs(got[i] - expected[i]) <= worst)) worst = std::abs(got[i] - expected[i]);
  }
  return worst / scale;
}

const std::vector<Shape> kShapes = {{"lr", 4, 3, 0, {}, 37, 11, true},
                                    {"lr", 4, 0, 0, {}, 90, 30, false},
                                    {"fm", 4, 3, 5, {}, 37, 11, true},
                                    {"fm", 5, 0, 16, {}, 60, 9, false},
                                    {"fm", 3, 2, 21, {}, 40, 12, false},
                                    {"deepfm", 4, 3, 5, {7, 6}, 37, 11, true},
                                    {"deepfm", 5, 2, 16, {9}, 60, 9, false},
                                    {"deepfm", 3, 0, 4, {}, 33, 8, true},
                                    {"deepfm", 3, 1, 1, {33, 17, 2}, 29, 7, true}};

std::string Describe(const Shape& s) {
  return s.type + " dim " + std::to_string(s.dim) + " numeric " + std::to_string(s.numeric);
}

TEST_CASE("losses and gradients are those of the equations", "[models]") {
  const auto parallel = ops::MakeParallel(2);
  for (size_t s = 0; s < kShapes.size(); ++s) {
    INFO(Describe(kShapes[s]));
    const Problem p(kShapes[s], s + 1);
    const auto model = MakeModel(p.tables);
    REQUIRE(model.ok());
    const StepResult got = Run(p, **model, parallel.get());
    Reference reference(p);
    REQUIRE(got.loss == Approx(reference.Loss()).epsilon(1e-6));
    for (uint32_t i = 0; i < p.batch.size; ++i) {
      REQUIRE(got.predictions[i] == Approx(1 / (1 + std::exp(-reference.Logit(i)))).epsilon(1e-5));
    }
    REQUIRE(RelativeError(got.rows, reference.Derivatives(&reference.rows)) <= 1e-5);
    for (size_t t = 0; t < p.tensors.size(); ++t) {
      INFO(p.tables.tensor_names[t]);
      REQUIRE(RelativeError(got.tensors[t], reference.Derivatives(&reference.tensors[t])) <= 1e-5);
    }
  }
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST_CASE("bits depend neither on threads nor on the instruction set", "[models]") {
  std::vector<Shape> shapes = kShapes;
  shapes.push_back({"lr", 26, 13, 0, {}, 1000, 3000, false});
  shapes.push_back({"fm", 26, 13, 16, {}, 700, 2000, false});
  shapes.push_back({"deepfm", 26, 13, 16, {100, 50}, 700, 2000, false});
  const ops::IsaLevel supported = ops::SupportedIsaLevel();
  for (size_t s = 0; s < shapes.size(); ++s) {
    INFO(Describe(shapes[s]));
    const Problem p(shapes[s], s + 100);
    StepResult first;
    for (ops::IsaLevel level : {ops::IsaLevel::kV3, supported}) {
      ops::SetActiveIsaLevel(level);
      for (size_t threads : {1, 2, 3}) {
        const auto parallel = ops::MakeParallel(threads);
        const auto model = MakeModel(p.tables);
        REQUIRE(model.ok());
        const StepResult got = Run(p, **model, parallel.get());
        if (first.predictions.empty()) first = got;
        REQUIRE(std::memcmp(&got.loss, &first.loss, sizeof(double)) == 0);
        REQUIRE(SameBits(got.predictions, first.predictions));
        REQUIRE(SameBits(got.rows, first.rows));
        for (size_t t = 0; t < p.tensors.size(); ++t) {
          REQUIRE(SameBits(got.tensors[t], first.tensors[t]));
        }
        std::vector<float> predictions(p.batch.size, NAN);
        std::vector<const float*> tensors;
        (*model)->Predict(InputsOf(p, &tensors), predictions.data(), parallel.get());
        REQUIRE(SameBits(predictions, first.predictions));
      }
    }
    ops::SetActiveIsaLevel(supported);
  }
}

TEST_CASE("a model is used for batches of any size in turn", "[models]") {
  const auto parallel = ops::MakeParallel(2);
  for (const std::string type : {"lr", "fm", "deepfm"}) {
    Shape shape{type, 4, 2, 8, {10}, 300, 20, false};
    const Problem large(shape, 1);
    shape.batch = 5;
    const Problem small(shape, 2);
    shape.batch = 0;
    const Problem empty(shape, 3);
    const auto model = MakeModel(large.tables);
    REQUIRE(model.ok());
    const StepResult a = Run(large, **model, parallel.get());
    for (const Problem* p : {&small, &empty, &large}) {
      const StepResult got = Run(*p, **model, parallel.get());
      const auto fresh = MakeModel(p->tables);
      REQUIRE(fresh.ok());
      const StepResult expected = Run(*p, **fresh, parallel.get());
      REQUIRE(got.loss == expected.loss);
      REQUIRE(SameBits(got.rows, expected.rows));
      for (size_t t = 0; t < got.tensors.size(); ++t) {
        REQUIRE(SameBits(got.tensors[t], expected.tensors[t]));
      }
      if (p == &empty) {
        REQUIRE(got.loss == 0);
        for (float g : got.rows) REQUIRE(g == 0);
        for (float g : got.tensors.back()) REQUIRE(g == 0);
      }
    }
    REQUIRE(SameBits(Run(large, **model, parallel.get()).rows, a.rows));
  }
}

TEST_CASE("tables of another model are refused", "[models]") {
  const Problem p({"deepfm", 4, 2, 8, {10}, 1, 1, false}, 1);
  ModelTables tables = p.tables;
  tables.hidden.push_back(3);
  const auto model = MakeModel(tables);
  REQUIRE(!model.ok());
  REQUIRE(absl::IsInvalidArgument(model.status()));
}

}  // namespace
}  // namespace strata
