#include "tests/sim/async_cut_sim.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/runtime/base/executor.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/runtime/transport/transport.h"
#include "server/shard/request.h"
#include "server/shard/runner.h"
#include "tests/sim/async_cut_job.h"
#include "tests/sim/async_cut_parts.h"
#include "tests/sim/async_cut_scheduler.h"

namespace strata::sim {
namespace {

using cuts::Lane;
using cuts::Message;
using cuts::Shard;
using server::CutNumber;

constexpr uint64_t kPatience = 60000;
constexpr uint64_t kFaultsUntil = 1500;  // events; then all behaves
constexpr uint64_t kSilence = 200;       // events that the scheduler is gone for
constexpr int64_t kEventMs = 50;         // of the scheduler's clock

class Sim {
 public:
  explicit Sim(const AsyncCutOptions& options)
      : o_(options),
        job_(options),
        scheduler_(options),
        random_(options.seed),
        shards_(options.shards),
        lanes_(options.lanes) {
    for (uint32_t s = 0; s < o_.shards; ++s) StartShard(s);
  }
  ~Sim() {
    for (Shard& shard : shards_) StopShard(shard);
  }

  AsyncCutResult Run() {
    while (result_.error.empty() && !Done()) {
      if (++result_.events > kPatience) {
        Error("stuck");
        break;
      }
      Faults();
      Event();
    }
    for (const Shard& shard : shards_) Count(shard);
    result_.tries_of_last = scheduler_.tries_of_last();
    return result_;
  }

 private:
  bool Faulty() const { return result_.events < kFaultsUntil; }
  bool Chance(uint32_t in_1000) { return Faulty() && random_() % 1000 < in_1000; }
  void Error(std::string text) {
    if (result_.error.empty()) result_.error = std::move(text);
  }
  void Count(const Shard& shard) {
    const auto counters = shard.tables->counters();
    result_.hbm_updated += counters.hbm_updated;
    result_.hbm_evicted += counters.hbm_evicted;
  }
  void StartShard(uint32_t s) {
    Shard& shard = shards_[s];
    auto made = job_.MakeShard(s, &shard.log);
    absl::Status replayed = shard.log.Replay(0, [&](const auto& r) { return made->Replay(r); });
    if (!replayed.ok()) Error(std::string(replayed.message()));
    ++shard.incarnation;
    shard.told = shard.told_over = shard.said_over = 0;
    shard.tables = made.get();
    shard.executor = std::make_unique<ManualExecutor>();
    server::ShardRunner::Options options;
    options.timer = &timer_;
    options.committed = [] {};
    options.cut_done = [this, s](CutNumber cut, const server::ShardCut& c) { CutDone(s, cut, c); };
    shard.runner = std::make_unique<server::ShardRunner>(std::move(made), std::move(options));
    shard.runner->SetExecutor(shard.executor.get());
  }
  static void StopShard(Shard& shard) {
    shard.runner->SetExecutor(nullptr);
    shard.executor.reset();
    shard.runner.reset();
  }

  bool Done() const {
    for (const Lane& lane : lanes_) {
      if (lane.done.size() < o_.tasks_per_lane * o_.windows_per_task) return false;
    }
    // A last cut, which holds everything.
    return scheduler_.ended();
  }

  // --- the scheduler
  int64_t Now() const { return static_cast<int64_t>(result_.events) * kEventMs; }
  void Order() {
    bool everything = true, ready = true;
    for (const Lane& lane : lanes_) {
      everything &= lane.done.size() == o_.tasks_per_lane * o_.windows_per_task;
    }
    for (const Shard& shard : shards_) ready &= shard.said_over >= scheduler_.over();
    const CutNumber before = scheduler_.cut();
    const bool last = scheduler_.Plan(acknowledged_, everything, ready, Now());
    const CutNumber cut = scheduler_.cut();
    if (cut == before) return;
    if (cut <= newest_cut_) Error(absl::StrCat("cut ", cut, " comes twice"));
    newest_cut_ = cut;
    done_.clear();
    if (last) BeginLast();
  }
  // What befalls a try of the last cut from without.
  void BeginLast() {
    const auto s = static_cast<uint32_t>(random_() % o_.shards);
    const LastFault fault = scheduler_.fault();
    if (fault == LastFault::kNoPatience) shards_[s].runner->SetCuts({}, scheduler_.cut());
    if (fault == LastFault::kShardDies) KillShard(s);
    if (fault == LastFault::kLaneDies) KillLane(static_cast<uint32_t>(random_() % o_.lanes));
  }
  void Abort() { result_.aborted += scheduler_.Abort(); }

  void CutDone(uint32_t s, CutNumber cut, server::ShardCut c) {
    if (cut != scheduler_.cut()) return;
    using Outcome = server::ShardCut::Outcome;
    const LastFault fault = scheduler_.fault();
    const bool refuses = o_.pass_time > 0 || fault == LastFault::kNoPatience;
    if ((c.outcome == Outcome::kRefused && !refuses) ||
        (c.outcome == Outcome::kFailed && fault != LastFault::kNoFolder)) {
      // An aborted one's number never comes again, so nothing else can refuse.
      return Error(absl::StrCat("shard ", s, ", cut ", cut, ": ", c.message));
    }
    done_[s] = c;
    if (c.outcome == Outcome::kDone && (Chance(o_.fail_cut) || fault == LastFault::kFull)) {
      c.outcome = Outcome::kFailed;
      c.code = absl::StatusCode::kResourceExhausted;
    }
    scheduler_.Word(s, cut, c);
    for (const CutScheduler::Result& r : scheduler_.Settle(Now())) {
      result_.refused += r.outcome == CutScheduler::Outcome::kRefused;
      result_.aborted += r.outcome != CutScheduler::Outcome::kDone;
      if (r.outcome != CutScheduler::Outcome::kDone) continue;
      CheckCut(r.cut.cut(), r.cut.folder());
      ++result_.cuts;
    }
    if (scheduler_.given_up()) Error("the job fails");
  }

  void CheckCut(CutNumber number, const std::string& folder) {
    std::vector<std::set<Window>> of_the_dead;
    for (const Lane& lane : lanes_) of_the_dead.push_back(lane.of_the_dead);
    for (uint32_t s = 0; s < o_.shards; ++s) {
      const server::ShardCut& cut = done_[s];
      if (cut.marks != done_[0].marks) Error("shards have other marks of one cut");
      const std::string path = absl::StrCat(folder, "/", cut.files.back().name);
      const std::string wrong = job_.CheckCut(s, path, cut, of_the_dead);
      if (!wrong.empty()) Error(absl::StrCat("cut ", number, ": ", wrong));
    }
  }

  // --- faults
  void Faults() {
    if (o_.stop_scheduler > 0 && Chance(o_.stop_scheduler)) {
      silent_until_ = result_.events + kSilence;
    }
    if (o_.pass_time > 0 && Chance(o_.pass_time)) {
      timer_.Advance(server::CutBarrier::kPatience);
    }
    if (o_.impossible > 0 && Chance(o_.impossible)) NameNoCut();
    if (result_.kills >= o_.max_kills) return;
    if (Chance(o_.kill_shard)) KillShard(static_cast<uint32_t>(random_() % o_.shards));
    if (Chance(o_.kill_lane)) KillLane(static_cast<uint32_t>(random_() % o_.lanes));
  }
  void KillShard(uint32_t s) {
    Count(shards_[s]);
    StopShard(shards_[s]);
    StartShard(s);
    scheduler_.ForgetShard(s);
    Abort();
    ++result_.kills;
  }
  void KillLane(uint32_t l) {
    Lane& lane = lanes_[l];
    ++lane.incarnation;
    lane.of_the_dead.insert(lane.sent.begin(), lane.sent.end());
    lane.sent.clear();
    lane.open.clear();
    lane.wanted = lane.marked = 0;
    lane.mark_missing.clear();
    // The next host begins with the first task that is not done.
    lane.task = 0;
    while (lane.task < o_.tasks_per_lane && TaskDone(l, lane.task)) ++lane.task;
    lane.window = 0;
    std::erase_if(lane.done, [&](const Window& w) { return w.first >= job_.TaskOf(l, lane.task); });
    Abort();
    ++result_.kills;
  }
  // By a client that is wrong, or worse. What it says is refused before it is kept.
  void NameNoCut() {
    const auto s = static_cast<uint32_t>(random_() % o_.shards);
    const auto l = static_cast<uint32_t>(random_() % o_.lanes);
    const Lane& lane = lanes_[l];
    Shard& shard = shards_[s];
    while (shard.executor->RunOne()) {
    }
    const CutNumber least = shard.runner->view().cuts_over + 2;
    Message m{};
    m.kind = random_() % 2 == 0 || lane.task == o_.tasks_per_lane ? Message::kMark : Message::kPush;
    m.lane = l;
    m.shard = s;
    m.window = {job_.TaskOf(l, std::min(lane.task, o_.tasks_per_lane - 1)), lane.window};
    m.cut = random_() % 2 == 0 ? least + random_() % 3 : CutNumber{1} << 60;
    std::optional<absl::Status> answer;
    const auto reply = [&answer](const absl::StatusOr<Buffer>& r) { answer = r.status(); };
    Hand(m, reply);
    while (shard.executor->RunOne()) {
    }
    if (!answer || !absl::IsUnavailable(*answer)) {
      return Error(
          absl::StrCat("shard ", s, " took cut ", m.cut, ", ", least, " and above are none"));
    }
    ++result_.impossible;
  }
  bool TaskDone(uint32_t l, uint64_t ordinal) const {
    for (uint64_t w = 0; w < o_.windows_per_task; ++w) {
      if (!lanes_[l].done.contains({job_.TaskOf(l, ordinal), w})) return false;
    }
    return true;
  }

  // --- events
  void Event() {
    const uint64_t what = random_() % 16;
    const auto l = static_cast<uint32_t>(random_() % o_.lanes);
    const auto s = static_cast<uint32_t>(random_() % o_.shards);
    if (what < 8) return Deliver();
    if (what < 12) return Work(l);
    if (what == 12) return Resend(l);
    if (what > 12 && Faulty() && result_.events < silent_until_) return;
    if (what == 13) {  // the lane hears of the cut
      lanes_[l].wanted = std::max(lanes_[l].wanted, scheduler_.cut());
      return;
    }
    if (what == 14) return TellShard(s);
    if (random_() % 8 == 0) Order();
  }

  // What a shard has to do need not be done before the next event: windows come while a cut's file
  // is written.
  void Pump(Shard& shard) {
    while (random_() % 8 != 0 && shard.executor->RunOne()) {
    }
  }

  void TellShard(uint32_t s) {
    Shard& shard = shards_[s];
    shard.said_over = shard.runner->view().cuts_over;
    const CutNumber over = scheduler_.over(), cut = scheduler_.cut();
    if (shard.told == cut && shard.told_over == over) return Pump(shard);
    shard.told = cut;
    shard.told_over = over;
    std::vector<server::CutOrder> orders;
    if (cut != 0) orders.push_back({cut, Step(0), scheduler_.folder()});
    shard.runner->SetCuts(orders, over);
    Pump(shard);
  }

  void Work(uint32_t l) {
    Lane& lane = lanes_[l];
    if (lane.wanted > lane.marked) {
      if (!lane.open.empty()) return;  // first everything sent is acknowledged
      lane.marked = lane.wanted;
      lane.mark = {TaskId(job_.TaskOf(l, lane.task)), lane.window};
      for (uint32_t s = 0; s < o_.shards; ++s) lane.mark_missing.insert(s);
      return Resend(l);
    }
    if (lane.task == o_.tasks_per_lane || lane.open.size() >= o_.pipeline) return;
    const Window window{job_.TaskOf(l, lane.task), lane.window};
    if (++lane.window == o_.windows_per_task) {
      lane.window = 0;
      ++lane.task;
    }
    lane.sent.insert(window);
    auto& [cut, missing] = lane.open[window];
    cut = lane.marked;
    for (uint32_t s = 0; s < o_.shards; ++s) {
      missing.insert(s);
      Send({Message::kPush, l, lane.incarnation, s, 0, window, cut, {}});
    }
  }

  void Resend(uint32_t l) {
    const Lane& lane = lanes_[l];
    for (const uint32_t s : lane.mark_missing) {
      Send({Message::kMark, l, lane.incarnation, s, 0, {}, lane.marked, lane.mark});
    }
    for (const auto& [window, open] : lane.open) {
      for (const uint32_t s : open.second) {
        Send({Message::kPush, l, lane.incarnation, s, 0, window, open.first, {}});
      }
    }
  }

  // --- network
  void Send(Message m) {
    if (network_.size() < 400) network_.push_back(std::move(m));
  }
  void Deliver() {
    if (network_.empty()) return;
    const size_t at = random_() % network_.size();
    const Message m = network_[at];
    if (!Chance(o_.duplicate)) network_.erase(network_.begin() + static_cast<std::ptrdiff_t>(at));
    if (Chance(o_.drop)) return;
    // Sessions fence the dead: nothing of an earlier host is taken, nor told to a later one.
    if (m.lane_incarnation != lanes_[m.lane].incarnation) return;
    if (m.kind == Message::kPush || m.kind == Message::kMark) return Request(m);
    if (m.shard_incarnation != shards_[m.shard].incarnation && m.kind == Message::kMarked) return;
    Lane& lane = lanes_[m.lane];
    if (m.kind == Message::kMarked) {
      if (m.cut == lane.marked) lane.mark_missing.erase(m.shard);
      return;
    }
    const auto it = lane.open.find(m.window);
    if (it == lane.open.end()) return;
    it->second.second.erase(m.shard);
    if (!it->second.second.empty()) return;
    lane.done.insert(m.window);
    lane.open.erase(it);
    ++acknowledged_;
  }

  void Request(const Message& m) {
    Shard& shard = shards_[m.shard];
    Message answer = m;
    answer.kind = m.kind == Message::kPush ? Message::kPushed : Message::kMarked;
    answer.shard_incarnation = shard.incarnation;
    const bool began_again = shard.incarnation > 1;
    const auto reply = [this, answer, began_again](const absl::StatusOr<Buffer>& reply) {
      if (reply.ok()) Send(answer);
      const bool no_cut = !reply.ok() && absl::StrContains(reply.status().message(), "have begun");
      if (no_cut && !began_again) Error(absl::StrCat("a lane named cut ", answer.cut));
    };
    if (m.kind == Message::kPush) {
      result_.ahead += m.cut != 0 && m.cut == scheduler_.cut() && !done_.contains(m.shard);
    }
    Hand(m, reply);
    Pump(shard);
  }

  void Hand(const Message& m, DataReply reply) {
    Shard& shard = shards_[m.shard];
    if (m.kind == Message::kMark) {
      auto call = std::make_shared<server::MarkCall>(wire::ServerState{}, 1, std::move(reply));
      return shard.runner->Mark(std::move(call), m.lane, m.cut, m.mark);
    }
    wire::PushFields fields;
    fields.task = TaskId(m.window.first);
    fields.window = m.window.second;
    fields.cut = m.cut;
    fields.lane = LaneId(m.lane);
    server::PushPart part;
    part.updates.push_back(job_.UpdateOf(m.shard, m.window));
    shard.runner->Push(
        std::make_shared<server::PushCall>(wire::ServerState{}, fields, 1, std::move(reply)),
        std::move(part));
  }

  const AsyncCutOptions o_;
  const AsyncCutJob job_;
  CutScheduler scheduler_;
  std::mt19937_64 random_;
  ManualTimer timer_;
  std::vector<Shard> shards_;
  std::vector<Lane> lanes_;
  std::vector<Message> network_;
  CutNumber newest_cut_ = 0;
  uint64_t acknowledged_ = 0;  // windows
  uint64_t silent_until_ = 0;
  std::map<uint32_t, server::ShardCut> done_;
  AsyncCutResult result_;
};

}  // namespace

AsyncCutResult RunAsyncCuts(const AsyncCutOptions& options) { return Sim(options).Run(); }

}  // namespace strata::sim
