#include "tests/faults/matrix/struck_cluster.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdio>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/core/ids.h"
#include "tests/e2e/cluster/row_updates.h"
#include "tests/e2e/cluster/small_job.h"

namespace strata::testing {
namespace {

constexpr int kLeaseMs = 2000;
// Where clocks are set nobody may be missed: so long that a busy machine misses nobody who is
// there, and shorter than what clocks are set by.
constexpr int kClocksLeaseMs = 60'000;
constexpr uint32_t kLanes = 4, kWindow = 4;

// Long enough for all blows of a scene.
TrainingJob JobOf(const StruckCluster::Options& o) {
  const Mode mode = o.mode;
  const std::string& folder = o.folder;
  TrainingJob job = SmallJob(folder);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_replicas()->set_servers(2);
  spec.mutable_replicas()->set_workers(2);
  spec.mutable_checkpoint()->set_directory(folder + "/checkpoints");
  TrainingSpec& training = *spec.mutable_training();
  training.set_mode(NameOf(mode));
  const uint32_t epochs = mode == Mode::kBsp ? 24 : mode == Mode::kAsync ? 20 : 70;
  // What is lost and copied again takes longer than a blow; who loses nothing needs less.
  training.set_epochs(o.copies ? 2 * epochs : o.own_clocks ? epochs / 2 : epochs);
  if (mode == Mode::kDownpour) {
    training.set_n_fetch(kWindow);
    training.set_n_push(kWindow);
  }
  if (mode == Mode::kEasgd) training.set_tau(kWindow);
  return job;
}

std::vector<std::string> WithOwnClocks(bool own_clocks) {
  if (!own_clocks) return {};
  return {"scheduler", "server-0", "server-1", "worker-0", "worker-1"};
}

}  // namespace

StruckCluster::StruckCluster(const Options& options)
    : o_(options),
      clocks_(options.folder, WithOwnClocks(options.own_clocks)),
      cluster_({.servers = options.copies ? 3 : 2,
                .folder = options.folder + "/cluster",
                .lease_ms = options.own_clocks ? kClocksLeaseMs : kLeaseMs,
                .variables = {"LD_PRELOAD=" + Program("tests/faults/proxy/libdetour.so"),
                              "STRATA_DETOUR=" + proxy_->detour()},
                .places = clocks_.places()}),
      random_(options.seed),
      calm_job_(JobOf(options)) {
  const absl::Time begin = absl::Now();
  job_ = cluster_.Submit(calm_job_, false, /*overwrite=*/true);
  calm_ = cluster_.AwaitEnd(job_);
  std::fprintf(stderr, "%s, seed %llu; calm: %.2f s, %llu steps\n", NameOf(o_.mode),
               static_cast<unsigned long long>(o_.seed), absl::ToDoubleSeconds(absl::Now() - begin),
               static_cast<unsigned long long>(calm_.step()));
  Judge(calm_);
}

bool StruckCluster::Over(const JobStatus& s) {
  return s.state() == SUCCEEDED || s.state() == FAILED || s.state() == CANCELLED;
}

TrainingJob StruckCluster::JobNow() const {
  TrainingJob job = calm_job_;
  JobSpec& spec = *job.mutable_spec();
  if (phase_ == Phase::kCheckpoint) {
    spec.mutable_checkpoint()->set_every_steps(8);
    spec.mutable_checkpoint()->set_keep(2);
  }
  if (phase_ == Phase::kImage || phase_ == Phase::kRecovery) {
    spec.mutable_storage()->set_log_bytes_per_server("64KiB");
  }
  if (o_.copies) {
    spec.mutable_storage()->set_durability("replicated");
    spec.mutable_storage()->set_replicas(2);
  }
  return job;
}

std::string StruckCluster::Name(Role role) {
  if (role == Role::kScheduler) return NameOf(role);
  return absl::StrCat(NameOf(role), "-", random_() % (role == Role::kServer && o_.copies ? 3 : 2));
}

std::string StruckCluster::Other(Role role, const std::string& name) {
  std::string other = Name(role);
  while (other == name) other = Name(role);
  return other;
}

void StruckCluster::Begin(const std::string& marker, const std::string& failpoints) {
  begun_at_ = absl::Now();
  cluster_.Kill(marker);
  cluster_.Start(marker, failpoints);
  cluster_.AwaitRegistered();
  job_ = cluster_.Submit(JobNow(), false, /*overwrite=*/true);
}

bool StruckCluster::StandsStill(const std::string& marker) {
  JobRef ref;
  ref.set_job(job_);
  std::string last = "nothing was heard of the job";
  for (uint64_t looks = 1; !cluster_.process(marker).Stopped(); ++looks) {
    absl::SleepFor(absl::Milliseconds(2));
    if (looks % 250 != 0) continue;
    // The scheduler may stand still itself.
    const auto now = cluster_.scheduler().GetJob(ref, absl::Seconds(1));
    if (now.ok()) last = Conditions(*now);
    INFO(marker << " does not stand still again: " << last);
    REQUIRE(looks < 30'000);
    if (now.ok() && Over(*now)) return false;
  }
  return true;
}

void StruckCluster::Strike(Role role, Blow blow, const std::string& marker,
                           const std::string& again) {
  const bool alike = absl::StartsWith(marker, NameOf(role));
  const bool itself = alike && (!o_.copies || random_() % 2 == 0);
  const std::string victim = itself ? marker : Other(role, marker);
  ChildProcess& stands = cluster_.process(marker);
  if (blow == Blow::kProxy) {
    StrikeNetwork(role, victim);
    stands.Signal(SIGCONT);
    return;
  }
  std::fprintf(stderr, "  %s of %s, %.2f s\n", NameOf(blow), victim.c_str(),
               absl::ToDoubleSeconds(absl::Now() - begun_at_));
  matrix_.Count({role, phase_, o_.mode}, blow);
  if (blow == Blow::kKill) {
    cluster_.Kill(victim);
    cluster_.Start(victim, alike ? again : "");
    if (!itself) stands.Signal(SIGCONT);
    // There again; as the marker it may stand still again before it answers.
    if (role == Role::kScheduler && !itself) cluster_.Status(job_);
    return;
  }
  // One in four beyond the lease.
  const int ms = random_() % 4 == 0 ? kLeaseMs * 5 / 4 : static_cast<int>(50 + random_() % 300);
  if (!itself) {
    cluster_.process(victim).Signal(SIGSTOP);
    cluster_.AwaitStopped(victim);
    stands.Signal(SIGCONT);
  }
  const absl::Time until = absl::Now() + absl::Milliseconds(ms);
  AwaitThat("the standstill to be over", [&] {
    if (o_.copies) ReleaseBut(victim);
    return absl::Now() >= until;
  });
  cluster_.process(victim).Signal(SIGCONT);
}

NetworkLink StruckCluster::LinkOf(Role role, const std::string& victim) {
  if (role == Role::kScheduler) return {"", cluster_.address()};
  // Its connections to everybody. A server makes one to the scheduler alone, and who recovers is
  // not talked to.
  if (role == Role::kWorker || phase_ == Phase::kRecovery || random_() % 4 == 0) {
    return {victim, ""};
  }
  return {"", cluster_.ServerAddress(victim)};
}

NetworkFault StruckCluster::NextFault(bool may_flip) {
  const auto next = [&] {
    return std::find_if(kinds_.begin(), kinds_.end(), [may_flip](FaultKind kind) {
      return may_flip || kind != FaultKind::kFlip;
    });
  };
  if (next() == kinds_.end()) {
    const auto more = kinds_.insert(kinds_.end(), std::begin(kFaultKinds), std::end(kFaultKinds));
    std::shuffle(more, kinds_.end(), random_);
  }
  const FaultKind kind = *next();
  kinds_.erase(next());
  return DrawFault(kind, random_);
}

void StruckCluster::StrikeNetwork(Role role, const std::string& victim) {
  NetworkLink link = LinkOf(role, victim);
  // Bits are turned where they have a checksum.
  const bool of_workers = role == Role::kWorker && phase_ != Phase::kRecovery;
  NetworkFault fault = NextFault(of_workers || (role == Role::kServer && !link.to.empty()));
  if (fault.kind == FaultKind::kFlip && link.to.empty()) {
    link.to = cluster_.ServerAddress(Name(Role::kServer));
  }
  // Some until the silence is noticed, and lanes are given to others.
  if (random_() % 8 == 0) fault.lasts += kLeaseMs * absl::Milliseconds(5) / 4;
  std::fprintf(stderr, "  %s of %s, %.2f s: %s -> %s: %s\n", NameOf(Blow::kProxy), victim.c_str(),
               absl::ToDoubleSeconds(absl::Now() - begun_at_),
               link.from.empty() ? "all" : link.from.c_str(),
               link.to.empty() ? "all" : link.to.c_str(), fault.ToText().c_str());
  begun_.push_back({proxy_->Begin(link, fault), {role, phase_, o_.mode}, fault.kind});
}

void StruckCluster::CountNetworkFaults() {
  for (const Begun& b : std::exchange(begun_, {})) {
    FaultMet met;
    AwaitThat("the end of a network's fault", [&] {
      met = proxy_->MetBy(b.fault);
      return met.over;
    });
    if (met.connections == 0) continue;
    matrix_.Count(b.cell, Blow::kProxy);
    ++network_faults_[b.kind];
    flips_ += met.flips;
  }
}

Blow StruckCluster::BlowOf(int turn) const {
  return turn < o_.kills ? Blow::kKill : turn < o_.kills + o_.stops ? Blow::kStop : Blow::kProxy;
}

void StruckCluster::Run(const Scene& scene) {
  INFO(NameOf(o_.mode) << ", " << NameOf(scene.phase) << " at " << scene.failpoint << ", seed "
                       << o_.seed);
  const std::string marker = Name(scene.marker), armed = ArmedFor(scene);
  phase_ = scene.phase;
  Begin(marker, armed);
  for (int turn = 0; turn < Turns(); ++turn) {
    for (const Role role : scene.struck) {
      if (!StandsStill(marker)) {
        // Others have done all of it, as the marker was away for long.
        End();
        Begin(marker, armed);
        REQUIRE(StandsStill(marker));
      }
      Strike(role, BlowOf(turn), marker, armed);
    }
  }
  if (StandsStill(marker)) {
    Strike(scene.marker, Blow::kKill, marker, "");
  } else {
    cluster_.KillAndStart({marker});  // or it stands still in the next job
  }
  End();
  std::fprintf(stderr, "%s, %s at %s of %s: %.2f s\n", NameOf(o_.mode), NameOf(scene.phase),
               scene.failpoint, marker.c_str(), absl::ToDoubleSeconds(absl::Now() - begun_at_));
}

void StruckCluster::RunRecovery() {
  INFO(NameOf(o_.mode) << ", recovery, seed " << o_.seed);
  const std::string marker = Name(Role::kServer), pushes = "server.push=stop@24*1";
  phase_ = Phase::kRecovery;
  Begin(marker, pushes);
  for (const Blow blow : kBlows) {
    for (const Role role : kRoles) {
      // Each recovery begins where pushes came, and ends where they come again.
      REQUIRE(StandsStill(marker));
      phase_ = Phase::kPush;
      Strike(Role::kServer, Blow::kKill, marker,
             absl::StrCat("server.recover=stop@", 1 + random_() % 4, "*1;", pushes));
      REQUIRE(StandsStill(marker));
      phase_ = Phase::kRecovery;
      Strike(role, blow, marker, pushes);
    }
  }
  REQUIRE(StandsStill(marker));
  phase_ = Phase::kPush;
  Strike(Role::kServer, Blow::kKill, marker, "");
  End();
  std::fprintf(stderr, "%s, recovery of %s: %.2f s\n", NameOf(o_.mode), marker.c_str(),
               absl::ToDoubleSeconds(absl::Now() - begun_at_));
}

void StruckCluster::End() {
  Judge(cluster_.AwaitEnd(job_));
  CountNetworkFaults();
  cluster_.AwaitRegistered();
}

// How often workers of the job changed after its start: each time lanes go from one to another.
uint64_t StruckCluster::WorkerChanges() {
  GetEventsRequest request;
  request.mutable_job()->set_job(job_);
  auto events = cluster_.scheduler().GetEvents(request, absl::Seconds(10));
  REQUIRE(events.ok());
  uint64_t changes = 0;
  for (const Event& e : events->events()) {
    changes += e.reason() == "WorkerLost" || e.reason() == "WorkerRestarted" ||
               e.reason() == "WorkerJoined";
  }
  return changes;
}

void StruckCluster::Judge(const JobStatus& end) {
  INFO(Conditions(end));

  CHECK(end.state() == SUCCEEDED);
  CHECK(end.rollbacks() == 0);
  CHECK(end.examples() == end.total_examples());
  CHECK(end.step() == calm_.step());
  if (o_.mode == Mode::kBsp) {
    CHECK(end.model_hash() == calm_.model_hash());
    CHECK(end.result().auc() == calm_.result().auc());
    return;
  }
  // Every window pushes to every row of the dense table.
  const auto updates = RowUpdates(end.checkpoint(), TableId(1));
  CHECK(updates.size() > 5);
  for (const auto& [position, count] : updates) CHECK(count == calm_.step());
  const uint64_t lost = o_.mode == Mode::kAsync ? 0 : WorkerChanges() * kLanes * kWindow;
  CHECK(end.lost_local_steps() <= lost);
}

}  // namespace strata::testing
