#include "worker/bsp/trainer.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <utility>
#include <vector>

#include "proto/core/lane_tree.h"
#include "proto/core/mutation.h"
#include "worker/bsp/cohort.h"
#include "worker/bsp/cohort_step.h"
#include "worker/bsp/lane_driver.h"
#include "worker/bsp/lane_sums.h"
#include "worker/bsp/part_answers.h"
#include "worker/bsp/pull_answers.h"
#include "worker/bsp/row_exchange.h"
#include "worker/client/mailbox.h"
#include "worker/client/push_sequences.h"
#include "worker/client/retry_policy.h"
#include "worker/client/server_session.h"
#include "worker/metrics/stage_times.h"
#include "worker/step/gradient.h"

namespace strata {
namespace {

constexpr uint32_t kWaitMs = 5000;

class Trainer : public BspTrainer {
 public:
  explicit Trainer(const BspTrainerOptions& options)
      : o_(options),
        mailbox_(std::make_shared<Mailbox>()),
        driver_(o_.links->servers(), o_.plan->last_step),
        session_(SessionOptions()),
        pushes_(o_.links->servers()),
        sequences_(o_.sequences),
        gradients_(o_.plan->tables.tables),
        rows_(o_.plan, o_.exchange, o_.rows, &session_.machine(), o_.parallel, o_.stats),
        cohort_step_(o_.exchange, o_.model, o_.parallel, o_.stats, o_.preparer,
                     o_.plan->last_step) {}

  absl::Status Run() override {
    while (!stop_.load(std::memory_order_relaxed)) {
      HostWhenOpen();
      for (const Action& action : driver_.Next()) {
        if (absl::Status s = Execute(action); !s.ok()) return s;
      }
      if (!failure_.ok()) return failure_;
      if (finished_) return absl::OkStatus();
      if (progressed_) {
        progressed_ = false;
        mailbox_->Run();  // the tickets of what was announced
        if (!failure_.ok()) return failure_;
        continue;
      }
      const InStage pull(&clock_, Stage::kPull);  // nearly always its reply is what is waited for
      session_.Wait();
      if (!failure_.ok()) return failure_;
    }
    return absl::CancelledError("training was stopped");
  }

  void SetLanes(const std::vector<uint32_t>& lanes) override {
    mailbox_->Post([this, lanes] { Adopt(lanes); });
  }

  void Stop() override {
    stop_.store(true, std::memory_order_relaxed);
    mailbox_->Post([] {});
  }

 private:
  using Action = LaneDriver::Action;
  using Kind = LaneDriver::Kind;
  using Epoch = ServerSession::Epoch;

  ServerSessionOptions SessionOptions() {
    ServerSessionOptions session;
    session.links = o_.links;
    session.timer = o_.timer;
    session.mailbox = mailbox_;
    session.header = {o_.plan->job, o_.session, o_.plan->generation, o_.plan->shards.epoch()};
    session.identity = o_.plan->identity;
    if (o_.rows != nullptr) session.device = o_.rows->device();
    session.on_not_open = [this](uint32_t server, const absl::Status& why) {
      if (Classify(why) == ErrorClass::kFatal) failure_ = OfServer(server, why);
    };
    return session;
  }
  const wire::Header& header() const { return session_.header(); }

  void Adopt(const std::vector<uint32_t>& lanes) {
    const std::vector<uint32_t> now = driver_.lanes();
    for (uint32_t lane : now) {
      if (std::find(lanes.begin(), lanes.end(), lane) != lanes.end()) continue;
      driver_.Unhost(lane);
      o_.preparer->Forget(lane);
    }
    to_host_.clear();
    for (uint32_t lane : lanes) {
      if (std::find(now.begin(), now.end(), lane) == now.end()) to_host_.insert(lane);
    }
    // The clocks must be read after the lanes were given to us: ask every server anew.
    if (!to_host_.empty()) session_.CloseAll();
  }

  void HostWhenOpen() {
    if (to_host_.empty()) return;
    const SessionMachine& servers = session_.machine();
    bool all_open = true;
    for (uint32_t s = 0; s < servers.servers(); ++s) {
      if (servers.open(s)) continue;
      all_open = false;
      session_.Ready(s);
    }
    if (!all_open) return;
    rows_.OnAllOpen();
    cohorts_.Use(rows_.memory());
    gradients_.Use(rows_.memory());
    Step least = servers.state(0).clock;
    for (uint32_t s = 1; s < servers.servers(); ++s) {
      const Step clock = servers.state(s).clock;
      if (STRATA_MUTATION("bsp.lane_starts_ahead") ? least < clock : clock < least) least = clock;
    }
    for (uint32_t lane : to_host_) driver_.Host(lane, least.Next());
    to_host_.clear();
  }

  // A part of a pull or push failed, perhaps its only one. The session knows at once, as what else
  // goes to the server depends on it; the driver, when all parts are through.
  void OnPartBroken(uint32_t server, Epoch sent, const absl::Status& status) {
    if (session_.OnError(server, sent, status) == ServerSession::Retry::kNever) {
      failure_ = OfServer(server, status);
    }
  }

  // What waited for its server.
  void Resume(const Action& action) {
    if (!driver_.StillWanted(action.ticket)) return;
    if (absl::Status s = Execute(action); !s.ok()) failure_ = s;
  }

  absl::Status Execute(const Action& action) {
    switch (action.kind) {
      case Kind::kPull:
      case Kind::kPush:
        if (!session_.Ready(action.server)) {
          session_.Defer(action.server, [this, action] { Resume(action); });
          return absl::OkStatus();
        }
        return action.kind == Kind::kPull ? Pull(action) : Push(action);
      case Kind::kCompute:
        progressed_ = true;
        return Compute(action);
      case Kind::kDrop:
        gradients_.Drop(action.step);
        cohorts_.DropBelow(driver_.step());
        session_.tickets().DropBelow(action.step.Next());
        sequences_.DropBelow(action.step.Next());
        return absl::OkStatus();
      case Kind::kDone:
        finished_ = true;
        if (hosts_lane_0()) return o_.boundary->OnBoundary(o_.plan->last_step, true).status();
        break;
    }
    return absl::OkStatus();
  }

  bool hosts_lane_0() const {
    const std::vector<uint32_t> lanes = driver_.lanes();
    return !lanes.empty() && lanes.front() == 0;
  }

  // The parts of the pull whose weights are not here from an earlier try: where servers are busy,
  // all parts at once may never find room.
  static std::vector<Exchange::Shards> Missing(const std::vector<Exchange::Shards>& parts,
                                               CohortData& data) {
    std::vector<Exchange::Shards> missing;
    for (const Exchange::Shards part : parts) {
      const bool here = std::all_of(part.begin(), part.end(),
                                    [&](ShardId shard) { return data.served.contains(shard); });
      if (!here) missing.push_back(part);
    }
    if (!missing.empty()) return missing;
    for (const Exchange::Shards part : parts) Forget(part, data);
    return parts;
  }

  static void Forget(Exchange::Shards shards, CohortData& data) {
    for (const ShardId shard : shards) data.served.erase(shard);
  }

  absl::Status Pull(const Action& action) {
    auto data = cohorts_.Get(action.step, action.lanes);
    if (!data.ok()) return data.status();
    const InStage pull(&clock_, Stage::kPull);
    auto parts = rows_.SplitPull(action.server, **data);
    if (!parts.ok()) return OfServer(action.server, parts.status());
    wire::PullExtras extras;
    extras.codec = o_.plan->pull_codecs;
    if (parts->size() == 1) {  // a ticket is of all of the server's shards
      extras.ticket = session_.tickets().ForPull(action.step, action.server, action.lanes);
      // A ticket is for what is pushed as one node: its keys are those of the pull.
      extras.want_ticket = !extras.ticket && CoverNodes(action.lanes, o_.plan->lanes).size() == 1;
    } else {
      parts = Missing(*parts, **data);
    }
    auto answers = std::make_shared<PullAnswers>(parts->size());
    for (const Exchange::Shards shards : *parts) {
      auto request = rows_.EncodePull(action.server, shards, header().To(action.server),
                                      action.step, kWaitMs, **data, extras);
      if (!request.ok()) return request.status();
      const Exchange::Rows rows = Exchange::RowsOf(*request);
      session_.Call(action.server, DataMethod::kPull, *std::move(request),
                    [this, action, data = *data, shards, rows, answers](
                        Epoch sent, absl::StatusOr<Buffer> reply) {
                      OnPullPart(action, sent, *data, shards, rows, *answers, reply);
                      if (const auto whole = answers->whole()) OnPulled(action, *data, *whole);
                    });
    }
    return absl::OkStatus();
  }

  void OnPullPart(const Action& action, Epoch sent, CohortData& data, Exchange::Shards shards,
                  Exchange::Rows rows, PullAnswers& answers, const absl::StatusOr<Buffer>& reply) {
    const auto answer = reply.ok() ? rows_.DecodePull(shards, rows, *reply, &data) : reply.status();
    if (const absl::Status broken = answers.OnPart(answer); !broken.ok()) {
      return OnPartBroken(action.server, sent, broken);
    }
    session_.tickets().Learn(action.step, action.server, action.lanes, answer->ticket);
    session_.OnAnswered(action.server);
    if (answer->outcome == wire::PullOutcome::kServed) {
      data.served.insert(shards.begin(), shards.end());
    }
  }

  // All parts of the pull are through.
  void OnPulled(const Action& action, CohortData& data, const PullAnswers::Whole& whole) {
    if (!whole.ok()) return driver_.OnBroken(action.ticket);  // it goes again, with keys
    const wire::ServerState& state = whole->state;
    const ServerIdentity identity{state.incarnation, state.map_epoch.value};
    switch (whole->outcome) {
      case wire::PullOutcome::kTooOld:
        return driver_.OnTooOld(action.ticket, identity, state.clock);
      case wire::PullOutcome::kNotYet:
        return driver_.OnNotYet(action.ticket, identity);
      default:
        Forget(o_.exchange->ShardsOf(action.server), data);
        return driver_.OnServed(action.ticket, identity);
    }
  }

  absl::Status Push(const Action& action) {
    const InStage push(&clock_, Stage::kPush);
    wire::PushFields fields;
    fields.header = header().To(action.server);
    fields.sequence = sequences_.Of(action.step, action.lanes);
    fields.step = action.step;
    auto parts = rows_.EncodePush(
        action.server, fields, CoverNodes(action.lanes, o_.plan->lanes), &gradients_,
        session_.tickets().TakeForPush(action.step, action.server, action.lanes));
    if (!parts.ok()) return parts.status();
    std::vector<PartAnswers::Part> shards;  // of each part, as it says itself
    for (const Buffer& part : *parts) {
      auto view = wire::ParsePushRequest(part.span());
      if (!view.ok()) return view.status();
      shards.push_back(std::move(view->shards));
    }
    const std::vector<bool> goes = pushes_[action.server].Begin(fields.sequence, shards);
    for (size_t i = 0; i < parts->size(); ++i) {
      if (!goes[i]) continue;
      session_.Call(action.server, DataMethod::kPush, std::move((*parts)[i]),
                    [this, action, part = shards[i]](Epoch sent, absl::StatusOr<Buffer> reply) {
                      OnPushPart(action, part, sent, reply);
                    });
    }
    return absl::OkStatus();
  }

  void OnPushPart(const Action& action, const PartAnswers::Part& part, Epoch sent,
                  const absl::StatusOr<Buffer>& reply) {
    PartAnswers& answers = pushes_[action.server];
    const auto parsed = reply.ok() ? wire::ParsePushReply(reply->span()) : reply.status();
    ServerIdentity identity;
    PartAnswers::Whole whole;
    if (parsed.ok()) {
      session_.OnAnswered(action.server);
      identity = {parsed->state.incarnation, parsed->state.map_epoch.value};
      whole = answers.OnAccepted(part, identity);
    } else {
      OnPartBroken(action.server, sent, parsed.status());
      whole = answers.OnBroken();
    }
    if (whole == PartAnswers::Whole::kAccepted) driver_.OnAccepted(action.ticket, identity);
    if (whole == PartAnswers::Whole::kAgain) driver_.OnBroken(action.ticket);
  }

  absl::Status Compute(const Action& action) {
    const Step completed(action.step.value - 1);
    if (action.lanes.front() == 0 && completed > boundary_done_) {
      auto verdict = o_.boundary->OnBoundary(completed, false);
      if (!verdict.ok()) return verdict.status();
      boundary_done_ = completed;
      if (*verdict == StepBoundary::Verdict::kStop) {
        finished_ = true;
        return absl::OkStatus();
      }
    }
    auto data = cohorts_.Get(action.step, action.lanes);
    if (!data.ok()) return data.status();
    for (size_t i = 0; i < action.lanes.size(); ++i) {
      auto gradient = cohort_step_.Run(**data, i, &clock_, [&] {
        if (i == 0) Prefetch(action.step.Next(), action.lanes);
      });
      if (!gradient.ok()) return gradient.status();
      gradients_.Put(action.step, action.lanes[i], *std::move(gradient));
    }
    const InStage push(&clock_, Stage::kPush);
    const std::vector<LaneNode> nodes = CoverNodes(action.lanes, o_.plan->lanes);
    if (nodes.size() == 1) {
      auto sum = gradients_.Sum(action.step, nodes[0]);
      if (!sum.ok()) return sum.status();
      if ((*sum)->positions == (*data)->all.positions && (*sum)->runs == (*data)->all.runs) {
        session_.tickets().SameKeys(action.step, action.lanes);
      }
    }
    cohorts_.Drop(action.step);
    o_.stats->OnStep(action.step.value, o_.timer->Now());
    driver_.OnComputed(action.step, action.lanes);
    return absl::OkStatus();
  }

  // Announces the keys of the next step while this one is computed, if its batches are there. What
  // goes wrong is left to the pull.
  void Prefetch(Step step, const std::vector<uint32_t>& lanes) {
    if (!o_.plan->prefetch || step > o_.plan->last_step) return;
    for (uint32_t lane : lanes) {
      if (!o_.preparer->Ready(step, lane)) return;
    }
    auto data = cohorts_.Get(step, lanes);
    if (!data.ok()) return;
    const InStage prefetch(&clock_, Stage::kPrefetch);
    for (uint32_t s = 0; s < o_.links->servers(); ++s) {
      if (!session_.machine().open(s)) continue;
      const auto pulls = rows_.SplitPull(s, **data);
      if (!pulls.ok() || pulls->size() > 1) continue;  // a ticket is of all of the server's shards
      auto request = o_.exchange->EncodePrefetch(s, header().To(s), step, (*data)->keys(), true);
      if (!request.ok()) continue;
      session_.Call(s, DataMethod::kPrefetch, *std::move(request),
                    [this, s, step, lanes, data = *data](Epoch, absl::StatusOr<Buffer> reply) {
                      if (!reply.ok()) return;
                      auto ticket =
                          o_.exchange->DecodePrefetch(s, reply->span(), data->keys(), true);
                      if (!ticket.ok() || step < driver_.step()) return;
                      session_.tickets().Learn(step, s, lanes, *ticket);
                    });
    }
  }

  const BspTrainerOptions o_;
  const std::shared_ptr<Mailbox> mailbox_;
  std::atomic<bool> stop_{false};

  // Touched only on Run's thread.
  LaneDriver driver_;
  ServerSession session_;
  std::vector<PartAnswers> pushes_;  // by server
  std::set<uint32_t> to_host_;
  PushSequences sequences_;
  LaneSums gradients_;
  Step boundary_done_;
  bool progressed_ = false;
  bool finished_ = false;
  absl::Status failure_;
  RowExchange rows_;
  CohortStep cohort_step_;
  StageClock clock_{&o_.stats->stages()};
  Cohorts cohorts_{o_.preparer, o_.exchange, &clock_};
};

}  // namespace

std::unique_ptr<BspTrainer> BspTrainer::Make(const BspTrainerOptions& options) {
  return std::make_unique<Trainer>(options);
}

}  // namespace strata
