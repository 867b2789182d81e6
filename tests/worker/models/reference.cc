#include "tests/worker/models/reference.h"

#include <map>

#include "tests/worker/models/tape.h"

namespace strata::testing {
namespace {

// Number is double or Var.
template <typename Number>
class Network {
 public:
  using Vector = std::vector<Number>;

  Network(const Problem& p, const Vector& rows, const std::vector<Vector>& tensors)
      : p_(p), t_(p.tables), rows_(rows), tensors_(tensors) {}

  // By task.
  Vector Logits(uint32_t i) {
    weights_.assign(t_.task_count(), Number(0));
    Pool(i);
    for (uint32_t j = 0; j < t_.numeric; ++j) {
      numbers_.push_back(Number(p_.batch.dense[i * t_.numeric + j]));
    }
    switch (t_.type) {
      case ModelType::kLr:
        return Linear();
      case ModelType::kFm:
        return Sum(Linear(), SecondOrder(true));
      case ModelType::kWideDeep:
        return Sum(Linear(), Deep());
      case ModelType::kDeepFm:
        return Sum(Sum(Linear(), SecondOrder(false)), Deep());
      case ModelType::kDcnV2:
        return DcnV2();
      case ModelType::kDlrm:
        return Dlrm();
      case ModelType::kSharedBottom:
        return SharedBottom();
      case ModelType::kMmoe:
        return Mmoe();
      case ModelType::kDin:
        return Din();
    }
    return {};
  }

 private:
  // Sums of value times row by field, or the greatest of each element: vectors by field, and all
  // weights into one.
  void Pool(uint32_t i) {
    const Batch& b = p_.batch;
    sequences_.resize(t_.sequences.size());
    std::map<uint32_t, Vector> rows;
    for (uint32_t f = b.offsets[i]; f < b.offsets[i + 1]; ++f) {
      const Number x(b.values.empty() ? 1.0 : b.values[f]);
      const uint32_t field = b.fields.empty() ? f - b.offsets[i] : b.fields[f];
      const uint32_t stride = t_.tables[p_.TableOf(b.keys[f])].dim();
      const size_t first_float = p_.RowOf(b.keys[f]);
      const auto row = [&](uint32_t e) { return x * rows_[first_float + e]; };
      if (field < t_.sequences.size()) {  // they are the first fields
        Vector& value = sequences_[field].emplace_back();
        for (uint32_t e = 0; e < stride; ++e) value.push_back(row(e));
        continue;
      }
      const bool first = rows.count(field) == 0;
      Vector& pooled = rows[field];
      for (uint32_t e = 0; e < stride; ++e) {
        if (first) {
          pooled.push_back(row(e));
        } else if (!t_.max_pooled.empty() && t_.max_pooled[field]) {
          const Number now = row(e);
          if (Value(pooled[e]) < Value(now)) pooled[e] = now;
        } else {
          pooled[e] = pooled[e] + row(e);
        }
      }
    }
    for (const auto& [field, row] : rows) {
      const size_t d = t_.field_dims.empty() ? t_.embedding_dim : row.size();
      pooled_[field] = Vector(row.begin(), row.begin() + d);
      for (size_t t = 0; d + t < row.size(); ++t) weights_[t] = weights_[t] + row[d + t];
    }
  }

  static Vector Sum(Vector a, const Vector& b) {
    for (size_t t = 0; t < a.size(); ++t) a[t] = a[t] + b[t];
    return a;
  }

  Vector Linear() const {
    Vector z = Sum(tensors_[0], weights_);
    for (uint32_t j = 0; j < t_.numeric; ++j) {
      for (size_t t = 0; t < z.size(); ++t) {
        z[t] = z[t] + tensors_[1][j * z.size() + t] * numbers_[j];
      }
    }
    return z;
  }

  // The sum over pairs of fields (and numbers) of the dot products of their vectors; several tasks:
  // of each element its share, times one and the task's weight of it.
  Vector SecondOrder(bool with_numbers) const {
    std::vector<Vector> v;
    for (const auto& [field, vector] : pooled_) v.push_back(vector);
    const uint32_t d = t_.embedding_dim;
    for (uint32_t j = 0; j < t_.numeric && with_numbers; ++j) {
      v.emplace_back();
      for (uint32_t e = 0; e < d; ++e) v.back().push_back(tensors_[2][j * d + e] * numbers_[j]);
    }
    const size_t tasks = t_.task_count();
    Vector z(tasks, Number(0));
    for (size_t a = 0; a < v.size(); ++a) {
      for (size_t b = 0; b < a; ++b) {
        if (tasks == 1) z[0] = z[0] + Dot(v[a], v[b]);
        for (size_t e = 0; tasks > 1 && e < d; ++e) {
          const Number product = v[a][e] * v[b][e];
          for (size_t t = 0; t < tasks; ++t) {
            z[t] = z[t] + (Number(1) + tensors_.back()[e * tasks + t]) * product;
          }
        }
      }
    }
    return z;
  }

  static Number Dot(const Vector& a, const Vector& b) {
    Number z(0);
    for (size_t e = 0; e < a.size(); ++e) z = z + a[e] * b[e];
    return z;
  }

  // Vectors of fields 0 .. fields - 1; zeros where the example has none.
  std::vector<Vector> FieldVectors() const {
    std::vector<Vector> out(t_.fields, Vector(t_.embedding_dim, Number(0)));
    for (size_t f = 0; f < t_.field_dims.size(); ++f) out[f].assign(t_.field_dims[f], Number(0));
    for (const auto& [field, vector] : pooled_) {
      if (field < t_.fields) out[field] = vector;
    }
    return out;
  }

  // Embeddings in field order, then numbers.
  Vector Inputs() const {
    Vector x;
    for (const Vector& v : FieldVectors()) x.insert(x.end(), v.begin(), v.end());
    x.insert(x.end(), numbers_.begin(), numbers_.end());
    return x;
  }

  // x W, of tensor `t`.
  Vector Product(const Vector& x, size_t t) const {
    Vector y(tensors_[t].size() / x.size(), Number(0));
    for (size_t j = 0; j < y.size(); ++j) {
      for (size_t k = 0; k < x.size(); ++k) y[j] = y[j] + x[k] * tensors_[t][k * y.size() + j];
    }
    return y;
  }

  // x W + b of the next two tensors.
  Vector Layer(const Vector& x) {
    Vector y = Product(x, next_);
    for (size_t j = 0; j < y.size(); ++j) y[j] = y[j] + tensors_[next_ + 1][j];
    next_ += 2;
    return y;
  }

  Vector HiddenLayers(Vector x, size_t layers) {
    for (size_t l = 0; l < layers; ++l) {
      x = Layer(x);
      for (Number& h : x) h = Relu(h);
    }
    return x;
  }

  Vector Deep() {
    next_ = t_.numeric > 0 ? 2 : 1;
    return Layer(HiddenLayers(Inputs(), t_.hidden.size()));
  }

  Vector SharedBottom() {
    const Vector shared = HiddenLayers(Inputs(), t_.hidden.size());
    Vector z;
    for (uint32_t t = 0; t < t_.task_count(); ++t) {
      z.push_back(Layer(HiddenLayers(shared, t_.tower_hidden.size()))[0]);
    }
    return z;
  }

  Vector Mmoe() {
    const Vector x = Inputs();
    std::vector<Vector> experts, gates;
    for (uint32_t e = 0; e < t_.experts; ++e) {
      experts.push_back(HiddenLayers(x, t_.expert_hidden.size()));
    }
    for (uint32_t t = 0; t < t_.task_count(); ++t) gates.push_back(Softmax(Layer(x)));
    Vector z;
    for (uint32_t t = 0; t < t_.task_count(); ++t) {
      Vector mixture(experts[0].size(), Number(0));
      for (uint32_t e = 0; e < t_.experts; ++e) {
        for (size_t j = 0; j < mixture.size(); ++j) {
          mixture[j] = mixture[j] + gates[t][e] * experts[e][j];
        }
      }
      z.push_back(Layer(HiddenLayers(mixture, t_.tower_hidden.size()))[0]);
    }
    return z;
  }

  // e^x over the sum: 1 / sum_j e^(x_j - x), which needs no quotient of two that vary.
  static Vector Softmax(const Vector& x) {
    Vector out;
    for (const Number& own : x) {
      Number sum(0);
      for (const Number& other : x) sum = sum + Exp(other - own);
      out.push_back(Inverse(sum));
    }
    return out;
  }

  Vector Din() {
    std::vector<Vector> vectors = FieldVectors();
    for (size_t s = 0; s < sequences_.size(); ++s) {
      const Vector target = vectors[t_.sequences[s].target];
      const size_t first_tensor = next_;
      Vector sum(target.size(), Number(0));
      for (const Vector& value : sequences_[s]) {
        next_ = first_tensor;
        Vector x = value;
        x.insert(x.end(), target.begin(), target.end());
        for (size_t e = 0; e < value.size(); ++e) x.push_back(value[e] - target[e]);
        for (size_t e = 0; e < value.size(); ++e) x.push_back(value[e] * target[e]);
        const Number weight = Layer(HiddenLayers(x, t_.attention_hidden.size()))[0];
        for (size_t e = 0; e < value.size(); ++e) sum[e] = sum[e] + weight * value[e];
      }
      next_ = first_tensor + 2 * (t_.attention_hidden.size() + 1);
      vectors[t_.sequences[s].field] = sum;
    }
    Vector x;
    for (const Vector& v : vectors) x.insert(x.end(), v.begin(), v.end());
    x.insert(x.end(), numbers_.begin(), numbers_.end());
    return Layer(HiddenLayers(x, t_.hidden.size()));
  }

  Vector DcnV2() {
    const Vector x0 = Inputs();
    Vector x = x0;
    for (uint32_t l = 0; l < t_.cross_layers; ++l) {
      Vector in = x;
      if (t_.cross_rank > 0) in = Product(x, next_++);
      const Vector u = Layer(in);
      for (size_t j = 0; j < x.size(); ++j) x[j] = x0[j] * u[j] + x[j];
    }
    const Vector deep = HiddenLayers(x0, t_.hidden.size());
    x.insert(x.end(), deep.begin(), deep.end());
    return Layer(x);
  }

  Vector Dlrm() {
    std::vector<Vector> vectors = FieldVectors();
    Vector top;
    if (t_.numeric > 0) {
      top = HiddenLayers(numbers_, t_.bottom_hidden.size() + 1);
      vectors.insert(vectors.begin(), top);
    }
    for (size_t i = 0; i < vectors.size(); ++i) {
      for (size_t j = 0; j < i; ++j) top.push_back(Dot(vectors[i], vectors[j]));
    }
    return Layer(HiddenLayers(top, t_.hidden.size()));
  }

  const Problem& p_;
  const ModelTables& t_;
  const Vector& rows_;
  const std::vector<Vector>& tensors_;
  std::map<uint32_t, Vector> pooled_;           // by field
  std::vector<std::vector<Vector>> sequences_;  // values of each
  Vector weights_;                              // by task
  Vector numbers_;
  size_t next_ = 0;  // tensor
};

// What a sum of 0 stands for.
double OffsetOf(const TaskSpec& task) {
  if (!task.mean) return 0;
  const double mean = *task.mean;
  if (task.loss == TaskLoss::kLogistic) return std::log(mean / (1 - mean));
  return task.loss == TaskLoss::kPoisson ? std::log(mean) : mean;
}

template <typename Number>
Number LossOf(const TaskSpec& task, const Number& sum, float label) {
  const Number logit = sum + Number(OffsetOf(task));
  switch (task.loss) {
    case TaskLoss::kLogistic:
      return Softplus(label > 0.5f ? Number(0) - logit : logit);
    case TaskLoss::kSquared:
      return Number(0.5) * (logit - Number(label)) * (logit - Number(label));
    case TaskLoss::kPoisson:
      return Exp(logit) - Number(label) * logit;
    case TaskLoss::kHuber:
      return Huber(logit - Number(label), task.delta);
  }
  return Number(0);
}

// Of an example, with the weights of tasks and of the example.
template <typename Number>
Number ExampleLoss(const Problem& p, const std::vector<Number>& rows,
                   const std::vector<std::vector<Number>>& tensors, uint32_t i) {
  const std::vector<Number> logits = Network<Number>(p, rows, tensors).Logits(i);
  Number loss(0);
  for (size_t t = 0; t < logits.size(); ++t) {
    const TaskSpec& task = p.tables.tasks[t];
    const float label = p.batch.labels[i * logits.size() + t];
    if (std::isnan(label)) continue;
    loss = loss + Number(task.weight) * LossOf(task, logits[t], label);
  }
  return p.batch.weights.empty() ? loss : Number(p.batch.weights[i]) * loss;
}

}  // namespace

Reference::Reference(const Problem& p) : p_(p) {
  rows_.assign(p.rows.begin(), p.rows.end());
  for (const auto& t : p.tensors) tensors_.emplace_back(t.begin(), t.end());
}

double Reference::Logit(uint32_t i, uint32_t task) const {
  return Network<double>(p_, rows_, tensors_).Logits(i)[task];
}

double Reference::Prediction(uint32_t i, uint32_t task) const {
  const double logit = Logit(i, task) + OffsetOf(p_.tables.tasks[task]);
  switch (p_.tables.tasks[task].loss) {
    case TaskLoss::kLogistic:
      return 1 / (1 + std::exp(-logit));
    case TaskLoss::kPoisson:
      return std::exp(logit);
    case TaskLoss::kSquared:
    case TaskLoss::kHuber:
      return logit;
  }
  return 0;
}

double Reference::Loss() const {
  double loss = 0;
  for (uint32_t i = 0; i < p_.batch.size; ++i) loss += ExampleLoss(p_, rows_, tensors_, i);
  return loss;
}

Gradients Reference::ByTape() const {
  Tape& tape = Tape::Get();
  tape.Cut(0);
  const auto leaves = [&tape](const std::vector<double>& values) {
    std::vector<Var> out;
    for (double v : values) out.push_back({v, tape.Add(Tape::kNone, 0, Tape::kNone, 0)});
    return out;
  };
  const std::vector<Var> rows = leaves(rows_);
  std::vector<std::vector<Var>> tensors;
  for (const auto& t : tensors_) tensors.push_back(leaves(t));
  const size_t weights = tape.size();
  std::vector<double> sum(weights, 0.0);
  for (uint32_t i = 0; i < p_.batch.size; ++i) {
    const Var loss = ExampleLoss(p_, rows, tensors, i);
    if (loss.node == Tape::kNone) continue;  // no label
    const std::vector<double> by = tape.Derivatives(loss.node, weights);
    for (size_t w = 0; w < weights; ++w) sum[w] += by[w];
    tape.Cut(weights);
  }
  Gradients out;
  auto at = sum.begin();
  out.rows.assign(at, at + static_cast<ptrdiff_t>(rows.size()));
  at += static_cast<ptrdiff_t>(rows.size());
  for (const auto& t : tensors) {
    out.tensors.emplace_back(at, at + static_cast<ptrdiff_t>(t.size()));
    at += static_cast<ptrdiff_t>(t.size());
  }
  return out;
}

Gradients Reference::ByDifferences() {
  const auto derivatives = [this](std::vector<double>& weights) {
    constexpr double kStep = 1e-6;
    std::vector<double> out;
    for (double& w : weights) {
      const double saved = w;
      w = saved + kStep;
      const double above = Loss();
      w = saved - kStep;
      out.push_back((above - Loss()) / (2 * kStep));
      w = saved;
    }
    return out;
  };
  Gradients out;
  out.rows = derivatives(rows_);
  for (auto& t : tensors_) out.tensors.push_back(derivatives(t));
  return out;
}

}  // namespace strata::testing
