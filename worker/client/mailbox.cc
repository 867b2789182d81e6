#include "worker/client/mailbox.h"

#include <algorithm>
#include <iterator>

namespace strata {

void Mailbox::PostIn(Round round, std::function<void()> work) {
  MutexLock lock(&mu_);
  if (round == kNoRound || round == round_) waiting_.push_back({round, std::move(work)});
}

Mailbox::Round Mailbox::round() const {
  MutexLock lock(&mu_);
  return round_;
}

void Mailbox::EndRound() {
  std::vector<Mail> dropped;  // what it holds goes without the lock
  MutexLock lock(&mu_);
  ++round_;
  const auto of_round = std::stable_partition(
      waiting_.begin(), waiting_.end(), [](const Mail& mail) { return mail.round == kNoRound; });
  dropped.assign(std::make_move_iterator(of_round), std::make_move_iterator(waiting_.end()));
  waiting_.erase(of_round, waiting_.end());
}

void Mailbox::Run() {
  std::vector<Mail> now;
  {
    MutexLock lock(&mu_);
    now.swap(waiting_);
  }
  for (Mail& mail : now) mail.work();
}

void Mailbox::WaitAndRun() {
  std::vector<Mail> now;
  {
    MutexLock lock(&mu_);
    const auto some = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !waiting_.empty(); };
    mu_.Await(absl::Condition(&some));
    now.swap(waiting_);
  }
  for (Mail& mail : now) mail.work();
}

}  // namespace strata
