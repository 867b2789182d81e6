// What the three daemons have in common around their own work: a folder that is theirs alone, a
// log, metrics for Prometheus, an address for whoever started them, and an orderly end.
// Tested by tests/bad_input/bad_place_test.cc
// Tested by tests/proto/runtime/daemon/daemon_metrics_test.cc
#ifndef STRATA_PROTO_RUNTIME_DAEMON_DAEMON_H_
#define STRATA_PROTO_RUNTIME_DAEMON_DAEMON_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/credentials/credential_source.h"

namespace strata {

struct DaemonOptions {
  std::string program;         // argv[0], names the log
  std::string directory;       // made where missing; locked while the process lives
  std::string metrics_listen;  // host:port; empty: no metrics
  bool insecure = false;       // binding beyond loopback was asked for
  // For the address that the scheduler is told of metrics (advertised_host.h); the scheduler itself
  // has neither.
  std::string scheduler;
  std::string advertise;
  // Of the process: its metrics are then read by TLS alone, by members of its cluster, and may be
  // listened for anywhere. Null: plain HTTP.
  std::shared_ptr<CredentialSource> credentials;
};

// What main returns after `end`: 0; 2 where the command line asks for what is refused
// (INVALID_ARGUMENT, PERMISSION_DENIED); 4 where a certificate is no good (UNAUTHENTICATED); 1
// where the machine or another process did not let it.
int DaemonExitCode(const absl::Status& end);

// A number as a scrape shows it. Counters only grow. Those of one name differ in labels, and stand
// one after the other.
struct Metric {
  std::string name;  // strata_..., base units; counters end in _total
  std::string help;
  double value = 0;
  bool counter = false;
  std::vector<std::pair<std::string, std::string>> labels = {};
};

// Made first in main, on the main thread, before any other thread: signals are blocked in all of
// them.
class Daemon {
 public:
  // From the signal on. What closes may wait for files in a mount that hangs: the process then ends
  // without it, as killed, with the line "ends_at_once" in its log and exit code 1.
  static constexpr absl::Duration kEndWithin = absl::Seconds(10);

  // FAILED_PRECONDITION: the folder cannot be made or written, or another process holds it.
  // ALREADY_EXISTS: the metrics address is taken. PERMISSION_DENIED, INVALID_ARGUMENT: it is not
  // loopback without `insecure` or credentials, or no address. UNAVAILABLE: AdvertisedHost's. The
  // text says what to do.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(const DaemonOptions& options);
  virtual ~Daemon() = default;

  // Called at every scrape, from a thread of the metrics' port, until ServeUntilSignal returns.
  virtual void SetMetrics(std::function<std::vector<Metric>()> collect) = 0;
  // Where a scrape goes, with the real port, from other machines too; empty without metrics.
  virtual std::string metrics_address() const = 0;

  struct Ready {
    std::string address_file;  // gets `address`, in one piece; empty: none
    std::string address;
    std::string fields;  // "key=value ..." of the log's line "started"
  };
  // Tells whoever started this process that it is ready, blocks until SIGTERM, SIGINT or Fail, and
  // ends the metrics. Returns the `why` of Fail, or OK; FAILED_PRECONDITION: the file cannot be
  // written, at once.
  virtual absl::Status ServeUntilSignal(const Ready& ready) = 0;

  // One line of the form "event key=value ..." in the log. Any thread.
  virtual void Log(const std::string& line) = 0;

  // This process cannot go on: it ends as after a SIGTERM. Any thread; the first `why` counts.
  virtual void Fail(const absl::Status& why) = 0;

  // The same, at once, as killed: not even calls in flight are answered. Any thread.
  [[noreturn]] virtual void Die(const absl::Status& why) = 0;
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_DAEMON_DAEMON_H_
