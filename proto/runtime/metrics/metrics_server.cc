#include "proto/runtime/metrics/metrics_server.h"

// As Debian's library is built: classes differ by these.
#define CPPHTTPLIB_OPENSSL_SUPPORT
#define CPPHTTPLIB_ZLIB_SUPPORT
#define CPPHTTPLIB_BROTLI_SUPPORT

#include <fcntl.h>
#include <glog/logging.h>
#include <httplib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "proto/core/mutex.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/tls_context.h"
#include "proto/runtime/metrics/limited_connection.h"
#include "proto/runtime/metrics/open_connections.h"
#include "proto/runtime/transport/bind_policy.h"

namespace strata {
namespace {

constexpr char kContentType[] = "text/plain; version=0.0.4; charset=utf-8";
constexpr absl::Duration kListenAgain = absl::Seconds(1);

// The bytes of a connection, as httplib wants them.
class Bytes : public httplib::Stream {
 public:
  explicit Bytes(LimitedConnection& connection) : connection_(connection) {}

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, size_t size) override { return connection_.Read(to, size); }
  ssize_t write(const char* from, size_t size) override { return connection_.Write(from, size); }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return connection_.socket(); }

 private:
  LimitedConnection& connection_;
};

// httplib's threads, with no more waiting for them than are served.
class BoundedQueue : public httplib::TaskQueue {
 public:
  BoundedQueue(size_t threads, OpenConnections& open) : pool_(threads), open_(open) {}

  void enqueue(std::function<void()> serve) override {
    open_.AwaitPlace();
    pool_.enqueue([this, serve = std::move(serve)] {
      serve();
      open_.Leave();
    });
  }
  void shutdown() override { pool_.shutdown(); }

 private:
  httplib::ThreadPool pool_;
  OpenConnections& open_;
};

struct Serving {
  const MetricsServer::Options& options;
  OpenConnections& open;
};

// brotli at its best takes tens of milliseconds for a scrape; gzip does not.
void AllowGzipAlone(httplib::Request& request) {
  const bool gzip = absl::StrContains(request.get_header_value("Accept-Encoding"), "gzip");
  request.headers.erase("Accept-Encoding");
  if (gzip) request.headers.emplace("Accept-Encoding", "gzip");
}

// httplib::Server or SSLServer, but for how connections are read: those of httplib begin a new
// time limit with each byte, have none of the request's size, and look for the next request a
// hundred times a second.
template <typename Http>
class Limited : public Http {
 public:
  template <typename... Args>
  explicit Limited(const Serving& serving, const Args&... args) : Http(args...), s_(serving) {}

 private:
  bool process_and_close_socket(socket_t socket) override {
    bool served = false;
    if (s_.open.Add(socket)) {
      served = Serve(socket);
      s_.open.Remove(socket);
    }
    close(socket);
    return served;
  }

  bool Serve(int socket) {
    Timer* const timer = s_.options.timer;
    LimitedConnection connection(socket,
                                 {.deadline = timer->Now() + s_.options.connection_time,
                                  .read_bytes = MetricsServer::kRequestBytes},
                                 *timer);
    const bool served = Admit(connection) && Answer(connection);
    connection.End();
    return served;
  }

  bool Admit(LimitedConnection& connection) {
    if constexpr (std::is_base_of_v<httplib::SSLServer, Http>) {
      return connection.SecureAsServer(*this->ssl_context());
    }
    return true;
  }

  bool Answer(LimitedConnection& connection) {
    Bytes bytes(connection);
    bool closed = false;
    try {  // out of memory; whatever the library does not catch
      return this->process_request(bytes, /*close_connection=*/true, closed,
                                   [&](httplib::Request& request) {
                                     request.ssl = connection.tls();
                                     AllowGzipAlone(request);
                                   });
    } catch (const std::exception& e) {
      LOG(WARNING) << "metrics_request_failed error=\"" << e.what() << '"';
      return false;
    }
  }

  const Serving s_;
};

class MetricsServerImpl : public MetricsServer {
 public:
  explicit MetricsServerImpl(Options options)
      : o_(std::move(options)),
        rules_{.credentials = o_.credentials,
               .roles = {kRoles.begin(), kRoles.end()},
               .refused = [](const absl::Status& why) {
                 LOG_EVERY_T(WARNING, 10) << "metrics_refused error=\"" << why << '"';
               }} {}

  ~MetricsServerImpl() override {
    {
      MutexLock lock(&mu_);
      ending_ = true;
      if (listening_ >= 0) shutdown(listening_, SHUT_RDWR);
    }
    open_.EndAll();
    if (thread_.joinable()) thread_.join();
    MutexLock lock(&mu_);
    if (listening_ >= 0) close(listening_);
  }

  absl::Status Begin() {
    const auto place = ParseHostPort(o_.address);
    if (!place.ok()) return place.status();
    host_ = place->host;
    port_ = place->port;
    if (absl::Status s = MakeHttp(); !s.ok()) return s;
    http_->new_task_queue = [this] { return new BoundedQueue(kConnections, open_); };
    http_->set_socket_options([this](socket_t socket) { SetOptions(socket); });
    http_->set_payload_max_length(0);  // no request of ours has a body
    http_->Get("/metrics", [this](const httplib::Request&, httplib::Response& response) {
      response.set_content(o_.text(), kContentType);
    });
    if (absl::Status s = Bind(); !s.ok()) return s;
    thread_ = std::thread([this] { Listen(); });
    return absl::OkStatus();
  }

  uint16_t port() const override { return port_; }

 private:
  absl::Status MakeHttp() {
    const Serving serving{o_, open_};
    if (o_.credentials == nullptr) {
      http_ = std::make_unique<Limited<httplib::Server>>(serving);
      return absl::OkStatus();
    }
    absl::Status applied = absl::InternalError("OpenSSL makes no context for TLS");
    const std::function<bool(SSL_CTX&)> apply = [&](SSL_CTX& context) {
      applied = ApplyTlsRules(rules_, context);
      return applied.ok();
    };
    http_ = std::make_unique<Limited<httplib::SSLServer>>(serving, apply);
    return applied;
  }

  // httplib's own would let two processes have one port (SO_REUSEPORT).
  void SetOptions(int socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    MutexLock lock(&mu_);
    // Of our own, so that what ends it ends no other socket that got its number meanwhile.
    if (listening_ >= 0) close(listening_);
    listening_ = fcntl(socket, F_DUPFD_CLOEXEC, 0);
  }

  absl::Status Bind() {
    errno = 0;
    const int bound = port_ != 0 ? (http_->bind_to_port(host_, port_) ? port_ : -1)
                                 : http_->bind_to_any_port(host_);
    if (bound > 0) {
      port_ = static_cast<uint16_t>(bound);
      return absl::OkStatus();
    }
    const int error = errno;
    return absl::AlreadyExistsError(
        absl::StrCat(o_.address, " cannot be listened on (",
                     error == 0 ? "the host is none of this machine" : std::strerror(error), ")"));
  }

  // Accepts connections until the end, whatever the kernel says of one.
  void Listen() {
    while (true) {
      http_->listen_after_bind();
      absl::Status bound = absl::UnavailableError("connections cannot be accepted");
      LOG_IF(WARNING, !Ending()) << "metrics_not_listening address=" << o_.address;
      while (!bound.ok()) {
        if (AwaitEnding(kListenAgain)) return;
        bound = Bind();
      }
      MutexLock lock(&mu_);
      if (ending_) shutdown(listening_, SHUT_RDWR);
    }
  }

  bool Ending() {
    MutexLock lock(&mu_);
    return ending_;
  }
  bool AwaitEnding(absl::Duration time) {
    MutexLock lock(&mu_);
    return AwaitUntil(o_.timer, &mu_, absl::Condition(&ending_), o_.timer->Now() + time);
  }

  const Options o_;
  const TlsRules rules_;
  OpenConnections open_{kConnections};
  std::unique_ptr<httplib::Server> http_;
  std::string host_;
  uint16_t port_ = 0;
  std::thread thread_;
  Mutex mu_;
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  int listening_ ABSL_GUARDED_BY(mu_) = -1;  // the socket, once more
};

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(Options options) {
  auto server = std::make_unique<MetricsServerImpl>(std::move(options));
  if (absl::Status s = server->Begin(); !s.ok()) return s;
  return std::unique_ptr<MetricsServer>(std::move(server));
}

}  // namespace strata
