#include "tests/worker/client/scripted_servers.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <utility>

#include "absl/time/time.h"
#include "proto/wire/device_values.h"
#include "proto/wire/message_codec.h"

namespace strata::testing {
namespace {

// For a test that is about to fail: nothing that passes waits so long.
constexpr absl::Duration kPatience = absl::Seconds(60);

// Answers, at the latest when it is destroyed.
struct Answer {
  explicit Answer(DataReply to) : reply(std::move(to)) {}
  ~Answer() {
    if (reply != nullptr) reply(absl::UnavailableError("the test has no answer"));
  }
  DataReply reply;
};

}  // namespace

class ScriptedServers::Channel : public DataChannel {
 public:
  Channel(ScriptedServers* servers, uint32_t server) : servers_(servers), server_(server) {}

  void Call(DataMethod method, Buffer request, absl::Duration timeout, DataReply done) override {
    auto answer = std::make_shared<Answer>(std::move(done));
    MutexLock lock(&servers_->mu_);
    if (servers_->closed_) return;
    servers_->calls_.push_back({server_, method, std::move(request), timeout,
                                [answer = std::move(answer)](absl::StatusOr<Buffer> reply) {
                                  std::exchange(answer->reply, nullptr)(std::move(reply));
                                }});
  }

 private:
  ScriptedServers* const servers_;
  const uint32_t server_;
};

std::vector<DataPeer> ScriptedServers::Peers(uint32_t n) {
  std::vector<DataPeer> peers;
  for (uint32_t s = 0; s < n; ++s) peers.push_back({std::to_string(s), std::to_string(s)});
  return peers;
}

ScriptedServers::Call ScriptedServers::Next(uint32_t server, DataMethod method) {
  Call call = NextOf(server);
  INFO("server " << server);
  REQUIRE(static_cast<int>(call.method) == static_cast<int>(method));
  return call;
}

ScriptedServers::Call ScriptedServers::NextOf(uint32_t server) {
  return Take(server, std::nullopt);
}

ScriptedServers::Call ScriptedServers::Any(uint32_t server, DataMethod method) {
  return Take(server, method);
}

ScriptedServers::Call ScriptedServers::Take(uint32_t server, std::optional<DataMethod> method) {
  MutexLock lock(&mu_);
  const auto find = [&, this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return std::find_if(calls_.begin(), calls_.end(), [&](const Call& c) {
      return c.server == server && method.value_or(c.method) == c.method;
    });
  };
  const auto any = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return find() != calls_.end(); };
  const bool came = mu_.AwaitWithTimeout(absl::Condition(&any), kPatience);
  INFO("server " << server);
  REQUIRE(came);
  const auto it = find();
  Call call = std::move(*it);
  calls_.erase(it);
  return call;
}

size_t ScriptedServers::waiting() const {
  MutexLock lock(&mu_);
  return calls_.size();
}

void ScriptedServers::Close() {
  std::deque<Call> calls;  // answered without the lock
  MutexLock lock(&mu_);
  closed_ = true;
  calls.swap(calls_);
}

absl::StatusOr<std::unique_ptr<DataListener>> ScriptedServers::Listen(const std::string&,
                                                                      DataHandler*) {
  return absl::UnimplementedError("scripted servers are the test itself");
}

std::shared_ptr<DataChannel> ScriptedServers::Connect(const DataPeer& peer, const Caller&) {
  return std::make_shared<Channel>(this, static_cast<uint32_t>(std::stoul(peer.address)));
}

Buffer OpenReply(const wire::ServerState& state, const std::string& device) {
  Buffer reply = wire::EncodeOpenSessionReply({state});
  if (device.empty()) return reply;
  auto offer = std::make_shared<DeviceValues>();
  offer->device = device;
  return reply.With(std::move(offer));
}

}  // namespace strata::testing
