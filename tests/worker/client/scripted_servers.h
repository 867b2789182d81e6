// Servers that answer what a test says, when it says it.
#ifndef STRATA_TESTS_WORKER_CLIENT_SCRIPTED_SERVERS_H_
#define STRATA_TESTS_WORKER_CLIENT_SCRIPTED_SERVERS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/core/mutex.h"
#include "proto/runtime/transport/transport.h"
#include "proto/wire/buffer.h"
#include "proto/wire/message.h"

namespace strata::testing {

inline constexpr auto kOpen = DataMethod::kOpenSession;
inline constexpr auto kPull = DataMethod::kPull;
inline constexpr auto kPush = DataMethod::kPush;

// A transport whose calls wait until the test answers them; one that the test takes and drops is
// answered UNAVAILABLE. Server s listens at "s", at "s/again" and so on. Outlives its channels.
// Thread-safe.
//
//   ScriptedServers::Call open = servers.Next(0, DataMethod::kOpenSession);
//   open.reply(OpenReply({.incarnation = 7}));
class ScriptedServers : public DataTransport {
 public:
  struct Call {
    uint32_t server;
    DataMethod method;
    Buffer request;
    absl::Duration timeout;
    DataReply reply;
  };

  // Of servers 0 .. n - 1.
  static std::vector<DataPeer> Peers(uint32_t n);

  // The oldest call to the server that was not taken yet; waits for it, and fails the test when
  // none comes or it is another method's.
  Call Next(uint32_t server, DataMethod method);
  Call NextOf(uint32_t server);  // of whatever method
  // The oldest of that method, where calls of others may come before it or after.
  Call Any(uint32_t server, DataMethod method);
  // Calls that were not taken yet.
  size_t waiting() const;
  // From now on every call is answered UNAVAILABLE, also those that wait.
  void Close();

  absl::StatusOr<std::unique_ptr<DataListener>> Listen(const std::string&, DataHandler*) override;
  std::shared_ptr<DataChannel> Connect(const DataPeer& peer, const Caller& caller) override;

 private:
  class Channel;

  Call Take(uint32_t server, std::optional<DataMethod> method);

  mutable Mutex mu_;
  std::deque<Call> calls_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

// The answer to OpenSession; with an offer of rows on `device`, unless that is empty.
Buffer OpenReply(const wire::ServerState& state, const std::string& device = "");

}  // namespace strata::testing

#endif  // STRATA_TESTS_WORKER_CLIENT_SCRIPTED_SERVERS_H_
