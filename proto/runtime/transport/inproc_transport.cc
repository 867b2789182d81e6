#include "proto/runtime/transport/inproc_transport.h"

#include <atomic>
#include <map>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/core/mutex.h"
#include "proto/runtime/base/timer.h"

namespace strata {
namespace {

// One call: whoever answers first (reply, deadline, closing) is heard, the rest is dropped.
class PendingCall {
 public:
  explicit PendingCall(DataReply done) : done_(std::move(done)) {}

  bool answered() const { return answered_.load(std::memory_order_acquire); }
  void Answer(absl::StatusOr<Buffer> result) {
    if (answered_.exchange(true, std::memory_order_acq_rel)) return;
    std::exchange(done_, nullptr)(std::move(result));
  }

 private:
  std::atomic<bool> answered_{false};
  DataReply done_;
};

using CallPtr = std::shared_ptr<PendingCall>;

// Answers calls whose time is over. One thread, started by the first call that has to wait; it
// shares ownership, because the answer that it gives may be what drops the transport's last owner.
class Deadlines : public std::enable_shared_from_this<Deadlines> {
 public:
  explicit Deadlines(Timer* timer) : timer_(timer) {}

  // Ends the thread. Call once; no Add may follow.
  void Stop() {
    std::thread thread;
    {
      MutexLock lock(&mu_);
      closing_ = true;
      thread.swap(thread_);
    }
    if (!thread.joinable()) return;
    if (thread.get_id() == std::this_thread::get_id()) {
      thread.detach();
    } else {
      thread.join();
    }
  }

  void Add(absl::Time when, absl::Duration timeout, CallPtr call) {
    if (when == absl::InfiniteFuture()) return;
    MutexLock lock(&mu_);
    if (!thread_.joinable()) {
      thread_ = std::thread([self = shared_from_this()] { self->Run(); });
    }
    changed_ = changed_ || waiting_.empty() || when < waiting_.begin()->first;
    waiting_.emplace(when, Entry{timeout, std::move(call)});
    // Answered calls leave no later than here: there are never more entries than twice the calls in
    // flight at the last sweep, and 64.
    if (waiting_.size() > 2 * live_ + 64) Sweep();
  }

 private:
  struct Entry {
    absl::Duration timeout;
    CallPtr call;
  };

  void Sweep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    for (auto it = waiting_.begin(); it != waiting_.end();) {
      it = it->second.call->answered() ? waiting_.erase(it) : std::next(it);
    }
    live_ = waiting_.size();
  }

  bool Woken() const ABSL_SHARED_LOCKS_REQUIRED(mu_) { return closing_ || changed_; }

  void Run() {
    std::vector<Entry> late;
    for (;;) {
      {
        MutexLock lock(&mu_);
        const absl::Time next = waiting_.empty() ? absl::InfiniteFuture() : waiting_.begin()->first;
        AwaitUntil(timer_, &mu_, absl::Condition(this, &Deadlines::Woken), next);
        if (closing_) return;
        changed_ = false;
        const absl::Time now = timer_->Now();
        while (!waiting_.empty() && waiting_.begin()->first <= now) {
          late.push_back(std::move(waiting_.begin()->second));
          waiting_.erase(waiting_.begin());
        }
      }
      for (const Entry& e : late) {
        e.call->Answer(absl::DeadlineExceededError(
            absl::StrCat("no reply within ", absl::FormatDuration(e.timeout))));
      }
      late.clear();
    }
  }

  Timer* const timer_;
  Mutex mu_;
  std::multimap<absl::Time, Entry> waiting_ ABSL_GUARDED_BY(mu_);
  size_t live_ ABSL_GUARDED_BY(mu_) = 0;  // unanswered entries at the last sweep
  bool changed_ ABSL_GUARDED_BY(mu_) = false;
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mu_);
};

// A listener's side; calls and replies under way share it.
class Endpoint : public std::enable_shared_from_this<Endpoint> {
 public:
  explicit Endpoint(DataHandler* handler) : handler_(handler) {}

  // Hands a call to the handler, in this thread.
  void Serve(const Caller& caller, DataMethod method, Buffer request, const CallPtr& call) {
    if (!Admit(call)) return call->Answer(Closed());
    handler_->Handle(caller, method, std::move(request),
                     [self = shared_from_this(), call](absl::StatusOr<Buffer> reply) {
                       self->Reply(call, std::move(reply));
                     });
    absl::MutexLock lock(&mu_);
    --running_;
  }

  // Answers what is under way and waits until no handler call runs.
  void Close() {
    std::set<CallPtr> left;
    {
      absl::MutexLock lock(&mu_);
      closed_ = true;
      left.swap(pending_);
    }
    for (const CallPtr& call : left) call->Answer(Closed());
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(this, &Endpoint::Idle));
  }

 private:
  static absl::Status Closed() { return absl::UnavailableError("the server is closing"); }

  bool Admit(const CallPtr& call) {
    absl::MutexLock lock(&mu_);
    if (closed_) return false;
    pending_.insert(call);
    ++running_;
    return true;
  }

  bool Idle() const ABSL_SHARED_LOCKS_REQUIRED(mu_) { return running_ == 0; }

  void Reply(const CallPtr& call, absl::StatusOr<Buffer> reply) {
    {
      absl::MutexLock lock(&mu_);
      pending_.erase(call);
    }
    if (reply.ok() && reply->size() > kMaxMessageBytes) {
      reply = absl::ResourceExhaustedError(absl::StrCat(
          "reply of ", reply->size(), " bytes, the limit of a message is ", kMaxMessageBytes));
    }
    call->Answer(std::move(reply));
  }

  DataHandler* const handler_;
  absl::Mutex mu_;
  std::set<CallPtr> pending_ ABSL_GUARDED_BY(mu_);
  int running_ ABSL_GUARDED_BY(mu_) = 0;  // calls of Handle that have not returned
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

// What a transport, its listeners and its channels share.
struct Core {
  explicit Core(InProcOptions o) : options(o) {}
  ~Core() { deadlines->Stop(); }

  std::shared_ptr<Endpoint> Find(const std::string& address) {
    absl::MutexLock lock(&mu);
    const auto it = endpoints.find(address);
    return it == endpoints.end() ? nullptr : it->second;
  }

  const InProcOptions options;
  const std::shared_ptr<Deadlines> deadlines = std::make_shared<Deadlines>(options.timer);
  absl::Mutex mu;
  std::map<std::string, std::shared_ptr<Endpoint>> endpoints ABSL_GUARDED_BY(mu);
};

class Listener : public DataListener {
 public:
  Listener(std::shared_ptr<Core> core, std::string address, std::shared_ptr<Endpoint> endpoint)
      : core_(std::move(core)), address_(std::move(address)), endpoint_(std::move(endpoint)) {}

  ~Listener() override {
    {
      absl::MutexLock lock(&core_->mu);
      core_->endpoints.erase(address_);
    }
    endpoint_->Close();
  }

  std::string address() const override { return address_; }

 private:
  const std::shared_ptr<Core> core_;
  const std::string address_;
  const std::shared_ptr<Endpoint> endpoint_;
};

class Channel : public DataChannel {
 public:
  Channel(std::shared_ptr<Core> core, std::string address, const Caller& caller)
      : core_(std::move(core)),
        address_(std::move(address)),
        caller_(std::make_shared<Caller>(caller)) {}

  void Call(DataMethod method, Buffer request, absl::Duration timeout, DataReply done) override {
    auto call = std::make_shared<PendingCall>(std::move(done));
    if (request.size() > kMaxMessageBytes) {
      return call->Answer(absl::ResourceExhaustedError(absl::StrCat(
          "request of ", request.size(), " bytes, the limit of a message is ", kMaxMessageBytes)));
    }
    const std::shared_ptr<Endpoint> endpoint = core_->Find(address_);
    if (endpoint == nullptr) {
      return call->Answer(absl::UnavailableError(
          absl::StrCat("nothing listens at \"", address_, "\" in this process")));
    }
    const absl::Time deadline = core_->options.timer->Now() + timeout;
    if (core_->options.executor == nullptr) {
      endpoint->Serve(*caller_, method, std::move(request), call);
      if (!call->answered()) core_->deadlines->Add(deadline, timeout, std::move(call));
      return;
    }
    core_->deadlines->Add(deadline, timeout, call);
    core_->options.executor->Post(
        [endpoint, caller = caller_, method, request = std::move(request), call]() mutable {
          if (!call->answered()) endpoint->Serve(*caller, method, std::move(request), call);
        });
  }

 private:
  const std::shared_ptr<Core> core_;
  const std::string address_;
  const std::shared_ptr<const Caller> caller_;
};

class Transport : public DataTransport {
 public:
  explicit Transport(InProcOptions options) : core_(std::make_shared<Core>(options)) {}

  absl::StatusOr<std::unique_ptr<DataListener>> Listen(const std::string& address,
                                                       DataHandler* handler) override {
    if (address.empty()) return absl::InvalidArgumentError("address \"\" is no name");
    auto endpoint = std::make_shared<Endpoint>(handler);
    {
      absl::MutexLock lock(&core_->mu);
      if (!core_->endpoints.emplace(address, endpoint).second) {
        return absl::AlreadyExistsError(
            absl::StrCat("address \"", address, "\" is already listened on"));
      }
    }
    return std::make_unique<Listener>(core_, address, std::move(endpoint));
  }

  std::shared_ptr<DataChannel> Connect(const DataPeer& peer, const Caller& caller) override {
    return std::make_shared<Channel>(core_, peer.address, caller);
  }

 private:
  const std::shared_ptr<Core> core_;
};

}  // namespace

std::unique_ptr<DataTransport> MakeInProcTransport(InProcOptions options) {
  return std::make_unique<Transport>(options);
}

}  // namespace strata
