// Stands between two processes on loopback, passes on what either says, and falls silent when it is
// told to: from then on it swallows all bytes and closes nothing, as a network that drops packets.
#ifndef STRATA_TESTS_PROTO_RUNTIME_TRANSPORT_SILENT_PROXY_H_
#define STRATA_TESTS_PROTO_RUNTIME_TRANSPORT_SILENT_PROXY_H_

#include <atomic>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

namespace strata::testing {

// One thread of its own.
class SilentProxy {
 public:
  // Passes to `to` ("127.0.0.1:port").
  explicit SilentProxy(const std::string& to);
  ~SilentProxy();
  SilentProxy(const SilentProxy&) = delete;
  SilentProxy& operator=(const SilentProxy&) = delete;

  const std::string& address() const { return address_; }
  void FallSilent() { silent_ = true; }
  int connections() const { return connections_; }

 private:
  void Run();
  void Accept();
  // Passes on what one end has said; false: it has closed.
  bool Pass(size_t end);

  const int port_;
  int listen_ = -1;
  int wake_[2] = {-1, -1};
  std::string address_;
  std::atomic<bool> silent_{false};
  std::atomic<int> connections_{0};
  std::vector<int> ends_;  // by pairs: who connected, and whom it was connected to
  std::thread thread_;
};

}  // namespace strata::testing

#endif  // STRATA_TESTS_PROTO_RUNTIME_TRANSPORT_SILENT_PROXY_H_
