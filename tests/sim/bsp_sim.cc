#include "tests/sim/bsp_sim.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <memory>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/sim/bsp_message.h"
#include "tests/sim/bsp_server.h"
#include "tests/sim/bsp_worker.h"
#include "tests/sim/bsp_workload.h"

namespace strata::sim {
namespace {

constexpr uint64_t kPatience = 20000;
constexpr uint64_t kFaultsUntil = 400;  // events; then the network and the processes behave

struct Worker {
  Worker(const BspWorkerOptions& options, std::mt19937_64* random) : worker(options, random) {}

  BspWorker worker;
  bool alive = true;  // false: gone, or a zombie that nobody counts on
  bool runs = true;
};

class Sim {
 public:
  explicit Sim(const BspOptions& options)
      : o_(options),
        random_(options.seed),
        load_(BspWorkload::Of(options.lanes, options.steps, options.life_cycle)) {
    for (uint32_t s = 0; s < o_.servers; ++s) {
      std::string folder = absl::StrCat(o_.folder, "/", s);
      if (!o_.folder.empty()) std::filesystem::create_directories(folder);
      servers_.push_back(std::make_unique<BspServer>(BspServer::Options{
          s, o_.servers, o_.shards, o_.lanes, o_.life_cycle, o_.hbm, &load_, std::move(folder)}));
    }
    for (uint32_t w = 0; w < o_.workers; ++w) AddWorker();
    for (uint32_t lane = 0; lane < o_.lanes; ++lane) {
      workers_[lane % o_.workers].worker.Host(lane, Step(1));
    }
  }
  ~Sim() {
    std::error_code ignored;
    if (!o_.folder.empty()) std::filesystem::remove_all(o_.folder, ignored);
  }

  BspResult Run() {
    if (o_.scripted_step != 0) Play();
    while (result_.error.empty() && !Done()) Turn();
    if (result_.error.empty()) CheckEnd();
    for (const auto& server : servers_) {
      const BspServerCounts& c = server->counts();
      result_.served_preimages += c.served_preimages;
      result_.too_old += c.too_old;
      result_.named_tickets += c.named_tickets;
      result_.stale_tickets += c.stale_tickets;
      result_.recovered_images += c.recovered_images;
    }
    return result_;
  }

 private:
  bool Chance(uint32_t in_1000) { return in_1000 > 0 && random_() % 1000 < in_1000; }
  bool Faulty() const { return result_.events < kFaultsUntil; }
  void Error(std::string text) {
    if (result_.error.empty()) result_.error = std::move(text);
  }
  // What the servers found.
  void Collect() {
    uint64_t least = ~uint64_t{0}, greatest = 0;
    for (const auto& server : servers_) {
      if (!server->error().empty()) Error(server->error());
      if (!server->up()) continue;
      least = std::min(least, server->least_clock());
      greatest = std::max(greatest, server->greatest_clock());
    }
    if (greatest > least && greatest - least > 1) Error("shards differ by more than one step");
  }

  void AddWorker() {
    workers_.emplace_back(BspWorkerOptions{workers_.size(), o_.servers, o_.lanes, Step(o_.steps)},
                          &random_);
  }

  bool Done() const {
    size_t lanes = 0;
    for (const Worker& w : workers_) {
      if (!w.alive) continue;
      if (!w.worker.lanes().empty() && !w.worker.done()) return false;
      lanes += w.worker.lanes().size();
    }
    for (const auto& server : servers_) {
      if (!server->up()) return false;
    }
    return lanes == o_.lanes;
  }

  // --- by chance
  void Turn() {
    if (++result_.events > kPatience) return Error("stuck");
    Faults();
    Event();
    Collect();
  }

  void Faults() {
    if (o_.kill_at != 0 && result_.events == o_.kill_at) {
      if (o_.victim >= o_.servers) {
        KillWorker(o_.victim - o_.servers, o_.in_commit);
      } else if (o_.in_commit) {
        dies_in_commit_ = o_.victim;
      } else {
        KillServer(o_.victim);
      }
    }
    if (!Faulty() || result_.kills >= o_.max_kills) return;
    if (Chance(o_.kill_server)) {
      const auto s = static_cast<uint32_t>(random_() % o_.servers);
      if (random_() % 2 == 0) {
        dies_in_commit_ = s;
      } else {
        KillServer(s);
      }
    }
    if (Chance(o_.kill_worker)) KillWorker(random_() % workers_.size(), random_() % 2 == 0);
  }

  void KillServer(uint32_t s) {
    servers_[s]->Kill();
    ++result_.kills;
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
    uint64_t least = ~uint64_t{0};
    for (const auto& server : servers_) least = std::min(least, server->least_clock());
    const uint64_t start = random_() % 2 == 0 ? least + 1 : 1 + random_() % (least + 1);
    for (const uint32_t lane : workers_[w].worker.lanes()) {
      workers_[hosts[random_() % hosts.size()]].worker.Host(lane, Step(start));
    }
  }

  void Event() {
    for (const auto& server : servers_) {
      if (!server->up() && random_() % 4 == 0) return server->Start();
    }
    if (Commits()) return;
    if (network_.empty() || random_() % 3 == 0) {
      Worker& w = workers_[random_() % workers_.size()];
      if (w.runs) w.worker.Act(network_);
      return;
    }
    Deliver(random_() % network_.size());
  }

  // A commit that a shard is ready for comes some time after the push that made it so. Images are
  // written at any time.
  bool Commits() {
    const auto s = static_cast<uint32_t>(random_() % o_.servers);
    const auto shard = static_cast<uint32_t>(random_() % o_.shards);
    BspServer& server = *servers_[s];
    if (!server.up()) return false;
    if (!o_.folder.empty() && Chance(o_.image)) server.WriteImage(shard);
    if (!server.WantsCommit(shard) || random_() % 2 == 0) return false;
    if (dies_in_commit_ == s) {
      dies_in_commit_ = kNobody;
      ++result_.kills;
      server.DieInCommit(shard);
    } else {
      server.Commit(shard);
    }
    return true;
  }

  void Deliver(size_t i) {
    const BspMessage m = network_[i];
    if (Held(m)) return;
    if (Faulty() && Chance(o_.drop)) {
      // A lost request or reply is seen as a broken call, sooner or later.
      network_[i].kind = BspMessage::kBroken;
      return;
    }
    if (!(Faulty() && Chance(o_.duplicate))) Remove(i);
    Arrive(m);
  }
  void Remove(size_t i) {
    network_[i] = network_.back();
    network_.pop_back();
  }
  void Arrive(const BspMessage& m) {
    if (m.request()) {
      network_.push_back(servers_[m.server]->Serve(m));
    } else if (workers_[m.worker].runs) {
      workers_[m.worker].worker.Answer(m);
    }
  }

  // --- by script
  bool Held(const BspMessage& m) const {
    return holding_ && m.kind == BspMessage::kPush && m.step.value >= o_.scripted_step;
  }

  void Play() {
    holding_ = true;
    const auto held = [this] {
      return std::count_if(network_.begin(), network_.end(),
                           [this](const BspMessage& m) { return Held(m); });
    };
    while (result_.error.empty() && held() < o_.workers * o_.servers) Turn();
    for (const BspEvent& e : o_.script) {
      if (!result_.error.empty()) break;
      Happen(e);
      Collect();
    }
    holding_ = false;
  }

  void Happen(const BspEvent& e) {
    switch (e.kind) {
      case BspEvent::kPush: {
        const auto it = std::find_if(network_.begin(), network_.end(), [&](const BspMessage& m) {
          return Held(m) && m.server == e.who && m.worker == e.other;
        });
        if (it == network_.end()) return Error("the script has a push that nobody sent");
        const BspMessage m = *it;
        network_.erase(it);
        Arrive(m);
        return Drain();
      }
      case BspEvent::kCommit:
        servers_[e.who]->Commit(e.other);
        return Drain();
      case BspEvent::kImage:
        servers_[e.who]->WriteImage(e.other);
        return Drain();
      case BspEvent::kDieInCommit:
        ++result_.kills;
        return servers_[e.who]->DieInCommit(e.other);
      case BspEvent::kKillServer:
        return KillServer(e.who);
      case BspEvent::kKillWorker:
        return KillWorker(e.who, false);
      case BspEvent::kLoseWorker:
        return KillWorker(e.who, true);
    }
  }

  // Everything arrives that changes something: not what is held, and no pull that would wait.
  void Drain() {
    if (!o_.prompt_network) return;
    while (true) {
      for (Worker& w : workers_) w.worker.Act(network_);
      const auto it = std::find_if(network_.begin(), network_.end(), [this](const BspMessage& m) {
        return !Held(m) && !(m.kind == BspMessage::kPull && servers_[m.server]->WouldWait(m));
      });
      if (it == network_.end()) return;
      const BspMessage m = *it;
      network_.erase(it);
      Arrive(m);
    }
  }

  void CheckEnd() {
    storage::HashSum sum;
    for (const auto& server : servers_) {
      if (server->least_clock() != o_.steps || server->greatest_clock() != o_.steps) {
        return Error("a shard ended at another clock");
      }
      sum += server->Hash();
    }
    if (!(sum == load_.After(Step(o_.steps)).Hash())) Error("another model than the serial one");
  }

  static constexpr uint32_t kNobody = ~uint32_t{0};
  const BspOptions o_;
  std::mt19937_64 random_;
  BspWorkload& load_;
  std::vector<std::unique_ptr<BspServer>> servers_;
  std::deque<Worker> workers_;
  std::vector<BspMessage> network_;
  uint32_t dies_in_commit_ = kNobody;
  bool holding_ = false;
  BspResult result_;
};

}  // namespace

BspResult RunBsp(const BspOptions& options) { return Sim(options).Run(); }

}  // namespace strata::sim
