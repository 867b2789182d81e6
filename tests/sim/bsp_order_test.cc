// Promise P3 at its narrowest place: between pushes and commits of one step on several shards. All
// orders of {push A, push B, commit A, commit B}, each cut off after every prefix, and there every
// set of processes dies; then the run goes on by chance to its end. The oracle is RunBsp's.
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/bsp_sim.h"
#include "tests/sim/scratch.h"
#include "tests/skip.h"

namespace strata::sim {
namespace {

using Script = std::vector<BspEvent>;

std::string Text(const Script& script) {
  static const char* const kNames[] = {"push",        "commit",      "die in commit", "image",
                                       "kill server", "kill worker", "lose worker"};
  std::string text;
  for (const BspEvent& e : script) {
    text += std::string(text.empty() ? "" : ", ") + kNames[e.kind] + " " + std::to_string(e.who) +
            "/" + std::to_string(e.other);
  }
  return text;
}

// What has happened of a step, and what may happen next.
class Orders {
 public:
  explicit Orders(const BspOptions& o, bool images = false)
      : workers_(o.workers), servers_(o.servers), shards_(o.shards), images_(images) {}

  // Every prefix of every order, with the commits that may follow it.
  struct Prefix {
    Script events;
    std::vector<std::pair<uint32_t, uint32_t>> ready;  // (server, shard)
  };
  std::vector<Prefix> All() {
    std::vector<Prefix> all;
    State begin{std::vector<std::vector<bool>>(servers_, std::vector<bool>(workers_)),
                std::vector<std::vector<bool>>(servers_, std::vector<bool>(shards_))};
    Extend({}, begin, all);
    return all;
  }

 private:
  struct State {
    std::vector<std::vector<bool>> pushed;     // [server][worker]
    std::vector<std::vector<bool>> committed;  // [server][shard]
  };

  void Extend(const Script& events, const State& state, std::vector<Prefix>& all) {
    Prefix prefix{events, {}};
    std::vector<std::pair<BspEvent, State>> next;
    for (uint32_t s = 0; s < servers_; ++s) {
      bool complete = true;
      for (uint32_t w = 0; w < workers_; ++w) {
        complete = complete && state.pushed[s][w];
        if (state.pushed[s][w]) continue;
        next.push_back({{BspEvent::kPush, s, w}, state});
        next.back().second.pushed[s][w] = true;
      }
      for (uint32_t shard = 0; complete && shard < shards_; ++shard) {
        if (state.committed[s][shard]) continue;
        prefix.ready.emplace_back(s, shard);
        next.push_back({{BspEvent::kCommit, s, shard}, state});
        next.back().second.committed[s][shard] = true;
      }
    }
    all.push_back(std::move(prefix));
    for (const auto& [event, after] : next) {
      Script longer = events;
      longer.push_back(event);
      if (images_ && event.kind == BspEvent::kCommit) {
        longer.push_back({BspEvent::kImage, event.who, event.other});
      }
      Extend(longer, after, all);
    }
  }

  const uint32_t workers_, servers_, shards_;
  const bool images_;
};

// Every way in which at most `most` processes die at one moment: each server is left alone or
// killed, each worker left alone, killed or lost. Nobody dies in the first.
std::vector<Script> Deaths(const BspOptions& o, size_t most) {
  std::vector<Script> all = {{}};
  const auto each = [&all, most](uint32_t who, std::vector<BspEvent::Kind> kinds) {
    const std::vector<Script> before = all;
    for (const BspEvent::Kind kind : kinds) {
      for (Script deaths : before) {
        if (deaths.size() == most) continue;
        deaths.push_back({kind, who});
        all.push_back(std::move(deaths));
      }
    }
  };
  for (uint32_t s = 0; s < o.servers; ++s) each(s, {BspEvent::kKillServer});
  for (uint32_t w = 0; w < o.workers; ++w) each(w, {BspEvent::kKillWorker, BspEvent::kLoseWorker});
  return all;
}

struct Seen {
  uint64_t runs = 0, preimages = 0, too_old = 0, images = 0;
};

void Run(BspOptions o, const Script& script, Seen& seen) {
  o.script = script;
  const BspResult r = RunBsp(o);
  if (r.error != "") {
    FAIL(r.error << ": step " << o.scripted_step << " of " << o.steps << ", workers " << o.workers
                 << ", shards a server " << o.shards << ", prompt " << o.prompt_network << ", seed "
                 << o.seed << ": " << Text(script));
  }
  ++seen.runs;
  seen.preimages += r.served_preimages;
  seen.too_old += r.too_old;
  seen.images += r.recovered_images;
}

// All prefixes x all deaths, and those where a server dies within a commit that was to come next.
void RunAll(const BspOptions& o, const std::vector<Orders::Prefix>& prefixes, const Script& before,
            Seen& seen) {
  // Three and four at once: of one worker, and where there is time.
  const std::vector<Script> deaths = Deaths(o, o.workers == 1 || LongRun() ? 4 : 2);
  for (const Orders::Prefix& prefix : prefixes) {
    Script events = before;
    events.insert(events.end(), prefix.events.begin(), prefix.events.end());
    for (const Script& dead : deaths) {
      Script script = events;
      script.insert(script.end(), dead.begin(), dead.end());
      Run(o, script, seen);
    }
    for (const auto& [server, shard] : prefix.ready) {
      for (const Script& dead : deaths) {
        Script script = events;
        script.push_back({BspEvent::kDieInCommit, server, shard});
        bool again = false;
        for (const BspEvent& e : dead) {
          again |= e.kind == BspEvent::kKillServer && e.who == server;
          script.push_back(e);
        }
        if (!again) Run(o, script, seen);
      }
    }
  }
}

TEST_CASE("one worker: every order of pushes and commits, every death, at every step", "[sim]") {
  BspOptions o;
  o.workers = 1;
  Seen seen;
  const auto prefixes = Orders(o).All();
  REQUIRE(prefixes.size() == 19);  // of 6 orders
  for (o.scripted_step = 1; o.scripted_step <= o.steps; ++o.scripted_step) {
    for (const bool prompt : {false, true}) {
      o.prompt_network = prompt;
      for (o.seed = 0; o.seed < 2; ++o.seed) RunAll(o, prefixes, {}, seen);
    }
  }
  CHECK(seen.runs > 3000);
  CHECK(seen.preimages > 0);
  CHECK(seen.too_old > 0);
}

TEST_CASE("two workers: every order of pushes and commits, every death", "[sim]") {
  BspOptions o;
  o.scripted_step = 2;
  Seen seen;
  RunAll(o, Orders(o).All(), {}, seen);
  CHECK(seen.preimages > 0);
}

TEST_CASE("two shards a server, which commit each by itself", "[sim]") {
  BspOptions o;
  o.workers = 1;
  o.shards = 2;
  o.scripted_step = 2;
  Seen seen;
  RunAll(o, Orders(o).All(), {}, seen);
  CHECK(seen.preimages > 0);
}

TEST_CASE("recovery from base images, of before the step or of after its commits", "[sim]") {
  const Scratch scratch;
  BspOptions o;
  o.workers = 1;
  o.scripted_step = 2;
  o.folder = scratch.path() + "/bsp";
  Seen seen;
  const Script before = {{BspEvent::kImage, 0}, {BspEvent::kImage, 1}};
  for (const bool prompt : {false, true}) {
    o.prompt_network = prompt;
    RunAll(o, Orders(o).All(), before, seen);
    RunAll(o, Orders(o, /*images=*/true).All(), {}, seen);
  }
  CHECK(seen.images > 0);
  CHECK(seen.preimages > 0);
}

}  // namespace
}  // namespace strata::sim
