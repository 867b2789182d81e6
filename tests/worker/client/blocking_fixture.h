// Blocking calls that wait in a thread of their own, to scripted servers, by a clock that is moved
// by hand.
#ifndef STRATA_TESTS_WORKER_CLIENT_BLOCKING_FIXTURE_H_
#define STRATA_TESTS_WORKER_CLIENT_BLOCKING_FIXTURE_H_

#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/wire/buffer.h"
#include "tests/worker/client/scripted_servers.h"
#include "worker/client/blocking_calls.h"
#include "worker/client/cancel_flag.h"
#include "worker/client/server_links.h"

namespace strata::testing {

Buffer Text(const std::string& text);
std::string TextOf(const Buffer& bytes);

// Has a push "to s" for each server s. One thread, the test's.
struct BlockingFixture {
  explicit BlockingFixture(uint32_t n = 2, const std::string& device = "",
                           absl::Duration give_up_after = absl::InfiniteDuration());
  // Ends what runs.
  ~BlockingFixture();

  // CallAll, in another thread. Good answers are "good"; others are what their text says.
  void Start();
  // The same, and every server says that it is open.
  void StartOpen();
  // OpenAndAllTakeRows, in another thread: OK or ABORTED.
  void StartOpenAll();
  // What the other thread's call returned; waits for it, and fails the test where it never does.
  absl::Status Result();
  bool running() const;

  void Answer(uint32_t server, const absl::StatusOr<Buffer>& reply);
  // The caller sleeps for `ms`; wakes it.
  void AwaitPause(int ms);

  ScriptedServers servers;
  ManualTimer timer;
  ServerLinks links;
  CancelFlag cancelled;
  std::vector<BlockingCalls::Request> requests;
  std::unique_ptr<BlockingCalls> calls;
  std::future<absl::Status> result;
};

}  // namespace strata::testing

#endif  // STRATA_TESTS_WORKER_CLIENT_BLOCKING_FIXTURE_H_
