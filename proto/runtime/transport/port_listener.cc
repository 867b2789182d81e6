#include "proto/runtime/transport/port_listener.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"
#include "proto/core/mutex.h"
#include "proto/runtime/transport/open_sockets.h"

namespace strata {
namespace {

constexpr int kBacklog = 1024;
// When the process or the machine has no more files: before the next try.
constexpr int kNoFilesMs = 100;

absl::Status Errno(int error, const std::string& address) {
  const std::string text = absl::StrCat("cannot listen on \"", address, "\": ", strerror(error));
  switch (error) {
    case EADDRINUSE:
      return absl::AlreadyExistsError(
          absl::StrCat(text, "; another process has this port, choose another one or port 0"));
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(absl::StrCat(text, "; ports below 1024 need privileges"));
    case EMFILE:
    case ENFILE:
      return absl::ResourceExhaustedError(text);
    default:
      return absl::InvalidArgumentError(absl::StrCat(text, "; is it an address of this machine?"));
  }
}

void Set(int fd, int level, int option, int value) {
  setsockopt(fd, level, option, &value, sizeof(value));
}

// Half of the files that the process may open: its own ones need some, too.
size_t MostOf(size_t wanted) {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY) return wanted;
  return std::min(wanted, static_cast<size_t>(files.rlim_cur / 2));
}

class PortListenerImpl : public PortListener {
 public:
  explicit PortListenerImpl(const PortListenerOptions& options)
      : o_(options), most_(MostOf(options.connections)) {}

  ~PortListenerImpl() override {
    Close();
    for (const int fd : listening_) close(fd);
    for (const int fd : wake_) {
      if (fd >= 0) close(fd);
    }
  }

  // A name may stand for several addresses: none of them may be taken, one of them must be ours.
  absl::Status Bind() {
    const auto at = ParseHostPort(o_.address);
    if (!at.ok()) return at.status();
    if (pipe2(wake_, O_CLOEXEC) != 0) return Errno(errno, o_.address);
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE;
    addrinfo* found = nullptr;
    const int rc = getaddrinfo(at->host.c_str(), std::to_string(at->port).c_str(), &hints, &found);
    if (rc != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot listen on \"", o_.address, "\": ", gai_strerror(rc)));
    }
    int port = at->port, error = 0;
    for (const addrinfo* a = found; a != nullptr && error != EADDRINUSE; a = a->ai_next) {
      const int failed = BindOne(*a, port);
      if (failed != 0) error = failed;
    }
    freeaddrinfo(found);
    if (error == EADDRINUSE || listening_.empty()) return Errno(error, o_.address);
    address_ = absl::StrCat(o_.address.substr(0, o_.address.rfind(':') + 1), port);
    return absl::OkStatus();
  }

  void Accept(Take take) override {
    thread_ = std::thread([this, take = std::move(take)] { Run(take); });
  }

  void Close() override {
    if (!thread_.joinable()) return;
    [[maybe_unused]] const ssize_t n = write(wake_[1], "x", 1);
    thread_.join();
    for (const int fd : listening_) shutdown(fd, SHUT_RDWR);
  }

  const std::string& address() const override { return address_; }
  size_t open() const override {
    MutexLock lock(&mu_);
    return sockets_.Count();
  }
  uint64_t accepted() const override { return accepted_; }
  uint64_t refused() const override { return refused_; }

 private:
  // 0 or an errno. A free port that the first address got is the port of the others.
  int BindOne(const addrinfo& a, int& port) {
    sockaddr_storage at{};
    std::memcpy(&at, a.ai_addr, a.ai_addrlen);
    in_port_t& number = at.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(at).sin6_port
                                                 : reinterpret_cast<sockaddr_in&>(at).sin_port;
    number = htons(static_cast<uint16_t>(port));
    const int fd = socket(a.ai_family, a.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a.ai_protocol);
    if (fd < 0) return errno;
    Set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    socklen_t size = sizeof(at);
    if (bind(fd, reinterpret_cast<sockaddr*>(&at), a.ai_addrlen) != 0 ||
        listen(fd, kBacklog) != 0 ||
        getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size) != 0) {
      const int error = errno;
      close(fd);
      return error;
    }
    port = ntohs(number);
    listening_.push_back(fd);
    return 0;
  }

  void Run(const Take& take) {
    std::vector<pollfd> waits = {{wake_[0], POLLIN, 0}};
    for (const int fd : listening_) waits.push_back({fd, POLLIN, 0});
    bool files = true;
    while (true) {
      // Without files to accept with, the listening sockets are left alone for a moment.
      if (poll(waits.data(), files ? waits.size() : 1, files ? -1 : kNoFilesMs) < 0) continue;
      if (waits[0].revents != 0) return;
      const bool all = !std::exchange(files, true);
      for (size_t i = 1; i < waits.size(); ++i) {
        if (all || waits[i].revents != 0) files = AcceptOne(waits[i].fd, take) && files;
      }
    }
  }

  // False: there are no more files.
  bool AcceptOne(int listening, const Take& take) {
    const int fd = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      const bool none = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      if (none) LogNoFiles();
      return !none;
    }
    ++accepted_;
    if (!Enter(fd)) {
      ++refused_;
      close(fd);
      return true;
    }
    Set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    Set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(absl::ToInt64Milliseconds(o_.silence)));
    take(listening, fd);
    return true;
  }

  void LogNoFiles() {
    LOG_EVERY_T(WARNING, 10) << "connection_not_accepted address=" << address_
                             << " why=\"no files are left\" next=retry";
  }

  bool Enter(int fd) {
    MutexLock lock(&mu_);
    if (sockets_.Add(fd, most_) || STRATA_MUTATION("ports.connections_unbounded")) return true;
    LOG_EVERY_T(WARNING, 10) << "connection_refused address=" << address_ << " limit=" << most_
                             << " refused=" << refused_ + 1;
    return false;
  }

  const PortListenerOptions o_;
  const size_t most_;
  std::string address_;
  std::vector<int> listening_;  // constant after Bind
  int wake_[2] = {-1, -1};
  std::thread thread_;
  std::atomic<uint64_t> accepted_{0};
  std::atomic<uint64_t> refused_{0};
  mutable Mutex mu_;
  mutable OpenSockets sockets_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<PortListener>> PortListener::Listen(
    const PortListenerOptions& options) {
  if (absl::Status s = CheckBindAddress(options.address, options.scope); !s.ok()) return s;
  auto listener = std::make_unique<PortListenerImpl>(options);
  if (absl::Status s = listener->Bind(); !s.ok()) return s;
  return std::unique_ptr<PortListener>(std::move(listener));
}

}  // namespace strata
