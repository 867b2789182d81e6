#include "ops/cuda/api/choose_device.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace strata::ops::gpu {
namespace {

std::string Names(const std::vector<DeviceProperties>& devices) {
  return absl::StrJoin(devices, ", ", [](std::string* out, const DeviceProperties& device) {
    absl::StrAppend(out, device.uuid, " (", device.name, ")");
  });
}

}  // namespace

absl::StatusOr<size_t> ChooseDevice(const std::vector<DeviceProperties>& devices,
                                    absl::string_view uuid) {
  if (uuid.empty()) return 0;
  size_t index = devices.size();
  std::vector<DeviceProperties> matches;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (!absl::StartsWith(devices[i].uuid, uuid)) continue;
    matches.push_back(devices[i]);
    index = i;
  }
  if (matches.size() == 1) return index;
  if (matches.empty()) {
    return absl::NotFoundError(absl::StrCat("no device ", uuid, "; there are: ", Names(devices)));
  }
  return absl::InvalidArgumentError(absl::StrCat(uuid, " is the beginning of ", matches.size(),
                                                 " devices' UUIDs: ", Names(matches),
                                                 "; give more of one"));
}

}  // namespace strata::ops::gpu
