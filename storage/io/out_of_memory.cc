#include "storage/io/out_of_memory.h"

#include "absl/strings/cord.h"

namespace strata::storage {
namespace {

constexpr char kMark[] = "strata/out_of_memory";

}  // namespace

absl::Status OutOfMemory(absl::string_view message) {
  absl::Status status = absl::ResourceExhaustedError(message);
  status.SetPayload(kMark, absl::Cord("1"));
  return status;
}

bool IsOutOfMemory(const absl::Status& status) { return status.GetPayload(kMark).has_value(); }

}  // namespace strata::storage
