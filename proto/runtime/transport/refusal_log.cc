#include "proto/runtime/transport/refusal_log.h"

#include <glog/logging.h>
#include <grpc/support/log.h>

#include <atomic>

#include "absl/strings/match.h"

namespace strata {
namespace {

std::atomic<uint64_t> failed_handshakes{0};
std::atomic<uint64_t> refused_calls{0};

// As the library begins what it says when a handshake of TLS fails, whoever began it.
constexpr char kFailed[] = "Handshake failed with fatal error";

void Say(gpr_log_func_args* said) {
  if (absl::StartsWith(said->message, kFailed)) {
    const uint64_t count = ++failed_handshakes;
    LOG_EVERY_T(WARNING, 10) << "handshake_failed error=\"" << said->message
                             << "\" failed=" << count;
    return;
  }
  LOG_EVERY_T(WARNING, 10) << "grpc said=\"" << said->message << '"';
}

}  // namespace

void FollowGrpcLog() { gpr_set_log_function(&Say); }

void NoteRefusedCall(const std::string& peer, absl::string_view method, const absl::Status& why) {
  const uint64_t count = ++refused_calls;
  LOG_EVERY_T(WARNING, 10) << "caller_refused peer=" << peer << " call=" << method << " error=\""
                           << why << "\" refused=" << count;
}

uint64_t FailedHandshakes() { return failed_handshakes; }
uint64_t RefusedCalls() { return refused_calls; }

}  // namespace strata
