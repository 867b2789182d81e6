#include "server/table/device_offer.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace strata::server {
namespace {

TEST_CASE("values must be of the device that was offered, and of its table", "[device_offer]") {
  const DeviceOffer offer("GPU-1"), none("");
  REQUIRE(offer.values() != nullptr);
  CHECK(offer.values()->device == "GPU-1");
  CHECK(offer.values()->groups.empty());
  CHECK(none.values() == nullptr);

  float there[4] = {};
  const std::vector<TableId> tables = {TableId(0), TableId(1), TableId(0)};
  DeviceValues values;
  values.device = "GPU-1";
  values.groups = {there, nullptr, nullptr};
  CHECK(offer.Check("pull", values, tables).ok());
  const absl::Status elsewhere = none.Check("pull", values, tables);
  CHECK(absl::IsFailedPrecondition(elsewhere));
  CHECK(std::string(elsewhere.message()).rfind("pull: its values lie on device \"GPU-1\"", 0) == 0);

  DeviceValues other = values;
  other.device = "GPU-2";
  CHECK(absl::IsFailedPrecondition(offer.Check("push", other, tables)));
  DeviceValues few = values;
  few.groups.pop_back();
  CHECK(absl::IsInvalidArgument(offer.Check("push", few, tables)));
  DeviceValues many = values;
  many.groups.push_back(nullptr);
  CHECK(absl::IsInvalidArgument(offer.Check("push", many, tables)));
  DeviceValues dense = values;
  dense.groups[1] = there;
  CHECK(absl::IsInvalidArgument(offer.Check("push", dense, tables)));
}

}  // namespace
}  // namespace strata::server
