// Copies of one server's shards, each a JobBench of its own, that reach each other inside the
// process. A test says what the scheduler would, and runs whom it wants to.
#ifndef STRATA_TESTS_SERVER_JOB_COPIES_H_
#define STRATA_TESTS_SERVER_JOB_COPIES_H_

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/runtime/transport/inproc_transport.h"
#include "proto/runtime/transport/transport.h"
#include "proto/strata/control.pb.h"
#include "proto/wire/message_codec.h"
#include "tests/server/job/bench.h"

namespace strata::server {

// One lane's window of task 0; answered when every copy has it.
inline std::shared_ptr<JobBench::Answer> PushWindow(JobBench& bench, uint64_t window) {
  wire::PushFields f;
  f.window = window;
  return bench.Call(DataMethod::kPush, bench.PushMessage(1, window, {{0, 1}}, f));
}

// Asynchronous: the values of all keys as they are now.
inline std::vector<std::string> RowsOf(JobBench& bench) {
  const auto answer = bench.Pull(0, 0);
  REQUIRE(answer->value().ok());
  std::vector<std::string> values;
  const auto reply = wire::ParsePullReply((**answer).value().span());
  REQUIRE(reply.ok());
  for (const wire::GroupView& g : reply->groups) {
    values.emplace_back(g.value_bytes.begin(), g.value_bytes.end());
  }
  return values;
}

class Copies {
 public:
  explicit Copies(size_t count, bool synchronous = true) {
    for (size_t i = 0; i < count; ++i) {
      copies_.push_back(std::make_unique<JobBench>(1, synchronous, 100 * (i + 1)));
      copies_.back()->transport_ = transport_.get();
      logs_.push_back(absl::StrCat("log-", i));
    }
    listeners_.resize(count);
  }
  ~Copies() {
    for (size_t i = 0; i < copies_.size(); ++i) Kill(i);
  }

  JobBench& operator[](size_t i) { return *copies_[i]; }
  std::shared_ptr<ServerJob> Job(size_t i) { return copies_[i]->service_.Find(JobId(1)); }

  void Open(size_t i, bool joins = false) {
    copies_[i]->plan().copy = CopyPlan{logs_[i], joins};
    copies_[i]->Start();
    auto listener = transport_->Listen(absl::StrCat("copy-", i), &copies_[i]->service_);
    REQUIRE(listener.ok());
    listeners_[i] = *std::move(listener);
  }
  void Kill(size_t i) {
    listeners_[i].reset();
    copies_[i]->Stop();
  }
  void Restart(size_t i) {
    Kill(i);
    copies_[i]->plan().was_open = true;
    Open(i, copies_[i]->plan().copy->joins);
  }
  void SetLog(size_t i, std::string log_id) { logs_[i] = std::move(log_id); }

  // The configuration of `epoch`, as that copy hears it.
  ServerJobDirective Directive(size_t i, uint64_t epoch, const std::vector<size_t>& members,
                               std::optional<size_t> joining = std::nullopt, uint32_t learners = 0,
                               uint32_t min_replicas = 1) {
    ServerJobDirective d;
    d.set_map_epoch(5);
    ChainDirective& chain = *d.mutable_chain();
    chain.set_chain_epoch(epoch);
    for (size_t place = 0; place < members.size(); ++place) {
      Fill(members[place], chain.add_members());
      if (members[place] == i) chain.set_place(static_cast<uint32_t>(place));
    }
    if (joining) Fill(*joining, chain.mutable_joining());
    if (joining == i) chain.set_place(static_cast<uint32_t>(members.size()));
    chain.set_full(static_cast<uint32_t>(members.size()) - learners);
    chain.set_min_replicas(min_replicas);
    return d;
  }
  void Tell(size_t i, uint64_t epoch, const std::vector<size_t>& members,
            std::optional<size_t> joining = std::nullopt, uint32_t learners = 0,
            uint32_t min_replicas = 1) {
    Job(i)->Follow(Directive(i, epoch, members, joining, learners, min_replicas));
    copies_[i]->pool_.RunAll();
  }
  void TellAll(uint64_t epoch, const std::vector<size_t>& members,
               std::optional<size_t> joining = std::nullopt, uint32_t learners = 0) {
    for (const size_t i : members) Tell(i, epoch, members, joining, learners);
    if (joining) Tell(*joining, epoch, members, joining, learners);
    Pass();  // who was told first has been refused by the others
  }

  // Until nobody has anything to do now.
  void Run() {
    for (bool ran = true; ran;) {
      ran = false;
      for (const auto& copy : copies_) ran |= copy->pool_.RunAll() > 0;
    }
  }
  // The same, and what time brings, until nobody waits for that either.
  void Pass(absl::Duration time = absl::Seconds(1)) {
    for (int i = 0; i < 20; ++i) {
      Run();
      for (const auto& copy : copies_) copy->timer_.Advance(time / 20);
    }
    Run();
  }

  CopyReport Report(size_t i) { return Job(i)->Report().copy(); }
  uint64_t Clock(size_t i) { return Job(i)->Report().min_clock(); }
  void OpenSession(size_t i) { REQUIRE(copies_[i]->OpenSession().ok()); }
  // One lane's; appended at the head, whoever else runs.
  void Push(size_t i, uint64_t step) { REQUIRE(copies_[i]->PushStep(1, step, {{0, 1}}).ok()); }

 private:
  void Fill(size_t i, ChainMember* member) {
    member->set_server(absl::StrCat("s", i));
    member->set_data_address(absl::StrCat("copy-", i));
    member->set_log_id(logs_[i]);
  }

  const std::unique_ptr<DataTransport> transport_ = MakeInProcTransport();
  std::vector<std::unique_ptr<JobBench>> copies_;
  std::vector<std::unique_ptr<DataListener>> listeners_;
  std::vector<std::string> logs_;
};

}  // namespace strata::server

#endif  // STRATA_TESTS_SERVER_JOB_COPIES_H_
