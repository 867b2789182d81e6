#include "server/server.h"

#include <glog/logging.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <random>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "ops/mxcsr.h"
#include "proto/core/mutex.h"
#include "proto/runtime/base/backoff.h"
#include "proto/runtime/base/executor.h"
#include "proto/runtime/base/timer.h"
#include "proto/runtime/credentials/kept_revocations.h"
#include "proto/runtime/daemon/advertised_host.h"
#include "proto/runtime/files/machine_id.h"
#include "proto/runtime/files/node_cluster.h"
#include "proto/runtime/transport/certificate_report.h"
#include "server/copy_metrics.h"
#include "server/data_service.h"
#include "server/disk_room.h"
#include "server/folder_lock.h"
#include "server/job_keeper.h"
#include "server/protocol/life_cycle_counters.h"
#include "server/shard/request.h"
#include "storage/tier/row_tier.h"

namespace strata::server {
namespace {

constexpr absl::Duration kPollWhenBusy = absl::Milliseconds(20);
// Where shards have copies: a closed connection is told within half a second.
constexpr absl::Duration kPollOfCopies = absl::Milliseconds(150);
constexpr absl::Duration kCallSlack = absl::Seconds(2);  // beyond the wait asked for
// Waits before the next try; Spread makes them 2 s at most (Membership::kReturnTime).
constexpr absl::Duration kFirstBackoff = absl::Milliseconds(50);
constexpr absl::Duration kLastBackoff = absl::Milliseconds(1333);

class ServerImpl : public Server {
 public:
  ServerImpl(const ServerOptions& options, FolderLock lock, NodeCluster cluster)
      : options_(options),
        lock_(std::move(lock)),
        cluster_(std::move(cluster)),
        revoked_(options.directory, options.credentials,
                 [](const std::string& line) { LOG(ERROR) << line; }),
        threads_(options.threads > 0 ? options.threads : CoreCount()),
        incarnation_(DrawIncarnation()),
        machine_bytes_(options.machine_bytes > 0 ? options.machine_bytes
                                                 : ThisMachine().memory_bytes),
        memory_(options.request_bytes),
        pool_(MakeThreadPool(threads_, "shards", ops::RestoreExactFloatState)),
        disk_(MakeThreadPool(threads_, "files", BeginFileThread)),
        own_timer_(options.timer == nullptr ? MakeTimer() : nullptr),
        timer_(options.timer == nullptr ? own_timer_.get() : options.timer),
        disk_room_(options.directory, timer_),
        keeper_(KeeperOptions()) {}

  absl::Status Listen() {
    if (absl::Status s = keeper_.Begin(); !s.ok()) return s;
    if (!options_.disk_id.empty()) disk_room_.Begin();
    auto listener = options_.transport->Listen(options_.listen_address, &service_);
    if (!listener.ok()) return listener.status();
    listener_ = *std::move(listener);
    sync_ = std::thread([this] { SyncLoop(); });
    return absl::OkStatus();
  }

  ~ServerImpl() override {
    {
      MutexLock lock(&mu_);
      stopping_ = true;
    }
    if (sync_.joinable()) sync_.join();
    keeper_.CloseAll();  // answers what waits, so that the listener need not wait for it
    listener_.reset();
  }

  std::string address() const override {
    return AtHost(listener_->address(), options_.advertise_host);
  }
  std::vector<ServerMetric> Metrics() const override;

 private:
  // Sums and files of images and checkpoints are made in the time that requests leave: as a part of
  // the shards' own threads they would make those wait for whole slices of a busy machine's cores.
  static constexpr int kFileNiceness = 5;  // beside that of the process
  static void BeginFileThread() {
    ops::RestoreExactFloatState();
    // Linux: of this thread alone. Refused or not, it works.
    [[maybe_unused]] const int niceness = nice(kFileNiceness);
  }
  static size_t CoreCount() { return std::max(1u, std::thread::hardware_concurrency()); }
  static uint64_t DrawIncarnation() {
    std::random_device random;
    uint64_t drawn = 0;
    while (drawn == 0) drawn = (uint64_t{random()} << 32) | random();
    return drawn;
  }
  JobKeeper::Options KeeperOptions() {
    JobKeeper::Options keeper;
    keeper.root = options_.directory;
    keeper.name = options_.name;
    keeper.boot_id = options_.boot_id;
    keeper.log_direct_from_bytes = options_.log_direct_from_bytes;
    keeper.tier_memtable_bytes = options_.tier_memtable_bytes;
    keeper.make_gpu = options_.make_gpu;
    keeper.paths = options_.paths;
    keeper.job = {pool_.get(), disk_.get(),       timer_, &memory_, incarnation_,
                  &keys_,      options_.transport};
    keeper.service = &service_;
    return keeper;
  }

  NodeReport MakeReport(uint64_t session, uint64_t seen, absl::Duration wait) const;
  void SyncLoop();
  // Before any job of the directive is opened.
  void FollowCredentials(const NodeDirective& directive) {
    revoked_.Follow(directive.revoked());
    if (directive.unchanged()) return service_.HearScheduler();
    service_.SetSessionKeys({directive.session_keys().begin(), directive.session_keys().end()});
  }
  void Sleep(absl::Duration duration) {
    MutexLock lock(&mu_);
    AwaitUntil(timer_, &mu_, absl::Condition(&stopping_), timer_->Now() + duration);
  }
  bool stopping() {
    MutexLock lock(&mu_);
    return stopping_;
  }

  const ServerOptions options_;
  const FolderLock lock_;
  NodeCluster cluster_;      // of the thread that syncs
  KeptRevocations revoked_;  // as well
  CertificateReport certificate_{options_.credentials};
  const size_t threads_;
  const uint64_t incarnation_;
  const uint64_t machine_bytes_;
  RequestMemory memory_;
  KeyCounters keys_;
  const std::unique_ptr<Executor> pool_;
  const std::unique_ptr<Executor> disk_;
  const std::unique_ptr<Timer> own_timer_;  // null: it was given one
  Timer* const timer_;
  DiskRoom disk_room_;  // of the thread that syncs
  DataService service_{timer_};
  JobKeeper keeper_;  // its jobs use what stands above
  std::unique_ptr<DataListener> listener_;
  std::thread sync_;
  std::atomic<uint64_t> sync_failures_{0};
  Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
};

NodeReport ServerImpl::MakeReport(uint64_t session, uint64_t seen, absl::Duration wait) const {
  NodeReport report;
  report.set_session(session);
  report.set_name(options_.name);
  report.set_role(NodeRole::SERVER);
  report.set_incarnation(incarnation_);
  report.set_data_address(address());
  report.set_metrics_address(options_.metrics_address);
  report.set_cores(static_cast<uint32_t>(threads_));
  report.set_memory_given(options_.memory_bytes > 0);
  report.set_memory_bytes(options_.memory_bytes > 0 ? options_.memory_bytes : machine_bytes_);
  report.set_disk_given(options_.disk_bytes > 0);
  const DiskRoom::Use disk = disk_room_.Now();
  report.set_disk_bytes(options_.disk_bytes > 0 ? options_.disk_bytes : disk.free + disk.jobs);
  report.set_disk_id(options_.disk_id);
  report.set_disk_job_bytes(disk.jobs);
  report.set_gpu_given(options_.gpu_bytes > 0);
  report.set_gpu_bytes(options_.gpu_bytes > 0 ? options_.gpu_bytes : options_.machine_gpu_bytes);
  report.set_machine_id(options_.machine_id);
  report.set_zone(options_.zone);
  report.set_seen_version(seen);
  report.set_wait_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(wait)));
  report.set_pid(::getpid());
  report.set_device(options_.device);
  std::map<std::string, PeerTrouble> peers;  // a process is told once
  for (const auto& job : keeper_.Jobs()) {
    for (PeerTrouble& peer : job->peers()) {
      PeerTrouble& told = peers[peer.name()];
      if (told.name().empty() || peer.kind() == PeerTrouble::CLOSED) told = std::move(peer);
    }
  }
  for (auto& [name, peer] : peers) *report.add_peers() = std::move(peer);
  for (ServerJobReport& job : keeper_.Reports()) {
    const auto bytes = disk.by_job.find(job.job_uid());
    if (bytes != disk.by_job.end()) job.set_disk_bytes(bytes->second);
    *report.add_server_jobs() = std::move(job);
  }
  return report;
}

// Reports what is, follows what should be. Losing or repeating an answer does no harm.
void ServerImpl::SyncLoop() {
  uint64_t session = 0, seen = 0;
  absl::Duration lease = absl::Seconds(10);
  Backoff backoff({kFirstBackoff, kLastBackoff, options_.random});
  bool reachable = true, refusing = false;
  while (!stopping()) {
    keeper_.Tend();
    if (const std::string line = cluster_.Tend(timer_->Now()); !line.empty()) LOG(ERROR) << line;
    if (!options_.disk_id.empty()) disk_room_.Tend(keeper_.OwnFolders());
    absl::Duration most = keeper_.Busy() ? kPollWhenBusy : options_.sync_wait;
    if (keeper_.HasCopies()) most = std::min(most, kPollOfCopies);
    const absl::Duration wait = std::min({most, options_.sync_wait, lease / 4});
    NodeReport report = MakeReport(session, seen, wait);
    certificate_.AddTo(report);
    cluster_.AddTo(report);
    auto directive = options_.scheduler->Sync(report, wait + kCallSlack);
    if (absl::IsUnauthenticated(directive.status())) {
      LOG(WARNING) << "session_fenced session=" << session << " next=register";
      keeper_.Fence();
      session = seen = 0;
      Sleep(Spread(kFirstBackoff, options_.random));
      continue;
    }
    bool refused = absl::IsPermissionDenied(directive.status());
    if (directive.ok()) {
      const absl::Status s = cluster_.Follow({directive->cluster_id(), directive->term(),
                                              directive->start_id(), directive->transient()});
      refused = !s.ok();
      if (refused) directive = s;
    }
    if (refused) {
      ++sync_failures_;
      LOG_IF(ERROR, !refusing) << "scheduler_refused error=\"" << directive.status()
                               << "\" next=retry jobs=go_on";
      refusing = true;
      reachable = false;
      Sleep(backoff.OnFailure());
      continue;
    }
    if (!directive.ok()) {
      ++sync_failures_;
      if (absl::IsFailedPrecondition(directive.status()) && options_.on_replaced) {
        options_.on_replaced(directive.status());
      } else if (reachable) {
        LOG(WARNING) << "scheduler_unreachable error=\"" << directive.status()
                     << "\" next=retry jobs=go_on";
      }
      reachable = false;
      Sleep(backoff.OnFailure());
      continue;
    }
    if (!reachable) LOG(INFO) << "scheduler_reached_again";
    reachable = true;
    refusing = false;
    backoff.OnSuccess();
    if (directive->session() != session) {
      LOG(INFO) << "registered name=" << options_.name << " session=" << directive->session();
    }
    session = directive->session();
    seen = directive->version();
    if (directive->lease_ms() > 0) lease = absl::Milliseconds(directive->lease_ms());
    FollowCredentials(*directive);
    keeper_.Follow(*directive);
  }
}

void AddTo(storage::TierStats& sum, const storage::TierStats& s) {
  sum.asked_bytes += s.asked_bytes;
  sum.written_bytes += s.written_bytes;
  sum.read_bytes += s.read_bytes;
  sum.rows_asked += s.rows_asked;
  sum.live_bytes += s.live_bytes;
  sum.file_bytes += s.file_bytes;
  sum.memory_bytes += s.memory_bytes;
}

std::vector<ServerMetric> ServerImpl::Metrics() const {
  std::vector<ServerMetric> out;
  const auto counter = [&](std::string name, std::string help, double value) {
    out.push_back({absl::StrCat("strata_server_", name, "_total"), std::move(help), value, true});
  };
  const auto gauge = [&](std::string name, std::string help, double value) {
    out.push_back({absl::StrCat("strata_server_", name), std::move(help), value, false});
  };
  static constexpr const char* kMethods[kDataMethods] = {"open_session", "pull",     "push",
                                                         "mark",         "prefetch", "forward"};
  for (int m = 0; m < kDataMethods; ++m) {
    const DataService::Counters& c = service_.counters()[static_cast<size_t>(m)];
    counter(absl::StrCat(kMethods[m], "_requests"), "Requests received.", c.requests);
    counter(absl::StrCat(kMethods[m], "_errors"), "Requests answered with an error.", c.errors);
    counter(absl::StrCat(kMethods[m], "_request_bytes"), "Bytes received.", c.request_bytes);
    counter(absl::StrCat(kMethods[m], "_reply_bytes"), "Bytes sent.", c.reply_bytes);
    gauge(absl::StrCat(kMethods[m], "_in_flight"), "Requests that are not answered yet.",
          c.in_flight);
  }
  counter("pulled_keys", "Keys of pulls.", static_cast<double>(keys_.pulled));
  counter("pushed_keys", "Keys of pushes.", static_cast<double>(keys_.pushed));
  counter("device_pulled_keys", "Those of pulls whose rows went by a device's memory.",
          static_cast<double>(keys_.pulled_there));
  counter("device_pushed_keys", "Those of pushes whose sums did.",
          static_cast<double>(keys_.pushed_there));
  double rows = 0, dram = 0, refused = 0, commits = 0, ssd = 0, mismatches = 0, disk = 0;
  double hits = 0, absent = 0, written_back = 0, written_ahead = 0;
  double pinned = 0, hbm_rows = 0, hbm_bytes = 0, hbm_hits = 0, hbm_evicted = 0,
         hbm_written_back = 0, hbm_gathered = 0, hbm_updated = 0, hbm_extra_bytes = 0;
  double log_bytes = 0, images = 0, cut_written = 0, cut_total = 0, shards = 0, clipped = 0,
         admitted = 0, unadmitted = 0;
  std::array<double, kRemovalRules> removed{};
  storage::TierStats tiers;
  const auto jobs = keeper_.Jobs();
  for (const auto& job : jobs) {
    log_bytes += static_cast<double>(job->log_bytes());
    images += static_cast<double>(job->images_written());
    cut_written += static_cast<double>(job->cut_bytes().written);
    cut_total += static_cast<double>(job->cut_bytes().total);
    AddTo(tiers, job->tier_stats());
    for (const auto& shard : job->shards()) {
      const ShardView& v = shard->view();
      ++shards;
      rows += static_cast<double>(v.rows);
      dram += static_cast<double>(v.dram_bytes);
      refused += static_cast<double>(v.refused_rows);
      clipped += static_cast<double>(v.clipped_rows);
      admitted += static_cast<double>(v.admitted_keys);
      unadmitted += static_cast<double>(v.refused_keys);
      for (size_t r = 0; r < kRemovalRules; ++r) {
        removed[r] += static_cast<double>(v.removed_rows[r]);
      }
      commits += static_cast<double>(v.clock);
      pinned += static_cast<double>(v.pinned);
      hbm_rows += static_cast<double>(v.hbm_rows);
      hbm_bytes += static_cast<double>(v.hbm_bytes);
      hbm_hits += static_cast<double>(v.hbm_hits);
      hbm_evicted += static_cast<double>(v.hbm_evicted);
      hbm_written_back += static_cast<double>(v.hbm_written_back);
      hbm_gathered += static_cast<double>(v.hbm_gathered);
      hbm_updated += static_cast<double>(v.hbm_updated);
      hbm_extra_bytes += static_cast<double>(v.hbm_extra_bytes);
      hits += static_cast<double>(v.dram_hits);
      ssd += static_cast<double>(v.ssd_reads);
      absent += static_cast<double>(v.absent_reads);
      written_back += static_cast<double>(v.written_back);
      written_ahead += static_cast<double>(v.written_ahead);
      mismatches += static_cast<double>(v.lane_mismatches);
      disk += static_cast<double>(v.disk_errors);
    }
  }
  gauge("jobs", "Jobs that are open here.", static_cast<double>(jobs.size()));
  gauge("shards", "Shards that are open here.", shards);
  gauge("quarantined_jobs", "Jobs that no scheduler knows whose files are kept.",
        static_cast<double>(keeper_.quarantined()));
  gauge("rows", "Rows that exist, in any tier.", rows);
  gauge("dram_bytes", "Bytes of rows and index in DRAM.", dram);
  gauge("log_bytes", "Bytes of update log on disk.", log_bytes);
  gauge("request_bytes", "Bytes of requests held.", static_cast<double>(memory_.used()));
  gauge("request_limit_bytes", "Bytes of requests that may be held.",
        static_cast<double>(memory_.limit()));
  gauge("clock_steps", "Clocks of all shards (bsp: steps, async: windows), summed.", commits);
  gauge("refused_rows", "Rows of open jobs whose gradient was not finite.", refused);
  gauge("clipped_rows", "Rows of open jobs whose gradient was clipped.", clipped);
  gauge("admitted_keys", "Keys of open jobs that an admission filter gave a row.", admitted);
  gauge("unadmitted_gradients", "Gradients of open jobs dropped, as their key has no row yet.",
        unadmitted);
  constexpr const char* kRules[kRemovalRules] = {"", "ttl", "count", "score", "norm", "bytes"};
  for (size_t r = 1; r < kRemovalRules; ++r) {
    gauge(absl::StrCat("rows_removed_by_", kRules[r]),
          absl::StrCat("Rows of open jobs that the rule ", kRules[r], " removed."), removed[r]);
  }
  gauge("dram_hits", "Rows of open jobs that were referenced and found in memory.", hits);
  gauge("ssd_reads", "Rows of open jobs that were read from the SSD tier.", ssd);
  const double found = std::max(1.0, hbm_hits + hits + ssd);
  gauge("pinned_rows", "Rows that tickets keep in memory.", pinned);
  gauge("hbm_rows", "Rows in the GPU tier.", hbm_rows);
  gauge("hbm_bytes", "Bytes of memory of the GPU tier.", hbm_bytes);
  gauge("hbm_hits", "Rows of open jobs that were referenced and found in the GPU tier.", hbm_hits);
  gauge("hbm_hit_rate", "Share of referenced rows that were found in the GPU tier.",
        hbm_hits / found);
  gauge("hbm_evicted_rows", "Rows of open jobs that left the GPU tier.", hbm_evicted);
  gauge("hbm_written_back_rows", "Rows of open jobs written from the GPU tier below.",
        hbm_written_back);
  gauge("hbm_gathered_rows", "Rows of open jobs read where they lie in the GPU tier.",
        hbm_gathered);
  gauge("hbm_updated_rows", "Rows of open jobs updated there.", hbm_updated);
  gauge("hbm_extra_bytes", "Bytes of a GPU's memory beyond the GPU tier's limit: pre-images.",
        hbm_extra_bytes);
  gauge("dram_hit_rate", "Share of referenced rows that were found in memory.", hits / found);
  gauge("ssd_hit_rate", "Share of referenced rows that were found in the SSD tier.", ssd / found);
  gauge("written_back_rows", "Rows of open jobs written to the SSD tier.", written_back);
  gauge("written_ahead_rows", "Those of them written in the background.", written_ahead);
  gauge("absent_reads", "Rows of open jobs that were looked for and do not exist.", absent);
  gauge("ssd_asked_bytes", "Bytes of rows of open jobs given to the SSD tier.", tiers.asked_bytes);
  gauge("ssd_written_bytes", "Bytes that the SSD tier wrote to disk for them.",
        tiers.written_bytes);
  gauge("ssd_write_amplification", "Bytes written to disk per byte given to the SSD tier.",
        tiers.WriteAmplification());
  gauge("ssd_live_bytes", "Bytes of rows in the SSD tier, about.", tiers.live_bytes);
  gauge("ssd_file_bytes", "Bytes of the SSD tier's files.", tiers.file_bytes);
  gauge("ssd_space_amplification", "Bytes of files per byte of rows in the SSD tier.",
        tiers.SpaceAmplification());
  gauge("ssd_read_bytes", "Bytes read from disk to look rows up in the SSD tier.",
        tiers.read_bytes);
  gauge("ssd_read_bytes_per_row", "Bytes read from disk per row looked up in the SSD tier.",
        tiers.ReadBytesPerRow());
  gauge("ssd_index_bytes", "Memory of the SSD tier's indexes and filters.", tiers.memory_bytes);
  gauge("images", "Base images written by open jobs.", images);
  gauge("cut_written_bytes", "Bytes written of checkpoints that are not whole yet.", cut_written);
  gauge("cut_bytes", "Bytes that their files will have, as far as that is known.", cut_total);
  gauge("differing_contributions", "Repeated contributions that differ from the first.",
        mismatches);
  gauge("disk_errors", "Commits, cuts and reads that met an error of the disk.", disk);
  std::vector<CopyView> copies;
  for (const auto& job : jobs) {
    if (!job->is_copy()) continue;
    copies.push_back(
        {job->plan().job, job->plan().server_index, job->copy_role(), job->Report().copy()});
  }
  AddCopyMetrics(copies, out);
  counter("sync_failures", "Calls to the scheduler that failed.",
          static_cast<double>(sync_failures_.load()));
  return out;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options) {
  if (options.name.empty() || options.directory.empty()) {
    return absl::InvalidArgumentError("a server needs a name and a directory");
  }
  if (options.make_gpu && options.device.empty()) {
    return absl::InvalidArgumentError("a server with a GPU tier has to name its device");
  }
  if (options.tier_memtable_bytes > 0 &&
      options.tier_memtable_bytes < ServerOptions::kLeastMemtableBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a memtable of ", options.tier_memtable_bytes, " bytes; it must have at least ",
        ServerOptions::kLeastMemtableBytes, ", or 0 for the default"));
  }
  auto lock = FolderLock::Take(options.directory);
  if (!lock.ok()) return lock.status();
  auto cluster = NodeCluster::Open(options.directory);
  if (!cluster.ok()) return cluster.status();
  auto server = std::make_unique<ServerImpl>(options, *std::move(lock), *std::move(cluster));
  if (absl::Status s = server->Listen(); !s.ok()) return s;
  return server;
}

}  // namespace strata::server
