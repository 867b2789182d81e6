#include "proto/runtime/transport/transport.h"

#include <utility>

#include "absl/synchronization/notification.h"

namespace strata {

absl::StatusOr<Buffer> DataChannel::CallAndWait(DataMethod method, Buffer request,
                                                absl::Duration timeout) {
  absl::StatusOr<Buffer> result = absl::UnknownError("");
  absl::Notification answered;
  Call(method, std::move(request), timeout, [&](absl::StatusOr<Buffer> reply) {
    result = std::move(reply);
    answered.Notify();
  });
  answered.WaitForNotification();
  return result;
}

}  // namespace strata
