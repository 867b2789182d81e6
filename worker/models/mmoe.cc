#include <cstring>
#include <memory>
#include <vector>

#include "ops/cpu_features.h"
#include "ops/nn/gemm.h"
#include "ops/nn/layer_memory.h"
#include "ops/nn/mixture.h"
#include "worker/models/field_input.h"
#include "worker/models/model_kinds.h"
#include "worker/models/model_parts.h"
#include "worker/models/perceptron.h"

namespace strata {
namespace {

using ops::Passes;

// A gate and a tower.
struct TaskLayers {
  TaskLayers(const ModelTables& tables, size_t gate_tensor, size_t tower_tensor)
      : gate(LayerWidths(tables.example_width(), {}, tables.experts), ops::Mlp::Output::kLinear,
             gate_tensor),
        tower(LayerWidths(tables.expert_hidden.back(), tables.tower_hidden, 1),
              ops::Mlp::Output::kLinear, tower_tensor) {}

  Perceptron gate, tower;
  std::vector<float> weights;  // (examples, experts)
};

// Tensors: expert by expert those of its layers; task by task the gate's; task by task the tower's.
//
// A step goes through the batch in blocks of examples that stay in the cache: the fields' vectors,
// experts, gates, mixtures, towers, losses, and the same backward. Then come the weights' gradients
// over the whole batch, and the rows'.
class Mmoe : public Model {
 public:
  explicit Mmoe(const ModelTables& tables)
      : input_(tables),
        width_(tables.expert_hidden.back()),
        gemm_(ops::GemmKernelOf(ops::ActiveIsaLevel())),
        scratch_(tables) {
    const size_t of_expert = 2 * tables.expert_hidden.size();
    for (size_t e = 0; e < tables.experts; ++e) {
      experts_.push_back(
          std::make_unique<Perceptron>(LayerWidths(tables.example_width(), tables.expert_hidden, 0),
                                       ops::Mlp::Output::kRelu, e * of_expert));
    }
    const size_t gates = tables.experts * of_expert, tasks = tables.task_count();
    const size_t of_tower = 2 * (tables.tower_hidden.size() + 1);
    for (size_t t = 0; t < tasks; ++t) {
      tasks_.push_back(
          std::make_unique<TaskLayers>(tables, gates + 2 * t, gates + 2 * tasks + t * of_tower));
    }
  }

  absl::StatusOr<double> TrainStep(const ModelInputs& in, const ModelGradients& out,
                                   float* predictions, ops::Parallel* parallel) override {
    Prepare(in, Passes::kForwardAndBackward, parallel);
    TrainBlocks(
        in.batch->size, experts_[0]->block_rows(), parallel, in.passes,
        [&](size_t begin, size_t end) {
          Forward(in, begin, end);
          scratch_.Train(*in.batch, begin, end - begin, predictions);
        },
        [&](size_t begin, size_t end) { Backward(begin, end); });
    products_.clear();
    for (const auto& expert : experts_) expert->AppendGradients(out, &products_);
    for (const auto& task : tasks_) {
      task->gate.AppendGradients(out, &products_);
      task->tower.AppendGradients(out, &products_);
    }
    gemm_.Run(products_, parallel);
    input_.RowGradients(in, parallel, out.rows);
    return scratch_.SumLosses();
  }

  absl::Status Predict(const ModelInputs& in, float* predictions,
                       ops::Parallel* parallel) override {
    Prepare(in, Passes::kForward, parallel);
    ForBlocks(in.batch->size, experts_[0]->block_rows(), parallel, [&](size_t begin, size_t end) {
      Forward(in, begin, end);
      scratch_.Predict(begin, end - begin, predictions);
    });
    return absl::OkStatus();
  }

 private:
  void Prepare(const ModelInputs& in, Passes passes, ops::Parallel* parallel) {
    scratch_.Resize(*in.batch);
    input_.Prepare(in, passes);
    for (const auto& expert : experts_) expert->Prepare(in, passes, parallel);
    for (const auto& task : tasks_) {
      task->gate.Prepare(in, passes, parallel);
      task->tower.Prepare(in, passes, parallel);
      ResizeExactly(in.batch->size * experts_.size(), &task->weights);
    }
  }

  void ForwardOver(Perceptron& layers, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      std::memcpy(layers.input(i), input_.values(i), input_.width() * sizeof(float));
    }
    layers.Forward(begin, end - begin);
  }

  void Forward(const ModelInputs& in, size_t begin, size_t end) {
    input_.Gather(in, begin, end);
    for (const auto& expert : experts_) ForwardOver(*expert, begin, end);
    std::vector<const float*> outputs(experts_.size());
    for (size_t t = 0; t < tasks_.size(); ++t) {
      TaskLayers& task = *tasks_[t];
      ForwardOver(task.gate, begin, end);
      for (size_t i = begin; i < end; ++i) {
        float* const weights = task.weights.data() + i * experts_.size();
        ops::Softmax(experts_.size(), task.gate.output(i), weights);
        for (size_t e = 0; e < experts_.size(); ++e) outputs[e] = experts_[e]->output(i);
        ops::Mix(experts_.size(), weights, outputs.data(), width_, task.tower.input(i));
      }
      task.tower.Forward(begin, end - begin);
      for (size_t i = begin; i < end; ++i) scratch_.logits(t)[i] = *task.tower.output(i);
    }
  }

  void Backward(size_t begin, size_t end) {
    for (size_t t = 0; t < tasks_.size(); ++t) {
      TaskLayers& task = *tasks_[t];
      for (size_t i = begin; i < end; ++i)
        *task.tower.output_gradient(i) = scratch_.gradients(t)[i];
      task.tower.Backward(begin, end - begin);
      for (size_t i = begin; i < end; ++i) {
        float* const by_gate = task.gate.output_gradient(i);
        for (size_t e = 0; e < experts_.size(); ++e) {
          by_gate[e] = ops::Dot(width_, experts_[e]->output(i), task.tower.input_gradient(i));
        }
        ops::SoftmaxGradients(experts_.size(), task.weights.data() + i * experts_.size(), by_gate,
                              by_gate);
      }
      task.gate.Backward(begin, end - begin);
    }
    std::vector<const float*> mixtures(tasks_.size());
    std::vector<float> weights(tasks_.size());
    for (size_t i = begin; i < end; ++i) {
      for (size_t t = 0; t < tasks_.size(); ++t) mixtures[t] = tasks_[t]->tower.input_gradient(i);
      for (size_t e = 0; e < experts_.size(); ++e) {
        for (size_t t = 0; t < tasks_.size(); ++t) {
          weights[t] = tasks_[t]->weights[i * experts_.size() + e];
        }
        ops::Mix(tasks_.size(), weights.data(), mixtures.data(), width_,
                 experts_[e]->output_gradient(i));
      }
    }
    for (const auto& expert : experts_) expert->Backward(begin, end - begin);
    SumInputGradients(begin, end);
  }

  // By the experts, then by the gates.
  void SumInputGradients(size_t begin, size_t end) {
    const size_t width = input_.width();
    const auto add = [&](Perceptron& layers, bool first) {
      for (size_t i = begin; i < end; ++i) {
        const float* const from = layers.input_gradient(i);
        float* const sum = input_.gradients(i);
        if (first) {
          std::memcpy(sum, from, width * sizeof(float));
        } else {
          for (size_t j = 0; j < width; ++j) sum[j] += from[j];
        }
      }
    };
    for (size_t e = 0; e < experts_.size(); ++e) add(*experts_[e], e == 0);
    for (const auto& task : tasks_) add(task->gate, false);
  }

  FieldInput input_;
  const size_t width_;  // of an expert's output
  std::vector<std::unique_ptr<Perceptron>> experts_;
  std::vector<std::unique_ptr<TaskLayers>> tasks_;
  ops::TransposedGemm gemm_;
  ExampleScratch scratch_;
  std::vector<ops::TransposedProduct> products_;
};

}  // namespace

std::unique_ptr<Model> MakeMmoe(const ModelTables& tables) {
  return std::make_unique<Mmoe>(tables);
}

}  // namespace strata
