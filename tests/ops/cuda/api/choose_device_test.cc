#include "ops/cuda/api/choose_device.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "ops/cuda/api/api.h"

namespace strata::ops::gpu {
namespace {

DeviceProperties Device(const char* name, const char* uuid) {
  DeviceProperties device;
  device.name = name;
  device.uuid = uuid;
  return device;
}

TEST_CASE("a device is chosen by a beginning that is of one UUID alone", "[cuda]") {
  // The last could not be asked for its properties.
  const std::vector<DeviceProperties> devices = {Device("H200", "GPU-12ab"),
                                                 Device("H200", "GPU-12cd"), Device("L4", "GPU-9"),
                                                 Device("", "")};
  CHECK(*ChooseDevice(devices, "") == 0);
  CHECK(*ChooseDevice(devices, "GPU-12a") == 0);
  CHECK(*ChooseDevice(devices, "GPU-12cd") == 1);
  CHECK(*ChooseDevice(devices, "GPU-9") == 2);
  const absl::Status several = ChooseDevice(devices, "GPU-12").status();
  CHECK(absl::IsInvalidArgument(several));
  CHECK(several.message() ==
        "GPU-12 is the beginning of 2 devices' UUIDs: GPU-12ab (H200), GPU-12cd (H200); give more "
        "of one");
  const absl::Status none = ChooseDevice(devices, "GPU-7").status();
  CHECK(absl::IsNotFound(none));
  CHECK(std::string(none.message()).find("no device GPU-7; there are: GPU-12ab (H200), ") == 0);
  CHECK(absl::IsNotFound(ChooseDevice(devices, "GPU-12abc").status()));
}

}  // namespace
}  // namespace strata::ops::gpu
