#include "server/table/device_offer.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"

namespace strata::server {

DeviceOffer::DeviceOffer(std::string device) {
  if (device.empty()) return;
  auto values = std::make_shared<DeviceValues>();
  values->device = std::move(device);
  values_ = std::move(values);
}

absl::Status DeviceOffer::Check(absl::string_view what, const DeviceValues& values,
                                std::span<const TableId> tables) const {
  if (values_ == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, ": its values lie on device \"", values.device,
                     "\", and this server has the rows on none: send the values in the message"));
  }
  if (values.device != values_->device) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, ": its values lie on device \"", values.device,
                     "\", and this server has the rows on \"", values_->device,
                     "\": send the values in the message"));
  }
  if (values.groups.size() != tables.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": ", values.groups.size(), " places on a device for ", tables.size(), " groups"));
  }
  for (size_t g = 0; g < tables.size(); ++g) {
    if (values.groups[g] == nullptr || tables[g] != kDense) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": group ", g, " is of table ", tables[g].value,
                     " and has a place on a device; only those of hashed tables may"));
  }
  return absl::OkStatus();
}

}  // namespace strata::server
