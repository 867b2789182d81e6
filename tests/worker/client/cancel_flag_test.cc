// A flag that wakes who waits for mail.
#include "worker/client/cancel_flag.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <future>
#include <memory>
#include <vector>

#include "worker/client/mailbox.h"

namespace strata {
namespace {

// Whether somebody who waits for mail is woken by `set`.
bool Wakes(const std::shared_ptr<Mailbox>& mailbox, CancelFlag& flag) {
  const auto waits = std::async(std::launch::async, [&] { mailbox->WaitAndRun(); });
  flag.Set();
  const bool woken = waits.wait_for(std::chrono::seconds(60)) == std::future_status::ready;
  mailbox->Post([] {});
  return woken;
}

TEST_CASE("a flag wakes all who wait for mail, each time that it is set", "[cancel]") {
  CancelFlag flag;
  std::vector<std::shared_ptr<Mailbox>> mailboxes;
  for (int i = 0; i < 2; ++i) {
    mailboxes.push_back(std::make_shared<Mailbox>());
    flag.Wakes(mailboxes.back());
  }
  for (const auto& mailbox : mailboxes) {
    CHECK_FALSE(flag.set());
    CHECK(Wakes(mailbox, flag));
    CHECK(flag.set());
    CHECK(flag.value());
    flag.Clear();
    for (const auto& each : mailboxes) each->Run();
  }
}

TEST_CASE("a flag keeps no mailbox", "[cancel]") {
  CancelFlag flag;
  auto gone = std::make_shared<Mailbox>();
  const auto kept = std::make_shared<Mailbox>();
  const std::weak_ptr<Mailbox> weak = gone;
  flag.Wakes(gone);
  flag.Wakes(kept);
  gone.reset();
  CHECK(weak.expired());
  CHECK(Wakes(kept, flag));
}

}  // namespace
}  // namespace strata
