// strata-scheduler: membership, jobs and recovery of a cluster. Numbered steps of its life:
//   1 flags, 2 folder, log and metrics (Daemon), 3 metadata, 4 gRPC, 5 wait for SIGTERM or SIGINT,
//   6 stop: calls that wait are answered, then everything closes. Nodes go on without it.
#include <glog/logging.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/runtime/base/timer.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/revoked_file.h"
#include "proto/runtime/daemon/daemon.h"
#include "proto/runtime/files/path_policy.h"
#include "proto/runtime/files/private_files.h"
#include "proto/runtime/files/rooted_files.h"
#include "proto/runtime/transport/bind_policy.h"
#include "proto/runtime/transport/process_tls.h"
#include "scheduler/own_concerns.h"
#include "scheduler/scheduler.h"
#include "scheduler/scheduler_service.h"
#include "scheduler/store/rocks_metadata_store.h"

namespace strata::scheduler {
namespace {

struct Flags {
  std::string listen = "127.0.0.1:7070";
  std::string directory = "./strata-scheduler";
  std::string address_file;
  std::string metrics_listen;
  std::string failpoints;
  std::vector<std::string> data_roots;
  int lease_ms = 10000;
  std::string certs;
  std::string revoked;
  std::vector<std::string> admins;
  bool insecure = false;
  bool restored = false;
};

std::vector<Metric> Metrics(const Scheduler& scheduler) {
  const SchedulerCounters c = scheduler.Counters();
  const auto number = [](uint64_t v) { return static_cast<double>(v); };
  return {
      {"strata_scheduler_syncs_total", "Reports of nodes.", number(c.syncs), true},
      {"strata_scheduler_fenced_total", "Reports refused because a newer process has the name.",
       number(c.fenced), true},
      {"strata_scheduler_metadata_appends_total", "Batches given to the metadata store.",
       number(c.appends), true},
      {"strata_scheduler_metadata_append_failures_total", "Batches that it did not take.",
       number(c.append_failures), true},
      {"strata_scheduler_live_servers", "Servers heard of within a lease.", number(c.live_servers),
       false},
      {"strata_scheduler_live_workers", "Workers heard of within a lease.", number(c.live_workers),
       false},
      {"strata_scheduler_jobs_pending", "Jobs that wait.", number(c.jobs_pending), false},
      {"strata_scheduler_jobs_running", "Jobs that train.", number(c.jobs_running), false},
      {"strata_scheduler_jobs_succeeded", "Jobs known that succeeded.", number(c.jobs_succeeded),
       false},
      {"strata_scheduler_jobs_failed", "Jobs known that failed.", number(c.jobs_failed), false},
      {"strata_scheduler_jobs_cancelled", "Jobs known that were cancelled.",
       number(c.jobs_cancelled), false},
      {"strata_scheduler_rollbacks", "Roll-backs of all jobs known.", number(c.rollbacks), false},
      {"strata_scheduler_under_replicated_jobs",
       "Unfinished jobs with shards that lack copies (spec.storage.replicas).",
       number(c.under_replicated), false},
      {"strata_scheduler_quarantined_jobs",
       "Copies that servers keep of jobs that nobody knows (strata nodes --quarantined).",
       number(c.quarantined), false},
  };
}

// Null: there is no list. `timer` and `own` outlive it.
absl::StatusOr<std::unique_ptr<RevokedFile>> OpenRevoked(const Flags& flags,
                                                         const std::shared_ptr<ProcessTls>& tls,
                                                         Timer* timer, OwnConcerns* own) {
  if (flags.revoked.empty()) return std::unique_ptr<RevokedFile>();
  if (tls == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--revoked ", flags.revoked, " without --certs: nobody shows a certificate; give --certs"));
  }
  return RevokedFile::Open({.path = flags.revoked,
                            .timer = timer,
                            .source = tls->source(),
                            .changed = [timer, own](const absl::Status& now) {
                              LOG_IF(WARNING, !now.ok()) << "revoked_unreadable error=\"" << now
                                                         << "\" next=list_before_stays";
                              LOG_IF(INFO, now.ok()) << "revoked_readable_again";
                              own->Note("RevokedUnreadable", now, timer->Now());
                            }});
}

// With certificates the key that signs session credentials lies there. One that is made is closed
// to others in any case: the next start may have certificates.
absl::Status KeepPrivate(const std::string& folder, bool certificates) {
  if (absl::Status s = MakePrivateFolder(folder); !s.ok() || !certificates) return s;
  const absl::Status closed = CheckPrivate(folder);
  if (!absl::IsPermissionDenied(closed)) return closed;
  return absl::PermissionDeniedError(absl::StrCat(
      folder, " is open to others, and holds the key that signs session credentials; close it: ",
      "chmod 700 ", folder));
}

Metric MetricOf(const RevokedFile& list) {
  return {"strata_scheduler_revoked_unreadable",
          "1: the file of revoked certificates is no good, and the list before it stays in force.",
          list.problem().ok() ? 0.0 : 1.0, false};
}

std::function<std::string()> TextOf(RevokedFile* revoked) {
  if (revoked == nullptr) return nullptr;
  return [revoked] { return revoked->Text(); };
}

absl::Status Serve(const Flags& flags, const std::string& program) {
  if (absl::Status s = ArmFailpointsFromText(flags.failpoints); !s.ok()) return s;
  const std::unique_ptr<Timer> timer = MakeTimer();
  OwnConcerns own;
  const auto tls =
      ProcessTls::Open({.folder = flags.certs,
                        .insecure = flags.insecure,
                        .role = Role::kScheduler,
                        .changed = [&own, timer = timer.get()](const absl::Status& now) {
                          own.Note("CertificateUnfit", now, timer->Now());
                        }});
  if (!tls.ok()) return tls.status();
  const auto revoked = OpenRevoked(flags, *tls, timer.get(), &own);
  if (!revoked.ok()) return revoked.status();
  const BindScope scope = ScopeOf(*tls, flags.insecure);
  // Before anything is made on disk.
  if (absl::Status s = CheckBindAddress(flags.listen, scope); !s.ok()) {
    return absl::Status(s.code(), absl::StrCat("--listen: ", s.message()));
  }
  auto paths = PathPolicy::Make(flags.data_roots);
  if (!paths.ok()) return paths.status();
  if (absl::Status s = RestrictFiles(*paths, {flags.directory}); !s.ok()) return s;
  auto daemon = Daemon::Start({.program = program,
                               .directory = flags.directory,
                               .metrics_listen = flags.metrics_listen,
                               .insecure = flags.insecure,
                               .credentials = *tls == nullptr ? nullptr : (*tls)->source()});
  if (!daemon.ok()) return daemon.status();
  const std::string metadata = absl::StrCat(flags.directory, "/metadata");
  if (absl::Status s = KeepPrivate(metadata, *tls != nullptr); !s.ok()) return s;
  auto store = OpenRocksMetadataStore(metadata);
  if (!store.ok()) return store.status();
  auto scheduler =
      Scheduler::Start({.store = *std::move(store),
                        .lease = absl::Milliseconds(flags.lease_ms),
                        .paths = *paths,
                        .credentials = *tls == nullptr ? nullptr : (*tls)->source(),
                        .revoked = TextOf(revoked->get()),
                        .admins = flags.admins,
                        .restored = flags.restored,
                        .log = [d = daemon->get()](const std::string& line) { d->Log(line); }});
  if (!scheduler.ok()) return scheduler.status();
  // Reflection asks nobody who he is.
  if (*tls == nullptr) grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  auto service = SchedulerService::Start({.scheduler = scheduler->get(),
                                          .address = flags.listen,
                                          .scope = scope,
                                          .tls = *tls,
                                          .owners = scheduler->get(),
                                          .lease = absl::Milliseconds(flags.lease_ms),
                                          .own_concerns = &own});
  if (!service.ok()) return service.status();
  (*daemon)->SetMetrics([s = scheduler->get(), list = revoked->get()] {
    std::vector<Metric> metrics = Metrics(*s);
    if (list != nullptr) metrics.push_back(MetricOf(*list));
    return metrics;
  });
  const std::string address = (*service)->address();
  std::printf("strata-scheduler listens on %s\n", address.c_str());
  std::fflush(stdout);
  const absl::Status end = (*daemon)->ServeUntilSignal(
      {flags.address_file, address,
       absl::StrCat("address=", address, " metrics=", (*daemon)->metrics_address(),
                    " lease_ms=", flags.lease_ms)});
  (*scheduler)->Stop();
  service->reset();
  return end;
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("strata-scheduler: membership, jobs and recovery of a Strata cluster");
  app.add_option("--listen", flags.listen, "host:port for nodes and clients; port 0: any")
      ->capture_default_str();
  app.add_option("--dir", flags.directory, "folder for metadata and logs")->capture_default_str();
  app.add_option("--address-file", flags.address_file,
                 "file that gets the address, with the real port");
  app.add_option("--metrics-listen", flags.metrics_listen,
                 "host:port for Prometheus; default: no metrics");
  app.add_option("--lease-ms", flags.lease_ms, "how long a node may be silent")
      ->check(CLI::Range(10, 3600000))
      ->capture_default_str();
  app.add_option("--data-root", flags.data_roots, kDataRootHelp)
      ->type_name("DIR")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--failpoints", flags.failpoints, "For tests: name=action[@hit][*hits];...");
  app.add_flag("--restored", flags.restored,
               "for one start: --dir comes from an older copy. Nodes are only heard for a lease; "
               "then jobs that the copy says go on begin again from their newest checkpoints");
  app.add_option("--certs", flags.certs,
                 "folder with ca.crt, tls.crt and tls.key of this process (strata certs issue), as "
                 "CERTS/scheduler/NAME/current: TLS, and everybody is asked who he is");
  app.add_option(
      "--revoked", flags.revoked,
      "file of certificates that count no more (CERTS/ca/revoked, or a copy of it); read "
      "again while this runs, and told to all nodes");
  app.add_option("--admins", flags.admins,
                 "operators who may decide about every job: names of their certificates")
      ->delimiter(',');
  app.add_flag("--insecure", flags.insecure, "allow addresses beyond loopback, without TLS");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  const absl::Status status = Serve(flags, argv[0]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "strata-scheduler: %s\n", std::string(status.message()).c_str());
  return DaemonExitCode(status);
}

}  // namespace
}  // namespace strata::scheduler

int main(int argc, char** argv) {
  strata::AllowTls13Alone();
  return strata::scheduler::Main(argc, argv);
}
