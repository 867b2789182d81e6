#include "tests/proto/runtime/transport/transport_conformance.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"

namespace strata::testing {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);

Buffer Pattern(size_t size, uint8_t seed) {
  BufferBuilder b(size);
  for (size_t i = 0; i < size; ++i) b.data()[i] = static_cast<uint8_t>(seed + i * 7 + (i >> 11));
  return b.Finish();
}

bool Same(const Buffer& a, const Buffer& b) {
  return a.size() == b.size() && (a.size() == 0 || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

class FunctionHandler : public DataHandler {
 public:
  using Function = std::function<void(DataMethod, Buffer, DataReply)>;
  explicit FunctionHandler(Function f) : f_(std::move(f)) {}
  void Handle(const Caller&, DataMethod method, Buffer request, DataReply reply) override {
    f_(method, std::move(request), std::move(reply));
  }

 private:
  const Function f_;
};

// Answers with the request.
FunctionHandler Echo() {
  return FunctionHandler(
      [](DataMethod, Buffer request, DataReply reply) { reply(std::move(request)); });
}

// Keeps the replies until the test gives them.
class HoldingHandler : public DataHandler {
 public:
  void Handle(const Caller&, DataMethod, Buffer, DataReply reply) override {
    absl::MutexLock lock(&mu_);
    held_.push_back(std::move(reply));
  }
  // Waits until n calls have arrived since the last time.
  std::vector<DataReply> Take(size_t n) {
    absl::MutexLock lock(&mu_);
    const auto arrived = [this, n]()
                             ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return held_.size() >= n; };
    mu_.Await(absl::Condition(&arrived));
    return std::exchange(held_, {});
  }

 private:
  absl::Mutex mu_;
  std::vector<DataReply> held_ ABSL_GUARDED_BY(mu_);
};

// A call whose outcome the test awaits.
struct Outcome {
  absl::Notification answered;
  absl::StatusOr<Buffer> result = absl::UnknownError("not answered");

  DataReply Done() {
    return [this](absl::StatusOr<Buffer> r) {
      result = std::move(r);
      answered.Notify();  // a second answer would abort here
    };
  }
  const absl::StatusOr<Buffer>& Await() {
    answered.WaitForNotification();
    return result;
  }
};

struct Fixture {
  explicit Fixture(const TransportUnderTest& t, DataHandler* handler)
      : transport(t.make()), address(t.free_address()) {
    auto started = transport->Listen(address, handler);
    INFO(started.status().ToString());
    REQUIRE(started.ok());
    listener = *std::move(started);
    channel = transport->Connect({listener->address(), "s"}, Caller::Nobody());
  }

  std::unique_ptr<DataTransport> transport;
  std::string address;
  std::unique_ptr<DataListener> listener;
  std::shared_ptr<DataChannel> channel;
};

void Sizes(const TransportUnderTest& t) {
  FunctionHandler handler = Echo();
  Fixture f(t, &handler);
  for (size_t size : {size_t{0}, size_t{1}, size_t{100}, size_t{4096}, size_t{1'000'003},
                      size_t{60} << 20, kMaxMessageBytes}) {
    const Buffer sent = Pattern(size, 3);
    const auto got = f.channel->CallAndWait(DataMethod::kPull, sent, kLong);
    INFO("size " << size << ": " << got.status().ToString());
    REQUIRE(got.ok());
    REQUIRE(Same(*got, sent));
    if (size != 0) REQUIRE(reinterpret_cast<uintptr_t>(got->data()) % 64 == 0);
  }
}

void Pieces(const TransportUnderTest& t) {
  FunctionHandler handler = Echo();
  Fixture f(t, &handler);
  for (const std::vector<size_t>& sizes :
       {std::vector<size_t>{}, {0}, {7}, {1, 0, 100}, {5, 1'000'003, 3, 70'000}}) {
    std::vector<Buffer> pieces;
    std::vector<uint8_t> whole;
    for (const size_t size : sizes) {
      pieces.push_back(Pattern(size, static_cast<uint8_t>(pieces.size())));
      whole.insert(whole.end(), pieces.back().span().begin(), pieces.back().span().end());
    }
    Outcome outcome;
    f.channel->CallInPieces(DataMethod::kForward, pieces, kLong, outcome.Done());
    const auto& got = outcome.Await();
    INFO(got.status().ToString());
    REQUIRE(got.ok());
    CHECK(Same(*got, Buffer::CopyOf(whole)));
  }
  const Buffer half = Pattern(kMaxMessageBytes / 2 + 1, 1);
  Outcome outcome;
  f.channel->CallInPieces(DataMethod::kForward, {half, half}, kLong, outcome.Done());
  CHECK(absl::IsResourceExhausted(outcome.Await().status()));
}

void Methods(const TransportUnderTest& t) {
  FunctionHandler handler([](DataMethod method, Buffer, DataReply reply) {
    const auto number = static_cast<uint8_t>(method);
    reply(Buffer::CopyOf({&number, 1}));
  });
  Fixture f(t, &handler);
  for (uint8_t m = 0; m < kDataMethods; ++m) {
    const auto got = f.channel->CallAndWait(static_cast<DataMethod>(m), Buffer(), kLong);
    REQUIRE(got.ok());
    CHECK(got->span()[0] == m);
  }
}

void Concurrent(const TransportUnderTest& t) {
  FunctionHandler handler = Echo();
  Fixture f(t, &handler);
  constexpr int kThreads = 4;
  constexpr int kCalls = 200;
  std::atomic<int> right{0};
  absl::BlockingCounter all(kThreads * kCalls);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kCalls; ++i) {
        Buffer sent = Pattern(static_cast<size_t>(i * 37), static_cast<uint8_t>(thread * 50 + i));
        f.channel->Call(DataMethod::kPush, sent, kLong, [&, sent](absl::StatusOr<Buffer> got) {
          if (got.ok() && Same(*got, sent)) ++right;
          all.DecrementCount();
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  all.Wait();
  CHECK(right == kThreads * kCalls);
}

void HandlerErrors(const TransportUnderTest& t) {
  absl::Status answer;
  FunctionHandler handler([&](DataMethod, Buffer, DataReply reply) { reply(answer); });
  Fixture f(t, &handler);
  for (int code = 1; code <= 16; ++code) {
    answer = absl::Status(static_cast<absl::StatusCode>(code),
                          absl::StrCat("code ", code, ": 100% \"ü\" \n\t\x01 end"));
    const auto got = f.channel->CallAndWait(DataMethod::kPull, Buffer(), kLong);
    INFO(got.status().ToString());
    CHECK(got.status() == answer);
  }
  answer = absl::InternalError(std::string(100'000, 'x'));
  const auto got = f.channel->CallAndWait(DataMethod::kPull, Buffer(), kLong);
  CHECK(got.status().code() == absl::StatusCode::kInternal);
  CHECK(got.status().message().size() >= t.max_error_text);
}

void ReplyLater(const TransportUnderTest& t) {
  HoldingHandler handler;
  Fixture f(t, &handler);
  Outcome a;
  Outcome b;
  f.channel->Call(DataMethod::kPull, Buffer(), kLong, a.Done());
  std::vector<DataReply> first = handler.Take(1);
  f.channel->Call(DataMethod::kPull, Buffer(), kLong, b.Done());
  std::vector<DataReply> second = handler.Take(1);
  // From another thread, and in the other order.
  std::thread([&] { second[0](Pattern(2, 2)); }).join();
  CHECK(b.Await()->size() == 2);
  CHECK(!a.answered.HasBeenNotified());
  std::thread([&] { first[0](Pattern(1, 1)); }).join();
  CHECK(a.Await()->size() == 1);
}

void Deadline(const TransportUnderTest& t) {
  HoldingHandler handler;
  Fixture f(t, &handler);
  Outcome patient;
  f.channel->Call(DataMethod::kPull, Buffer(), absl::InfiniteDuration(), patient.Done());
  const absl::Time start = absl::Now();
  const auto got = f.channel->CallAndWait(DataMethod::kPull, Buffer(), absl::Milliseconds(50));
  CHECK(got.status().code() == absl::StatusCode::kDeadlineExceeded);
  CHECK(absl::Now() - start >= absl::Milliseconds(45));
  // Late answers go nowhere, and the channel goes on.
  for (DataReply& reply : handler.Take(2)) reply(Pattern(5, 5));
  CHECK(patient.Await()->size() == 5);
}

void Oversize(const TransportUnderTest& t) {
  FunctionHandler handler(
      [](DataMethod, Buffer, DataReply reply) { reply(Pattern(kMaxMessageBytes + 1, 0)); });
  Fixture f(t, &handler);
  const std::string limit = absl::StrCat(kMaxMessageBytes);
  for (const Buffer& request : {Pattern(kMaxMessageBytes + 1, 0), Buffer()}) {
    const auto got = f.channel->CallAndWait(DataMethod::kPush, request, kLong);
    INFO(got.status().ToString());
    CHECK(got.status().code() == absl::StatusCode::kResourceExhausted);
    CHECK(std::string(got.status().message()).find(limit) != std::string::npos);
  }
}

void NobodyThere(const TransportUnderTest& t) {
  FunctionHandler handler = Echo();
  const std::unique_ptr<DataTransport> transport = t.make();
  const std::string address = t.free_address();
  const std::shared_ptr<DataChannel> channel = transport->Connect({address, "s"}, Caller::Nobody());
  const auto got = channel->CallAndWait(DataMethod::kPull, Buffer(), kLong);
  INFO(got.status().ToString());
  CHECK(got.status().code() == absl::StatusCode::kUnavailable);
  const auto listener = transport->Listen(address, &handler);
  REQUIRE(listener.ok());
  // The same channel, tried again as a caller would, works once it has connected anew.
  absl::StatusOr<Buffer> again = absl::UnavailableError("");
  const absl::Time give_up = absl::Now() + kLong;
  while (again.status().code() == absl::StatusCode::kUnavailable && absl::Now() < give_up) {
    again = channel->CallAndWait(DataMethod::kPull, Pattern(9, 1), kLong);
  }
  INFO(again.status().ToString());
  REQUIRE(again.ok());
  CHECK(again->size() == 9);
}

void AddressTaken(const TransportUnderTest& t) {
  FunctionHandler handler = Echo();
  Fixture f(t, &handler);
  const auto second = f.transport->Listen(f.listener->address(), &handler);
  INFO(second.status().ToString());
  CHECK(second.status().code() == absl::StatusCode::kAlreadyExists);
  CHECK(std::string(second.status().message()).find(f.listener->address()) != std::string::npos);
  // The first is not harmed, and its address is free again after it.
  CHECK(f.channel->CallAndWait(DataMethod::kPull, Buffer(), kLong).ok());
  const std::string address = f.listener->address();
  f.listener.reset();
  CHECK(f.transport->Listen(address, &handler).ok());
}

void CloseWithCallsInFlight(const TransportUnderTest& t) {
  HoldingHandler handler;
  Fixture f(t, &handler);
  constexpr int kCalls = 20;
  std::vector<Outcome> outcomes(kCalls);
  for (Outcome& o : outcomes) f.channel->Call(DataMethod::kPull, Buffer(), kLong, o.Done());
  std::vector<DataReply> held = handler.Take(kCalls);
  f.listener.reset();
  for (Outcome& o : outcomes) {
    CHECK(o.Await().status().code() == absl::StatusCode::kUnavailable);
  }
  // Replies after the end reach nobody and harm nothing.
  for (DataReply& reply : held) reply(Buffer());
  held.clear();
  const auto got = f.channel->CallAndWait(DataMethod::kPull, Buffer(), kLong);
  CHECK(got.status().code() == absl::StatusCode::kUnavailable);
}

// Replies, new calls and the end of the listener at the same time.
void CloseUnderLoad(const TransportUnderTest& t) {
  for (int round = 0; round < 5; ++round) {
    std::atomic<int> running{0};
    FunctionHandler handler([&](DataMethod, Buffer request, DataReply reply) {
      ++running;
      reply(std::move(request));
      --running;
    });
    Fixture f(t, &handler);
    std::atomic<bool> stop{false};
    std::atomic<int> served{0};
    std::atomic<int> other{0};
    absl::Notification warm;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        while (!stop) {
          const auto got = f.channel->CallAndWait(DataMethod::kPull, Pattern(5000, 1), kLong);
          if (got.ok()) {
            if (++served == 50) warm.Notify();
          } else if (got.status().code() != absl::StatusCode::kUnavailable) {
            ++other;
          }
        }
      });
    }
    warm.WaitForNotification();
    f.listener.reset();
    CHECK(running == 0);  // no handler call runs after the destructor
    stop = true;
    for (std::thread& thread : threads) thread.join();
    CHECK(other == 0);
  }
}

void Reopen(const TransportUnderTest& t) {
  FunctionHandler handler = Echo();
  Fixture f(t, &handler);
  CHECK(f.channel->CallAndWait(DataMethod::kPull, Pattern(3, 0), kLong).ok());
  const std::string address = f.listener->address();
  f.listener.reset();
  auto again = f.transport->Listen(address, &handler);
  INFO(again.status().ToString());
  REQUIRE(again.ok());
  absl::StatusOr<Buffer> got = absl::UnavailableError("");
  const absl::Time give_up = absl::Now() + kLong;
  while (got.status().code() == absl::StatusCode::kUnavailable && absl::Now() < give_up) {
    got = f.channel->CallAndWait(DataMethod::kPull, Pattern(3, 0), kLong);
  }
  CHECK(got.ok());
}

// The last owner of the channel goes away inside the callback, on the transport's own thread.
void DropInsideCallback(const TransportUnderTest& t) {
  HoldingHandler handler;
  Fixture f(t, &handler);
  absl::Notification gone;
  struct Owner {
    std::shared_ptr<DataChannel> channel;
    std::unique_ptr<DataTransport> transport;
    absl::Notification* gone;
    ~Owner() {
      channel.reset();
      transport.reset();
      gone->Notify();
    }
  };
  auto client = t.make();
  auto owner = std::make_shared<Owner>();
  owner->channel = f.transport->Connect({f.listener->address(), "s"}, Caller::Nobody());
  owner->transport = std::move(client);
  owner->gone = &gone;
  DataChannel* const channel = owner->channel.get();
  channel->Call(DataMethod::kPull, Buffer(), kLong,
                [owner = std::move(owner)](absl::StatusOr<Buffer>) mutable { owner.reset(); });
  for (DataReply& reply : handler.Take(1)) reply(Buffer());
  gone.WaitForNotification();
  CHECK(gone.HasBeenNotified());
}

}  // namespace

void RunTransportConformance(const TransportUnderTest& t) {
  SECTION("echoes every size") { Sizes(t); }
  SECTION("carries requests in pieces") { Pieces(t); }
  SECTION("tells the methods apart") { Methods(t); }
  SECTION("carries concurrent calls") { Concurrent(t); }
  SECTION("passes every error of a handler") { HandlerErrors(t); }
  SECTION("takes replies later, in any order, from any thread") { ReplyLater(t); }
  SECTION("ends calls at their deadline") { Deadline(t); }
  SECTION("refuses oversize messages both ways") { Oversize(t); }
  SECTION("answers UNAVAILABLE until somebody listens") { NobodyThere(t); }
  SECTION("refuses a taken address") { AddressTaken(t); }
  SECTION("answers what is in flight when a listener closes") { CloseWithCallsInFlight(t); }
  SECTION("closes under load") { CloseUnderLoad(t); }
  SECTION("finds a listener that came back") { Reopen(t); }
  SECTION("may be dropped inside a callback") { DropInsideCallback(t); }
}

}  // namespace strata::testing
