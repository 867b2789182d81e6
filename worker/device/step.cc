#include "worker/device/step.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "ops/cuda/api/stream.h"
#include "proto/core/mutex.h"
#include "worker/device/layers/return_if_error.h"
#include "worker/device/step_memory.h"

namespace strata::device {
namespace {

using ops::Passes;
using ops::gpu::Graph;
using ops::gpu::Stream;

// A batch without examples: gradients of zero.
void ClearGradients(const ModelInputs& in, const Stages& stages, const TensorSizes& tensors,
                    const ModelGradients& out) {
  // Such a batch has no keys.
  if (out.rows != nullptr) std::fill_n(out.rows, stages.FloatsOfRows(*in.routed), 0.0f);
  for (size_t t = 0; t < tensors.size(); ++t) std::fill_n(out.tensors[t], tensors[t], 0.0f);
}

class Step : public DeviceStep {
 public:
  Step(const ModelTables& tables, const DeviceStepOptions& options)
      : o_(options), stages_(StagesOf(tables)), tensors_(StepMemory::TensorSizesOf(tables)) {}

  ~Step() override { Drain(); }

  absl::Status Open() {
    for (Stream* stream : {&in_, &work_, &out_}) {
      auto made = ops::gpu::MakeStream(o_.api);
      if (!made.ok()) return made.status();
      *stream = *std::move(made);
    }
    auto memory = StepMemory::Make(stages_, tensors_, o_, o_.first_shape, work_.get());
    if (!memory.ok()) return memory.status();
    MutexLock lock(&mu_);
    memory_ = *std::move(memory);
    return absl::OkStatus();
  }

  absl::StatusOr<double> Train(const ModelInputs& in, const ModelGradients& out, float* predictions,
                               ops::Parallel* parallel) override {
    if (in.batch->size == 0) {
      ClearGradients(in, stages_, tensors_, out);
      return 0.0;
    }
    return Run(in, Passes::kForwardAndBackward, &out, predictions, parallel);
  }

  absl::Status Predict(const ModelInputs& in, float* predictions,
                       ops::Parallel* parallel) override {
    if (in.batch->size == 0) return absl::OkStatus();
    return Run(in, Passes::kForward, nullptr, predictions, parallel).status();
  }

  absl::Status Stage(const NextBatch& next, ops::Parallel* parallel) override {
    if (next.batch->size == 0) return absl::OkStatus();
    Taken taken;
    {
      MutexLock lock(&mu_);
      const bool staged = staged_ && staged_->next.batch == next.batch;
      if (memory_ == nullptr || staged || !AnyFree()) return absl::OkStatus();
      taken = TakeFree();
      const StepKind kind =
          Plan(taken.number, *next.batch, *next.routed, Passes::kForwardAndBackward);
      if (!memory_->most.Holds(kind.shape)) {
        copying_[taken.number] = taken.copying;
        return absl::OkStatus();
      }
      busy_[taken.number] = true;
    }
    Slot& slot = memory_->slots[taken.number];
    absl::Status status;
    if (taken.copying) status = o_.api->Synchronize(slot.batch_copied.get());
    if (status.ok()) {
      slot.FillBatch(*next.batch, *next.routed, parallel);
      status = GiveBatch(slot);
    }
    if (!status.ok()) Drain();
    MutexLock lock(&mu_);
    busy_[taken.number] = false;
    if (!status.ok()) return status;
    copying_[taken.number] = true;
    staged_ = {taken.number, next};
    return status;
  }

  size_t device_bytes() const override {
    MutexLock lock(&mu_);
    return memory_ == nullptr ? 0 : memory_->device->total_bytes();
  }
  size_t pinned_bytes() const override {
    MutexLock lock(&mu_);
    if (memory_ == nullptr) return 0;
    size_t bytes = memory_->pinned->total_bytes();
    for (const Slot& slot : memory_->slots) bytes += slot.pinned_rows_bytes();
    return bytes;
  }

 private:
  // A slot that was taken, and what it has.
  struct Taken {
    uint32_t number = 0;
    bool staged = false;   // the batch
    bool copying = false;  // another one, whose copies may be under way
  };

  // 1. A slot, with memory for the batch (Acquire).
  // 2. The batch into its pinned memory, if it was not staged, and the weights.
  // 3. Copies in, kernels and copies out are given to their streams (Give).
  // 4. The one wait, for the copies out; while it lasts another thread may do 1 to 3.
  // 5. What came out into the caller's memory; the slot is free again.
  absl::StatusOr<double> Run(const ModelInputs& in, Passes passes, const ModelGradients* out,
                             float* predictions, ops::Parallel* parallel) {
    auto taken = Acquire(in, passes);
    if (!taken.ok()) return taken.status();
    Slot& slot = memory_->slots[taken->number];
    absl::Status status;
    if (taken->copying) status = o_.api->Synchronize(slot.batch_copied.get());
    if (status.ok()) {
      if (!taken->staged) slot.FillBatch(*in.batch, *in.routed, parallel);
      status = slot.FillWeights(in, out, parallel);
      if (status.ok()) status = Give(*taken);
    }
    if (status.ok() && in.meanwhile) status = in.meanwhile();
    if (status.ok()) status = o_.api->Synchronize(slot.copied_out.get());
    if (!status.ok()) {
      Drain();
      Release(taken->number);
      return status;
    }
    const double loss = slot.Read(out, predictions, parallel);
    Release(taken->number);
    return loss;
  }

  bool AnyFree() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return !growing_ && std::find(busy_.begin(), busy_.end(), false) != busy_.end();
  }
  // A free slot, rather than the staged one. REQUIRES: one is free.
  Taken TakeFree() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    uint32_t number = 0;
    while (number < kSlots && (busy_[number] || (staged_ && staged_->slot == number))) ++number;
    if (number == kSlots) {
      number = staged_->slot;
      staged_.reset();
    }
    return {number, false, std::exchange(copying_[number], false)};
  }
  bool AllFree() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return std::find(busy_.begin(), busy_.end(), true) == busy_.end();
  }

  absl::StatusOr<Taken> Acquire(const ModelInputs& in, Passes passes) {
    MutexLock lock(&mu_);
    const auto any_free = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return AnyFree(); };
    mu_.Await(absl::Condition(&any_free));
    if (memory_ == nullptr) {
      STRATA_RETURN_IF_ERROR(Grow(StepShape()));  // an earlier try has failed
    }
    if (passes == Passes::kForwardAndBackward && staged_ && staged_->next.batch == in.batch) {
      const Taken taken{staged_->slot, true, false};
      staged_.reset();
      copying_[taken.number] = false;  // the step waits for what follows them
      busy_[taken.number] = true;
      return taken;
    }
    Taken taken = TakeFree();
    const StepKind kind = Plan(taken.number, *in.batch, *in.routed, passes);
    if (!memory_->most.Holds(kind.shape)) {
      growing_ = true;
      const auto all_free = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return AllFree(); };
      mu_.Await(absl::Condition(&all_free));
      growing_ = false;
      staged_.reset();
      copying_[taken.number] |= std::exchange(taken.copying, false);
      if (std::find(copying_.begin(), copying_.end(), true) != copying_.end()) {
        STRATA_RETURN_IF_ERROR(o_.api->Synchronize(in_.get()));
        copying_ = {};
      }
      STRATA_RETURN_IF_ERROR(Grow(kind.shape));
      Plan(taken.number, *in.batch, *in.routed, passes);
    }
    busy_[taken.number] = true;
    return taken;
  }

  StepKind Plan(uint32_t number, const Batch& batch, const RoutedKeys& routed, Passes passes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return memory_->slots[number].Plan(batch, routed, stages_, passes, o_.batch_size);
  }

  void Release(uint32_t number) {
    MutexLock lock(&mu_);
    busy_[number] = false;
  }

  // Memory for what there was and for `wanted`, in place of the memory that there is.
  absl::Status Grow(const StepShape& wanted) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const StepShape before = memory_ == nullptr ? o_.first_shape : memory_->most;
    StepShape most;
    most.examples = std::max(before.examples, wanted.examples);
    most.features = GrownTo(before.features, wanted.features);
    most.unique = GrownTo(before.unique, wanted.unique);
    most.runs = std::min(GrownTo(before.runs, wanted.runs), most.features);
    memory_.reset();  // before the new: both together may not fit
    auto memory = StepMemory::Make(stages_, tensors_, o_, most, work_.get());
    if (absl::IsResourceExhausted(memory.status())) {
      return absl::Status(memory.status().code(),
                          absl::StrCat("a batch of ", wanted.examples, " examples with ",
                                       wanted.features, " features: ", memory.status().message(),
                                       "; give a smaller spec.training.batchSize"));
    }
    if (!memory.ok()) return memory.status();
    memory_ = *std::move(memory);
    return absl::OkStatus();
  }

  // The copies of a batch that is staged.
  absl::Status GiveBatch(const Slot& slot) {
    MutexLock lock(&streams_mu_);
    STRATA_RETURN_IF_ERROR(slot.CopyBatchIn(o_.api, in_.get()));
    return o_.api->Record(slot.batch_copied.get(), in_.get());
  }

  absl::Status Give(const Taken& taken) {
    MutexLock lock(&streams_mu_);
    const Slot& slot = memory_->slots[taken.number];
    if (!taken.staged) STRATA_RETURN_IF_ERROR(slot.CopyBatchIn(o_.api, in_.get()));
    STRATA_RETURN_IF_ERROR(slot.CopyWeightsIn(o_.api, in_.get()));
    STRATA_RETURN_IF_ERROR(o_.api->Record(slot.copied_in.get(), in_.get()));
    STRATA_RETURN_IF_ERROR(o_.api->StreamWait(work_.get(), slot.copied_in.get()));
    STRATA_RETURN_IF_ERROR(Compute(taken.number));
    STRATA_RETURN_IF_ERROR(o_.api->Record(slot.computed.get(), work_.get()));
    STRATA_RETURN_IF_ERROR(o_.api->StreamWait(out_.get(), slot.computed.get()));
    STRATA_RETURN_IF_ERROR(slot.CopyOut(o_.api, out_.get()));
    return o_.api->Record(slot.copied_out.get(), out_.get());
  }

  absl::Status Compute(uint32_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(streams_mu_) {
    StepMemory& m = *memory_;
    const Slot& slot = m.slots[number];
    const GraphKey key = GraphKeyOf(number, slot.kind());
    auto found = m.graphs.find(key);
    if (found != m.graphs.end() && found->second) {
      return o_.api->LaunchGraph(found->second.get(), work_.get());
    }
    const StepBatch batch = slot.OnDevice(m.most, stages_, m.Constants());
    const auto run = [&] { return m.network->Run(batch, slot.kind().passes, work_.get()); };
    if (found == m.graphs.end()) {
      // Not captured at once: a product's first time chooses how it is made, and a kind that never
      // comes again is not worth a graph.
      if (m.graphs.size() < kGraphs) m.graphs.emplace(key, Graph());
      return run();
    }
    auto graph = ops::gpu::CaptureGraph(o_.api, work_, run);
    if (!graph.ok()) return graph.status();
    found->second = *std::move(graph);
    return o_.api->LaunchGraph(found->second.get(), work_.get());
  }

  // Nothing is under way afterwards, unless the device is lost.
  void Drain() {
    for (const Stream* stream : {&in_, &work_, &out_}) {
      if (*stream) (void)o_.api->Synchronize(stream->get());
    }
  }

  const DeviceStepOptions o_;
  const Stages stages_;
  const TensorSizes tensors_;
  Stream in_, work_, out_;

  Mutex streams_mu_;  // who gives work to the streams
  mutable Mutex mu_;
  std::array<bool, kSlots> busy_ ABSL_GUARDED_BY(mu_) = {};
  bool growing_ ABSL_GUARDED_BY(mu_) = false;
  // Slots that are not busy, whose copies a Stage gave and nobody has waited for.
  std::array<bool, kSlots> copying_ ABSL_GUARDED_BY(mu_) = {};
  // The batch of one of them.
  struct Staged {
    uint32_t slot;
    NextBatch next;
  };
  std::optional<Staged> staged_ ABSL_GUARDED_BY(mu_);
  // Made anew under mu_ while no slot is busy; a busy slot's thread reads it without.
  std::unique_ptr<StepMemory> memory_;
};

}  // namespace

absl::Status CheckOnDevice(const ModelTables& tables, uint32_t batch_size) {
  if (!HasStages(tables.type)) {
    return absl::FailedPreconditionError(
        "spec.worker.device: models of this spec.model.type are computed on the CPU in this "
        "version; give cpu");
  }
  // Layers count their rows in 32 bits (DevicePerceptron).
  for (const SequenceShape& sequence : tables.sequences) {
    const uint64_t values = uint64_t{batch_size} * sequence.max_length;
    if (values <= UINT32_MAX) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "spec.fields: a batch has room for ", values, " values of sequence '", sequence.name,
        "' (maxLength ", sequence.max_length, " x spec.training.batchSize ", batch_size,
        "), and a device counts ", UINT32_MAX,
        " at most; give a smaller maxLength or batchSize, or cpu for spec.worker.device"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<DeviceStep>> DeviceStep::Make(const ModelTables& tables,
                                                             const DeviceStepOptions& options) {
  // No batch has more examples, and nothing that is predicted at a time.
  STRATA_RETURN_IF_ERROR(
      CheckOnDevice(tables, std::max(options.batch_size, options.first_shape.examples)));
  auto step = std::make_unique<Step>(tables, options);
  STRATA_RETURN_IF_ERROR(step->Open());
  return std::unique_ptr<DeviceStep>(std::move(step));
}

}  // namespace strata::device
