#include "tests/worker/models/problem.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cctype>
#include <cmath>
#include <cstring>
#include <numeric>

#include "proto/strata/job.pb.h"

namespace strata::testing {
namespace {

void AddLabel(char letter, size_t number, bool mean, JobSpec& spec) {
  LabelConfig& label = *spec.add_labels();
  label.set_name("label" + std::to_string(number));
  const bool count = std::isupper(static_cast<unsigned char>(letter)) || letter == 'p';
  const char loss = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  label.set_kind(loss == 'b' ? "binary" : count ? "count" : "real");
  label.set_loss(loss == 'b'   ? "logloss"
                 : loss == 'p' ? "poisson"
                 : loss == 'h' ? "huber"
                               : "squared");
  label.set_weight(1.0f / static_cast<float>(number + 1));
  label.set_delta(0.7f);
  if (mean) label.set_mean(loss == 'b' ? 0.2f : loss == 'p' ? 2.5f : 3.2f);
}

// Random labels of an example; some are none, of one example all.
void FillLabels(const ModelTables& tables, uint32_t i, Random& random, Batch& batch) {
  for (const TaskSpec& task : tables.tasks) {
    float label = static_cast<float>(random.Below(task.kind == LabelKind::kCount ? 4 : 2));
    if (task.kind == LabelKind::kReal) label = random.Uniform(3.0f);
    if (tables.labelled && (i == 4 || random.Below(5) == 0)) label = NAN;
    batch.labels.push_back(label);
  }
}

constexpr uint32_t kLongest = 5;  // values of a sequence

// Sequences, then the others; those of one table after the first are not categorical, so that din
// has one target.
void AddFields(const Shape& shape, JobSpec& spec) {
  spec.mutable_data()->set_format("csv");
  const std::vector<uint32_t> dims =
      shape.dims.empty() ? std::vector<uint32_t>{shape.dim} : shape.dims;
  const size_t tables = dims.size();
  for (size_t t = 0; t < tables; ++t) {
    TableConfig& table = *spec.add_tables();
    table.set_name("table" + std::to_string(t));
    table.set_dim(dims[t]);
    table.mutable_optimizer()->set_type("sgd");
  }
  for (uint32_t f = 0; f < shape.sequences + shape.fields; ++f) {
    FieldConfig& field = *spec.add_fields();
    const bool sequence = f < shape.sequences;
    const size_t place = sequence ? f : f - shape.sequences;
    field.set_name((sequence ? "sequence" : "field") + std::to_string(place));
    field.set_column(field.name());
    field.set_kind(sequence ? "sequence" : place < tables ? "categorical" : "multiValued");
    field.set_table("table" + std::to_string(place % tables));
    if (sequence) field.set_max_length(kLongest);
  }
}

ModelTables Tables(const Shape& shape) {
  JobSpec spec;
  ModelSpec& model = *spec.mutable_model();
  model.set_type(shape.type);
  model.set_embedding_dim(shape.dim);
  for (uint32_t h : shape.hidden) model.add_hidden(h);
  for (uint32_t h : shape.bottom_hidden) model.add_bottom_hidden(h);
  model.set_cross_layers(shape.cross_layers);
  model.set_cross_rank(shape.cross_rank);
  for (uint32_t h : shape.tower_hidden) model.add_tower_hidden(h);
  model.set_experts(shape.experts);
  for (uint32_t h : shape.expert_hidden) model.add_expert_hidden(h);
  for (uint32_t h : shape.attention_hidden) model.add_attention_hidden(h);
  if (shape.type == "mmoe" || shape.type == "din") AddFields(shape, spec);
  for (size_t t = 0; t < shape.labels.size(); ++t) AddLabel(shape.labels[t], t, shape.means, spec);
  if (shape.weighted) spec.set_sample_weight("weight");
  spec.mutable_optimizer()->mutable_sparse()->set_type("sgd");
  spec.mutable_optimizer()->mutable_dense()->set_type("sgd");
  spec.mutable_storage()->set_partitions(16);
  const auto tables = MakeModelTables(spec, shape.sequences + shape.fields, shape.numeric);
  INFO(tables.status());
  REQUIRE(tables.ok());
  return *tables;
}

// How many features example i has in field f.
uint32_t CountOf(const Shape& shape, uint32_t i, uint32_t f, Random& random) {
  if (i == 2) return 0;  // one example has none
  if (shape.named != Fields::kMulti) return random.Below(4) == 0 ? 0 : 1;
  return f == 0 && i % 6 == 1 ? 40 : random.Below(5);
}

void FillFeatures(const Shape& shape, uint32_t i, Random& random, Batch& batch) {
  const auto add = [&](uint32_t field) {
    // One key in four is the same, so that it occurs in several chunks of a sum.
    const uint32_t key = random.Below(4) == 0 ? 0 : random.Below(shape.unique);
    const uint32_t table = shape.dims.empty() ? 0 : field % shape.dims.size();
    batch.keys.push_back(uint64_t{table} * shape.unique + key);
    if (shape.values) batch.values.push_back(random.Uniform(2.0f));
  };
  for (uint32_t s = 0; s < shape.sequences; ++s) {
    const uint32_t length = i == 2 ? 0 : random.Below(kLongest + 1);
    batch.sequence_first.push_back(static_cast<uint32_t>(batch.keys.size()));
    batch.sequence_length.push_back(length);
    for (uint32_t n = 0; n < length; ++n) {
      batch.fields.push_back(s);
      add(s);
    }
  }
  if (shape.named != Fields::kOrdinal || shape.sequences > 0) {
    for (uint32_t f = 0; f < shape.fields; ++f) {
      for (uint32_t n = CountOf(shape, i, f, random); n > 0; --n) {
        batch.fields.push_back(shape.sequences + f);
        add(f);
      }
    }
    return;
  }
  // Some examples lack fields, one has none, some have more than the model knows.
  uint32_t count = shape.fields;
  if (i % 5 == 1) count = random.Below(shape.fields + 1);
  if (i % 7 == 3 && shape.dims.empty()) count += 2;
  if (i == 2) count = 0;
  for (uint32_t f = 0; f < count; ++f) add(f);
}

void PoolByMax(uint32_t fields, ModelTables* tables, Batch* batch) {
  for (uint32_t f = 0; f < fields; ++f) tables->max_pooled.push_back(f % 2 == 0);
  for (size_t i = 0; i < batch->values.size(); ++i) {
    if (batch->fields[i] % 2 == 0) batch->values[i] = 1.0f;  // as readers give them
  }
}

// As readers give the values of a field whose mean is taken: each its share.
void PoolByMean(const Shape& shape, Batch* batch) {
  batch->values.assign(batch->keys.size(), 1.0f);
  for (uint32_t i = 0; i < batch->size; ++i) {
    std::vector<uint32_t> counts(shape.sequences + shape.fields, 0);
    for (uint32_t f = batch->offsets[i]; f < batch->offsets[i + 1]; ++f) ++counts[batch->fields[f]];
    for (uint32_t f = batch->offsets[i]; f < batch->offsets[i + 1]; ++f) {
      const uint32_t field = batch->fields[f];
      if (field >= shape.sequences) batch->values[f] = 1.0f / static_cast<float>(counts[field]);
    }
  }
}

std::vector<const float*> TensorPointers(const Problem& p) {
  std::vector<const float*> out;
  for (const auto& t : p.tensors) out.push_back(t.data());
  return out;
}

}  // namespace

std::string Describe(const Shape& s) {
  return s.type + " fields " + std::to_string(s.fields) + " numeric " + std::to_string(s.numeric) +
         " dim " + std::to_string(s.dim) + " named " + std::to_string(static_cast<int>(s.named)) +
         " tables " + std::to_string(s.dims.size()) + " sequences " + std::to_string(s.sequences) +
         " labels " + s.labels + (s.weighted ? ", weighted" : "") + (s.values ? ", values" : "") +
         (s.mean ? ", mean" : "") + (s.max ? ", max" : "") + (s.means ? ", of stated means" : "");
}

Problem::Problem(const Shape& shape, uint64_t seed) : tables(Tables(shape)), unique(shape.unique) {
  Random random(seed);
  batch.Clear();
  batch.sequences = shape.sequences;
  batch.size = shape.batch;
  batch.numeric = shape.numeric;
  batch.tasks = tables.task_count();
  for (uint32_t i = 0; i < shape.batch; ++i) {
    FillLabels(tables, i, random, batch);
    if (shape.weighted) {
      batch.weights.push_back(static_cast<float>(random.Below(5)) * 0.375f + kWeightUnit);
    }
    for (uint32_t j = 0; j < shape.numeric; ++j) batch.dense.push_back(random.Uniform(1.5f));
    FillFeatures(shape, i, random, batch);
    batch.offsets.push_back(static_cast<uint32_t>(batch.keys.size()));
  }
  if (shape.mean) PoolByMean(shape, &batch);
  if (shape.max) PoolByMax(shape.sequences + shape.fields, &tables, &batch);
  Route(shape.unique);
  const bool exponential = shape.labels.find('p') != std::string::npos;  // of what comes out
  const uint64_t keys = shape.unique * std::max<uint64_t>(1, shape.dims.size());
  for (size_t i = 0, n = RowOf(keys); i < n; ++i) {
    rows.push_back(random.Uniform(exponential ? 0.25f : 0.7f));
  }
  for (size_t t = 0; t < tables.tensor_count(); ++t) {
    tensors.emplace_back();
    for (size_t i = 0; i < tables.tensor(t).elements; ++i) {
      tensors.back().push_back(random.Uniform(exponential ? 0.3f : 0.5f));
    }
  }
}

uint32_t Problem::TableOf(uint64_t key) const {
  const auto index = static_cast<uint32_t>(key / unique);
  return index == 0 ? 0 : index + 1;  // 1 is the dense one
}

size_t Problem::RowOf(uint64_t key) const {
  size_t row = 0;
  uint64_t first = 0;  // of a table
  for (; first + unique <= key; first += unique) {
    row += size_t{unique} * tables.tables[TableOf(first)].dim();
  }
  return key == first ? row : row + (key - first) * tables.tables[TableOf(key)].dim();
}

void Problem::Route(uint32_t of_each) {
  unique = of_each;
  routed = {};
  const size_t hashed = tables.tables.size() - 1;
  std::vector<std::vector<uint32_t>> places(unique * hashed);
  for (uint32_t f = 0; f < batch.keys.size(); ++f) {
    places[batch.keys[f]].push_back(f);
    routed.unique_of.push_back(static_cast<uint32_t>(batch.keys[f]));
  }
  std::vector<uint64_t> ascending(places.size());
  std::iota(ascending.begin(), ascending.end(), uint64_t{0});
  routed.keys = routed.positions = ascending;
  for (size_t t = 0; t < hashed && unique > 0; ++t) {
    routed.runs.push_back({TableOf(t * unique), t * unique, unique});
  }
  routed.first.push_back(0);
  for (const std::vector<uint32_t>& of_key : places) {
    routed.occurrences.insert(routed.occurrences.end(), of_key.begin(), of_key.end());
    routed.first.push_back(static_cast<uint32_t>(routed.occurrences.size()));
  }
}

StepResult Run(const Problem& p, Model& model, ops::Parallel* parallel) {
  StepResult r;
  r.predictions.assign(p.batch.size * p.tables.task_count(), NAN);
  r.rows.assign(p.rows.size(), NAN);  // the model must not rely on cleared memory
  std::vector<float*> out;
  for (const auto& t : p.tensors) r.tensors.emplace_back(t.size(), NAN);
  for (auto& t : r.tensors) out.push_back(t.data());
  const std::vector<const float*> tensors = TensorPointers(p);
  const auto loss = model.TrainStep({&p.batch, &p.routed, p.rows.data(), tensors},
                                    {r.rows.data(), out}, r.predictions.data(), parallel);
  REQUIRE(loss.ok());
  r.loss = *loss;
  return r;
}

std::vector<float> RunPredict(const Problem& p, Model& model, ops::Parallel* parallel) {
  std::vector<float> predictions(p.batch.size * p.tables.task_count(), NAN);
  const std::vector<const float*> tensors = TensorPointers(p);
  REQUIRE(model.Predict({&p.batch, &p.routed, p.rows.data(), tensors}, predictions.data(), parallel)
              .ok());
  return predictions;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

bool SameBits(const StepResult& a, const StepResult& b) {
  bool same = std::memcmp(&a.loss, &b.loss, sizeof(double)) == 0 &&
              SameBits(a.predictions, b.predictions) && SameBits(a.rows, b.rows) &&
              a.tensors.size() == b.tensors.size();
  for (size_t t = 0; same && t < a.tensors.size(); ++t) same = SameBits(a.tensors[t], b.tensors[t]);
  return same;
}

}  // namespace strata::testing
