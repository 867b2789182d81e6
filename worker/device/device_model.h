// A Model (worker/step/model.h) that a device computes.
// Tested by tests/worker/device/step_test.cc
#ifndef STRATA_WORKER_DEVICE_DEVICE_MODEL_H_
#define STRATA_WORKER_DEVICE_DEVICE_MODEL_H_

#include <memory>

#include "worker/device/step.h"
#include "worker/step/model.h"

namespace strata::device {

// Models of one job share its steps: lanes on several threads take turns on the device, and one's
// copies go on while another's batch is computed. Passes are not told apart: all time is the
// backward pass's.
std::unique_ptr<Model> MakeDeviceModel(std::shared_ptr<DeviceStep> step);

}  // namespace strata::device

#endif  // STRATA_WORKER_DEVICE_DEVICE_MODEL_H_
