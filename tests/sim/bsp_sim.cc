#include "tests/sim/bsp_sim.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "proto/core/lane_tree.h"
#include "proto/core/message.h"
#include "proto/runtime/failpoints.h"
#include "server/request_keys.h"
#include "server/shard.h"
#include "server/ticket_book.h"
#include "tests/server/shard_fixture.h"
#include "tests/sim/memory_log.h"
#include "worker/lane_driver.h"
#include "worker/ticket_ledger.h"

namespace strata::sim {
namespace {

using server::PullVerdict;
using server::Reference;
using server::Shard;

constexpr uint64_t kWorkload = 5;  // what the lanes compute, the same in every run
constexpr uint64_t kPatience = 20000;
constexpr uint64_t kFaultsUntil = 400;  // events; then the network and the processes behave

// Computed once: the serial account and the contributions.
struct Workload {
  std::vector<Reference> references;
  std::map<std::tuple<uint64_t, uint32_t, uint32_t>, server::LaneWork> nodes;

  const server::LaneWork& Node(uint64_t step, LaneNode n) {
    auto& work = nodes[{step, n.first, n.end}];
    if (work.examples == 0) work = server::NodeWork(kWorkload, step, n);
    return work;
  }
};

std::vector<TableSpec> Tables(bool life_cycle) {
  return life_cycle ? server::TestTablesWithLifeCycle() : server::TestTables();
}

Workload& WorkloadOf(uint32_t lanes, uint64_t steps, bool life_cycle) {
  static std::map<std::tuple<uint32_t, uint64_t, bool>, Workload> all;
  Workload& w = all[{lanes, steps, life_cycle}];
  if (w.references.empty()) {
    w.references = server::References(kWorkload, lanes, steps, Tables(life_cycle));
  }
  return w;
}

struct Server {
  MemoryLog log;
  std::unique_ptr<Shard> shard;  // null: dead
  uint64_t incarnation = 0;
  uint64_t seen_clock = 0;  // largest that a worker was told
  std::unique_ptr<server::TicketBook> tickets;
};

struct Worker {
  std::unique_ptr<LaneDriver> driver;
  TicketLedger tickets;
  bool alive = true;  // false: gone, or a zombie that nobody counts on
  bool runs = true;
};

struct Message {
  enum Kind {
    kPull,
    kPush,
    kPrefetch,
    kServed,
    kNotYet,
    kTooOld,
    kAccepted,
    kPrefetched,
    kBroken
  } kind;
  size_t worker;
  uint32_t server;
  uint64_t ticket;
  Step step;                    // request; kTooOld: where to go on
  std::vector<LaneNode> nodes;  // kPush
  ServerIdentity identity;      // replies
  std::vector<uint32_t> lanes;  // whose keys are meant
  wire::Ticket named;           // request: instead of keys
  wire::Ticket given;           // reply
  bool request() const { return kind == kPull || kind == kPush || kind == kPrefetch; }
};

class Sim {
 public:
  explicit Sim(const BspOptions& options)
      : o_(options),
        random_(options.seed),
        load_(WorkloadOf(options.lanes, options.steps, options.life_cycle)),
        servers_(options.servers) {
    for (uint32_t s = 0; s < o_.servers; ++s) Restart(s);
    for (uint32_t w = 0; w < o_.workers; ++w) AddWorker();
    for (uint32_t lane = 0; lane < o_.lanes; ++lane) {
      workers_[lane % o_.workers].driver->Host(lane, Step(1));
    }
  }

  BspResult Run() {
    while (result_.error.empty() && !Done()) {
      if (++result_.events > kPatience) {
        result_.error = "stuck";
        break;
      }
      Faults();
      Event();
    }
    if (result_.error.empty()) CheckEnd();
    return result_;
  }

 private:
  bool Chance(uint32_t in_1000) { return in_1000 > 0 && random_() % 1000 < in_1000; }
  bool Faulty() const { return result_.events < kFaultsUntil; }
  void Error(std::string text) {
    if (result_.error.empty()) result_.error = std::move(text);
  }

  void AddWorker() {
    Worker w;
    w.driver = std::make_unique<LaneDriver>(o_.servers, Step(o_.steps));
    workers_.push_back(std::move(w));
  }

  bool Done() const {
    size_t lanes = 0;
    for (const Worker& w : workers_) {
      if (!w.alive) continue;
      if (!w.driver->lanes().empty() && !w.driver->done()) return false;
      lanes += w.driver->lanes().size();
    }
    for (const Server& s : servers_) {
      if (s.shard == nullptr) return false;
    }
    return lanes == o_.lanes;
  }

  void Restart(uint32_t s) {
    Server& server = servers_[s];
    server::ShardSetup setup;
    setup.id = s;
    setup.range = server::Ranges(o_.servers)[s];
    setup.lanes = o_.lanes;
    setup.log = &server.log;
    setup.tables = Tables(o_.life_cycle);
    server.shard = server::MakeShard(setup);
    ++server.incarnation;
    server.tickets = std::make_unique<server::TicketBook>(
        server.incarnation, Generation(1),
        server::TicketBook::Limits{server::TicketBook::PerSession(o_.lanes), 1 << 20});
    const absl::Status replayed =
        server.log.Replay(0, [&](const auto& r) { return server.shard->Replay(r); });
    if (!replayed.ok()) Error("replay: " + std::string(replayed.message()));
    if (server.shard->clock().value < server.seen_clock) Error("a commit that was seen is lost");
  }

  void KillServer(uint32_t s, bool in_commit) {
    if (in_commit) {
      dies_in_commit_ = s;
      return;
    }
    servers_[s].shard.reset();
    ++result_.kills;
  }

  uint64_t LeastClock() const {
    uint64_t least = ~uint64_t{0};
    for (const Server& s : servers_) {
      // A dead one counts with what it told.
      least = std::min(least, s.shard == nullptr ? s.seen_clock : s.shard->clock().value);
    }
    return least;
  }

  // The lanes of a worker that is declared dead go to others, or to a new one.
  void KillWorker(size_t w, bool zombie) {
    if (!workers_[w].alive) return;
    workers_[w].alive = false;
    workers_[w].runs = zombie;
    ++result_.kills;
    std::vector<size_t> hosts;
    for (size_t i = 0; i < workers_.size(); ++i) {
      if (workers_[i].alive) hosts.push_back(i);
    }
    if (hosts.empty() || random_() % 2 == 0) {
      AddWorker();
      hosts.push_back(workers_.size() - 1);
    }
    const uint64_t most = LeastClock() + 1;
    const uint64_t start = random_() % 2 == 0 ? most : 1 + random_() % most;
    for (const uint32_t lane : workers_[w].driver->lanes()) {
      workers_[hosts[random_() % hosts.size()]].driver->Host(lane, Step(start));
    }
  }

  void Faults() {
    if (o_.kill_at != 0 && result_.events == o_.kill_at) {
      if (o_.victim < o_.servers) {
        KillServer(o_.victim, o_.in_commit);
      } else {
        KillWorker(o_.victim - o_.servers, o_.in_commit);
      }
    }
    if (!Faulty() || result_.kills >= o_.max_kills) return;
    if (Chance(o_.kill_server)) {
      KillServer(static_cast<uint32_t>(random_() % o_.servers), random_() % 2 == 0);
    }
    if (Chance(o_.kill_worker)) KillWorker(random_() % workers_.size(), random_() % 2 == 0);
  }

  void Event() {
    for (uint32_t s = 0; s < o_.servers; ++s) {
      if (servers_[s].shard == nullptr && random_() % 4 == 0) return Restart(s);
    }
    if (network_.empty() || random_() % 3 == 0) {
      Worker& w = workers_[random_() % workers_.size()];
      if (w.runs) Act(static_cast<size_t>(&w - workers_.data()));
      return;
    }
    const size_t i = random_() % network_.size();
    const Message m = network_[i];
    if (Faulty() && Chance(o_.drop)) {
      // A lost request or reply is seen as a broken call, sooner or later.
      network_[i].kind = Message::kBroken;
      return;
    }
    if (!(Faulty() && Chance(o_.duplicate))) {
      network_[i] = network_.back();
      network_.pop_back();
    }
    if (m.request()) {
      Serve(m);
    } else if (workers_[m.worker].runs) {
      Answer(m);
    }
  }

  void Act(size_t w) {
    for (const LaneDriver::Action& a : workers_[w].driver->Next()) {
      Message m{Message::kPull, w, a.server, a.ticket, a.step, {}, {}, a.lanes, {}, {}};
      TicketLedger& tickets = workers_[w].tickets;
      switch (a.kind) {
        case LaneDriver::Kind::kPull:
          m.named = tickets.ForPull(a.step, a.server, a.lanes);
          network_.push_back(std::move(m));
          break;
        case LaneDriver::Kind::kPush:
          m.kind = Message::kPush;
          m.named = tickets.TakeForPush(a.step, a.server, a.lanes);
          m.nodes = m.named ? CoverNodes(a.lanes, o_.lanes) : Grouping(a.lanes);
          network_.push_back(std::move(m));
          break;
        case LaneDriver::Kind::kCompute:
          Prefetch(w, a);
          if (CoverNodes(a.lanes, o_.lanes).size() == 1) tickets.SameKeys(a.step, a.lanes);
          workers_[w].driver->OnComputed(a.step, a.lanes);
          break;
        case LaneDriver::Kind::kDrop:
          tickets.DropBelow(a.step.Next());
          break;
        case LaneDriver::Kind::kDone:
          break;
      }
    }
  }

  // At times, the keys of the step that follows.
  void Prefetch(size_t w, const LaneDriver::Action& a) {
    if (a.step.value == o_.steps) return;
    for (uint32_t s = 0; s < o_.servers; ++s) {
      if (random_() % 2 == 0) continue;
      network_.push_back({Message::kPrefetch, w, s, 0, a.step.Next(), {}, {}, a.lanes, {}, {}});
    }
  }

  // Keys of table 0 that the lanes have at a step, in a shard.
  std::vector<Position> KeysOf(const Message& m) {
    std::vector<Position> keys;
    const Shard& shard = *servers_[m.server].shard;
    const auto update =
        server::UpdateFor(load_.Node(m.step.value, CoverNodes(m.lanes, o_.lanes)[0]),
                          shard.first_position(), shard.last_position());
    const auto positions = update.tables[0].positions;
    return {positions.begin(), positions.end()};
  }

  // A ticket for what is pushed as one node; of any other keys there is none to give.
  wire::Ticket Give(const Message& m) {
    if (m.lanes.empty() || CoverNodes(m.lanes, o_.lanes).size() != 1) return {};
    auto keys = std::make_shared<server::RequestKeys>();
    keys->groups.emplace_back().positions = KeysOf(m);
    std::vector<server::TicketBook::KeysPtr> dropped;
    return servers_[m.server].tickets->Add(SessionId(m.worker + 1), m.step, 0, keys, dropped);
  }

  // Whether the named ticket stands for keys here. It must be those that would have been sent.
  bool Known(const Message& m) {
    auto keys = servers_[m.server].tickets->Find(SessionId(m.worker + 1), m.named);
    if (!keys.ok()) {
      ++result_.stale_tickets;
      return false;
    }
    ++result_.named_tickets;
    if ((*keys)->groups[0].positions != KeysOf(m)) Error("a ticket stands for other keys");
    return true;
  }

  // Some way to push these lanes: any node may be split.
  std::vector<LaneNode> Grouping(const std::vector<uint32_t>& lanes) {
    std::vector<LaneNode> nodes = CoverNodes(lanes, o_.lanes), out;
    while (!nodes.empty()) {
      const LaneNode n = nodes.back();
      nodes.pop_back();
      if (n.IsLeaf() || random_() % 2 == 0) {
        out.push_back(n);
      } else {
        nodes.push_back(n.Left());
        nodes.push_back(n.Right());
      }
    }
    std::shuffle(out.begin(), out.end(), random_);
    return out;
  }

  void Serve(const Message& m) {
    Message reply = m;
    Server& server = servers_[m.server];
    reply.kind = Message::kBroken;
    if (server.shard != nullptr) {
      if (m.named && !Known(m)) {
        // refused: kBroken
      } else if (m.kind == Message::kPull) {
        ServePull(m, reply);
      } else if (m.kind == Message::kPush) {
        ServePush(m, reply);
      } else {
        reply.kind = Message::kPrefetched;
        reply.given = Give(m);
      }
      reply.identity = {server.incarnation, 1};
    }
    network_.push_back(std::move(reply));
  }

  void ServePull(const Message& m, Message& reply) {
    Server& server = servers_[m.server];
    Shard& shard = *server.shard;
    const PullVerdict verdict = shard.CheckPull(m.step);
    server.seen_clock = std::max(server.seen_clock, shard.clock().value);
    reply.given = m.named ? m.named : Give(m);
    switch (verdict) {
      case PullVerdict::kWait:
        reply.kind = Message::kNotYet;
        break;
      case PullVerdict::kTooOld:
        reply.kind = Message::kTooOld;
        reply.step = shard.ResumeStep();
        ++result_.too_old;
        break;
      case PullVerdict::kServeCurrent:
      case PullVerdict::kServePreimage:
        reply.kind = Message::kServed;
        result_.served_preimages += verdict == PullVerdict::kServePreimage;
        CheckWeights(shard, m.step, verdict == PullVerdict::kServePreimage);
        break;
    }
  }

  // A sample of rows, as of the step before.
  void CheckWeights(Shard& shard, Step step, bool preimages) {
    const TableSpec table = server::TestTables()[0];
    std::vector<Position> positions;
    for (uint64_t k = 0; k < 300; k += 7) {
      const Position p = table.PositionOfKey(Key(k));
      if (shard.first_position() <= p && p <= shard.last_position()) positions.push_back(p);
    }
    std::sort(positions.begin(), positions.end());
    std::vector<float> out(positions.size() * table.dim());
    const absl::Status s = preimages ? shard.ReadPreimages(TableId(0), positions, out.data())
                                     : shard.Read(TableId(0), positions, out.data());
    if (!s.ok()) return Error("read: " + std::string(s.message()));
    for (size_t i = 0; i < positions.size(); ++i) {
      const auto want = load_.references[step.value - 1].Weights(0, positions[i]);
      if (std::memcmp(want.data(), out.data() + i * want.size(), want.size() * 4) != 0) {
        return Error("a lane was served wrong weights at step " + std::to_string(step.value));
      }
    }
  }

  void ServePush(const Message& m, Message& reply) {
    Shard& shard = *servers_[m.server].shard;
    reply.kind = Message::kAccepted;
    for (const LaneNode n : m.nodes) {
      const auto answer =
          shard.Contribute(m.step, n,
                           server::UpdateFor(load_.Node(m.step.value, n), shard.first_position(),
                                             shard.last_position()));
      if (answer.verdict == server::GateVerdict::kTooNew) reply.kind = Message::kBroken;
      if (answer.verdict == server::GateVerdict::kInvalidNode) Error("invalid node");
      if (answer.mismatch) Error("a repeated contribution differs");
    }
    if (!shard.WantsCommit()) return;
    if (dies_in_commit_ == m.server) {
      ScopedFailpoint death("server.commit.appended",
                            {.act = FailWith(absl::AbortedError("kill"))});
      if (shard.TryCommit().ok()) Error("the failpoint was not passed");
      dies_in_commit_ = kNobody;
      reply.kind = Message::kBroken;
      return KillServer(m.server, false);
    }
    auto committed = shard.TryCommit();
    if (!committed.ok() || !*committed) Error("commit failed");
    servers_[m.server].tickets->Committed(shard.clock());
    for (const Server& other : servers_) {
      if (other.shard != nullptr && shard.clock().value > other.shard->clock().value + 1) {
        Error("shards differ by more than one step");
      }
    }
  }

  void Answer(const Message& m) {
    LaneDriver& driver = *workers_[m.worker].driver;
    TicketLedger& tickets = workers_[m.worker].tickets;
    if (m.kind == Message::kBroken) tickets.Broken(m.server);
    if ((m.kind == Message::kServed || m.kind == Message::kNotYet ||
         m.kind == Message::kPrefetched) &&
        m.step >= driver.step()) {
      tickets.Learn(m.step, m.server, m.lanes, m.given);
    }
    switch (m.kind) {
      case Message::kPrefetched:
        return;
      case Message::kServed:
        return driver.OnServed(m.ticket, m.identity);
      case Message::kNotYet:
        return driver.OnNotYet(m.ticket, m.identity);
      case Message::kTooOld:
        return driver.OnTooOld(m.ticket, m.identity, m.step);
      case Message::kAccepted:
        return driver.OnAccepted(m.ticket, m.identity);
      default:
        return driver.OnBroken(m.ticket);
    }
  }

  void CheckEnd() {
    storage::HashSum sum;
    for (Server& s : servers_) {
      if (s.shard->clock() != Step(o_.steps)) return Error("a shard ended at another clock");
      sum += s.shard->Summarize()->hash;
    }
    if (!(sum == load_.references[o_.steps].Hash())) Error("another model than the serial one");
  }

  static constexpr uint32_t kNobody = ~uint32_t{0};
  const BspOptions o_;
  std::mt19937_64 random_;
  Workload& load_;
  std::vector<Server> servers_;
  std::vector<Worker> workers_;
  std::vector<Message> network_;
  uint32_t dies_in_commit_ = kNobody;
  BspResult result_;
};

}  // namespace

BspResult RunBsp(const BspOptions& options) { return Sim(options).Run(); }

}  // namespace strata::sim
