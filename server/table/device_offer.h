// Which device's memory a job's server reads values of messages from and writes them to
// (proto/wire/device_values.h), and what such messages must be.
#ifndef STRATA_SERVER_TABLE_DEVICE_OFFER_H_
#define STRATA_SERVER_TABLE_DEVICE_OFFER_H_

#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/core/ids.h"
#include "proto/wire/device_values.h"

namespace strata::server {

// Immutable; any thread.
class DeviceOffer {
 public:
  // The dense table, whose values are always in the message. Rows of the others, which are hashed,
  // may go by a device's memory.
  static constexpr TableId kDense{1};

  // device: where every shard here has the rows of all hashed tables; empty: there is none.
  explicit DeviceOffer(std::string device);

  // For the reply to OpenSession; null: none.
  const std::shared_ptr<const DeviceValues>& values() const { return values_; }

  // tables: of the groups of the message (or of its ticket), in order. what: names it in errors.
  // FAILED_PRECONDITION: not of this offer's device, or there is none. INVALID_ARGUMENT: another
  // number of groups, or a place for one of the dense table.
  absl::Status Check(absl::string_view what, const DeviceValues& values,
                     std::span<const TableId> tables) const;

 private:
  std::shared_ptr<const DeviceValues> values_;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_TABLE_DEVICE_OFFER_H_
