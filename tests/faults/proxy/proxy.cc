#include "tests/faults/proxy/proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>
#include <map>
#include <stdexcept>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/core/mutex.h"
#include "tests/faults/proxy/connection.h"
#include "tests/faults/proxy/detour.h"

namespace strata::testing {
namespace {

[[noreturn]] void Throw(const char* what) {
  throw std::runtime_error(absl::StrCat("proxy: ", what, ": ", std::strerror(errno)));
}

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

// Connected to "127.0.0.1:PORT"; -1: nobody listens.
int Dial(const std::string& to) {
  int port = 0;
  if (!absl::SimpleAtoi(to.substr(to.rfind(':') + 1), &port)) return -1;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(static_cast<uint16_t>(port));
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

bool Fits(const NetworkLink& link, const NetworkLink& of) {
  return (link.from.empty() || link.from == of.from) && (link.to.empty() || link.to == of.to);
}

struct Listener {
  int fd;
  NetworkLink link;
  bool detour;
};

class ProxyImpl : public Proxy {
 public:
  ProxyImpl() : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    detour_ = Listen({}, /*detour=*/true);
    thread_ = std::thread([this] { Run(); });
  }
  ~ProxyImpl() override {
    {
      MutexLock lock(&mu_);
      stop_ = true;
    }
    Wake();
    thread_.join();
    for (const Listener& l : listeners_) close(l.fd);
    close(wake_);
  }

  std::string detour() const override { return detour_; }
  std::string Lead(const NetworkLink& link) override { return Listen(link, /*detour=*/false); }

  uint64_t Begin(const NetworkLink& link, const NetworkFault& fault) override {
    MutexLock lock(&mu_);
    const uint64_t id = ++faults_;
    active_[id] = std::make_unique<ActiveFault>(id, fault, absl::Now());
    links_[id] = link;
    for (const auto& c : connections_) {
      if (Fits(link, c->link())) c->Add(active_[id].get());
    }
    Wake();
    return id;
  }

  FaultMet MetBy(uint64_t fault) const override {
    MutexLock lock(&mu_);
    if (const auto it = over_.find(fault); it != over_.end()) return it->second;
    return active_.at(fault)->met;
  }

  Traffic Passed(const NetworkLink& link) const override {
    MutexLock lock(&mu_);
    Traffic all;
    const auto add = [&](const NetworkLink& of, const Traffic& t) {
      if (!Fits(link, of)) return;
      all.connections += t.connections;
      all.requests += t.requests;
      all.replies += t.replies;
    };
    for (const auto& [of, t] : ended_) add({of.first, of.second}, t);
    for (const auto& c : connections_) add(c->link(), {1, c->passed(0), c->passed(1)});
    return all;
  }

 private:
  std::string Listen(const NetworkLink& link, bool detour) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_in address = Loopback(0);
    socklen_t size = sizeof address;
    if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        listen(fd, 128) != 0 ||
        getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      Throw("cannot listen");
    }
    MutexLock lock(&mu_);
    listeners_.push_back({fd, link, detour});
    Wake();
    return absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  }

  void Wake() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof one);
  }

  // 1 ends faults whose time is over, 2 waits for sockets or for the next moment at which there is
  // something to do, 3 takes new connections, 4 has each connection read and write.
  void Run() {
    std::vector<pollfd> polls;
    while (true) {
      absl::Duration wait = absl::Seconds(1);
      polls.assign(1, {wake_, POLLIN, 0});
      {
        MutexLock lock(&mu_);
        if (stop_) return;
        const absl::Time now = absl::Now();
        EndFaults(now);
        for (const Listener& l : listeners_) polls.push_back({l.fd, POLLIN, 0});
        for (const auto& [id, fault] : active_) wait = std::min(wait, fault->until - now);
        for (const auto& c : connections_) wait = std::min(wait, c->Want(now, polls));
      }
      const auto ms = static_cast<int>(absl::ToInt64Milliseconds(
          absl::Ceil(std::max(wait, absl::ZeroDuration()), absl::Milliseconds(1))));
      poll(polls.data(), polls.size(), ms);
      uint64_t count = 0;
      [[maybe_unused]] const ssize_t got = read(wake_, &count, sizeof count);
      MutexLock lock(&mu_);
      for (const Listener& l : listeners_) Accept(l);
      Move(absl::Now());
    }
  }

  void EndFaults(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    for (auto it = active_.begin(); it != active_.end();) {
      if (it->second->until > now) {
        ++it;
        continue;
      }
      for (const auto& c : connections_) c->End(it->second.get());
      FaultMet& met = over_[it->first] = it->second->met;
      met.over = true;
      links_.erase(it->first);
      it = active_.erase(it);
    }
  }

  void Accept(const Listener& l) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    while (true) {
      const int fd = accept4(l.fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd < 0) return;
      auto& c = connections_.emplace_back(std::make_unique<Connection>(fd, l.link, Dial));
      if (l.detour) {
        c->AwaitHead(kDetourHead);
      } else {
        Join(*c);
      }
    }
  }

  void Join(Connection& c) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    for (const auto& [id, link] : links_) {
      if (Fits(link, c.link())) c.Add(active_.at(id).get());
    }
  }

  void Move(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    for (auto it = connections_.begin(); it != connections_.end();) {
      Connection& c = **it;
      if (const std::string head = c.TakeHead(); !head.empty()) {
        c.SetLink({head.c_str(), head.c_str() + kDetourName});
        Join(c);
      }
      c.Move(now);
      if (!c.over()) {
        ++it;
        continue;
      }
      c.NoteOver();
      Traffic& t = ended_[{c.link().from, c.link().to}];
      ++t.connections;
      t.requests += c.passed(0);
      t.replies += c.passed(1);
      it = connections_.erase(it);
    }
  }

  const int wake_;
  std::string detour_;
  std::thread thread_;
  mutable Mutex mu_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<Listener> listeners_ ABSL_GUARDED_BY(mu_);
  std::list<std::unique_ptr<Connection>> connections_ ABSL_GUARDED_BY(mu_);
  uint64_t faults_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<uint64_t, std::unique_ptr<ActiveFault>> active_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, NetworkLink> links_ ABSL_GUARDED_BY(mu_);  // of the active ones
  std::map<uint64_t, FaultMet> over_ ABSL_GUARDED_BY(mu_);
  std::map<std::pair<std::string, std::string>, Traffic> ended_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

std::unique_ptr<Proxy> Proxy::Start() { return std::make_unique<ProxyImpl>(); }

}  // namespace strata::testing
