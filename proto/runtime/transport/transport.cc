#include "proto/runtime/transport/transport.h"

#include <algorithm>
#include <utility>

#include "absl/synchronization/notification.h"

namespace strata {

void DataChannel::CallInPieces(DataMethod method, std::vector<Buffer> request,
                               absl::Duration timeout, DataReply done) {
  if (request.size() == 1) return Call(method, std::move(request[0]), timeout, std::move(done));
  size_t bytes = 0;
  for (const Buffer& piece : request) bytes += piece.size();
  auto out = BufferBuilder::Make(bytes);
  if (!out.ok()) return done(out.status());
  uint8_t* at = out->data();
  for (const Buffer& piece : request) at = std::copy_n(piece.data(), piece.size(), at);
  Call(method, out->Finish(), timeout, std::move(done));
}

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
