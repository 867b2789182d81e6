#include "tests/worker/client/blocking_fixture.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace strata::testing {

Buffer Text(const std::string& text) {
  return Buffer::CopyOf({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

std::string TextOf(const Buffer& bytes) {
  return {reinterpret_cast<const char*>(bytes.span().data()), bytes.span().size()};
}

BlockingFixture::BlockingFixture(uint32_t n, const std::string& device,
                                 absl::Duration give_up_after)
    : links(&servers, n, Caller::Nobody()) {
  links.SetPeers(ScriptedServers::Peers(n));
  BlockingCallsOptions options;
  options.session.links = &links;
  options.session.timer = &timer;
  options.session.device = device;
  options.give_up_after = give_up_after;
  options.cancelled = &cancelled;
  calls = std::make_unique<BlockingCalls>(options);
  for (uint32_t s = 0; s < n; ++s) {
    requests.push_back({s, DataMethod::kPush, Text(absl::StrCat("to ", s))});
  }
}

BlockingFixture::~BlockingFixture() {
  cancelled.Set();
  servers.Close();
  while (result.valid() && running()) timer.Advance(absl::Seconds(1));
}

void BlockingFixture::Start() {
  result = std::async(std::launch::async, [this] {
    return calls->CallAll(requests, [](size_t, const Buffer& reply) -> absl::Status {
      const std::string text = TextOf(reply);
      if (text == "good") return absl::OkStatus();
      if (text == "not yet") return absl::UnavailableError(text);
      if (text == "unreadable") return absl::DataLossError(text);
      return absl::FailedPreconditionError(text);
    });
  });
}

void BlockingFixture::StartOpen() {
  Start();
  for (uint32_t s = 0; s < links.servers(); ++s) {
    servers.Next(s, DataMethod::kOpenSession).reply(OpenReply({}));
  }
}

void BlockingFixture::StartOpenAll() {
  result = std::async(std::launch::async, [this] {
    return calls->OpenAndAllTakeRows() ? absl::OkStatus() : absl::AbortedError("no");
  });
}

absl::Status BlockingFixture::Result() {
  REQUIRE(result.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
  return result.get();
}

bool BlockingFixture::running() const {
  return result.wait_for(std::chrono::milliseconds(1)) == std::future_status::timeout;
}

void BlockingFixture::Answer(uint32_t server, const absl::StatusOr<Buffer>& reply) {
  servers.Next(server, DataMethod::kPush).reply(reply);
}

void BlockingFixture::AwaitPause(int ms) {
  timer.AwaitAlarms(1);
  CHECK(timer.next() == timer.Now() + absl::Milliseconds(ms));
  timer.AdvanceTo(timer.next());
}

}  // namespace strata::testing
