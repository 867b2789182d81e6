#include "worker/device/device_model.h"

#include <utility>

namespace strata::device {
namespace {

class DeviceModel : public Model {
 public:
  explicit DeviceModel(std::shared_ptr<DeviceStep> step) : step_(std::move(step)) {}

  absl::StatusOr<double> TrainStep(const ModelInputs& in, const ModelGradients& out,
                                   float* predictions, ops::Parallel* parallel) override {
    return step_->Train(in, out, predictions, parallel);
  }
  absl::Status Predict(const ModelInputs& in, float* predictions,
                       ops::Parallel* parallel) override {
    return step_->Predict(in, predictions, parallel);
  }

  bool waits() const override { return true; }
  absl::Status Stage(const NextBatch& next, ops::Parallel* parallel) override {
    return step_->Stage(next, parallel);
  }

 private:
  const std::shared_ptr<DeviceStep> step_;
};

}  // namespace

std::unique_ptr<Model> MakeDeviceModel(std::shared_ptr<DeviceStep> step) {
  return std::make_unique<DeviceModel>(std::move(step));
}

}  // namespace strata::device
