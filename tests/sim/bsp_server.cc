#include "tests/sim/bsp_server.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/runtime/base/failpoints.h"
#include "server/protocol/work_identity.h"
#include "server/shard/request_keys.h"
#include "server/table/gpu_memory.h"
#include "storage/checkpoint/shard_file.h"
#include "storage/eviction/kind.h"
#include "tests/server/shard/shard_fixture.h"

namespace strata::sim {

using server::PullVerdict;
using server::Shard;

BspServer::BspServer(const Options& options) : o_(options), kept_(options.shards) { Start(); }

void BspServer::Error(std::string text) {
  if (error_.empty()) error_ = std::move(text);
}

void BspServer::Start() {
  ++incarnation_;
  tickets_ = std::make_unique<server::TicketBook>(
      incarnation_, Generation(1),
      server::TicketBook::Limits{server::TicketBook::PerSession(o_.lanes), 1 << 20});
  sessions_ = std::make_unique<server::SessionTable>();
  for (uint32_t s = 0; s < o_.shards; ++s) shards_.push_back(Recover(s));
}

std::unique_ptr<Shard> BspServer::Recover(uint32_t s) {
  const Kept& kept = kept_[s];
  const uint32_t number = o_.number * o_.shards + s;
  const auto tables = BspWorkload::Tables(o_.life_cycle);
  const uint64_t hbm_bytes =
      o_.hbm ? server::LeastGpuBytesPerServer(tables, storage::EvictionKind::kLrfu, 1) : 0;
  auto shard = server::MakeShard({.range = server::Ranges(o_.servers * o_.shards)[number],
                                  .id = number,
                                  .lanes = o_.lanes,
                                  .log = &log_,
                                  .hbm_bytes = hbm_bytes,
                                  .tables = tables});
  if (!kept.image.empty()) {
    auto image = storage::ShardFileReader::Open(kept.image);
    const absl::Status loaded = image.ok() ? shard->LoadImage(**image) : image.status();
    if (!loaded.ok()) Error(absl::StrCat("image: ", loaded.message()));
    ++counts_.recovered_images;
  }
  const absl::Status replayed =
      log_.Replay(kept.segment, [&](const auto& record) { return shard->Replay(record); });
  if (!replayed.ok()) Error(absl::StrCat("replay: ", replayed.message()));
  if (shard->clock().value < kept.told_clock) Error("a commit that was seen is lost");
  return shard;
}

void BspServer::Kill() { shards_.clear(); }

uint64_t BspServer::least_clock() const {
  uint64_t least = ~uint64_t{0};
  for (uint32_t s = 0; s < o_.shards; ++s) {
    least = std::min(least, up() ? shards_[s]->clock().value : kept_[s].told_clock);
  }
  return least;
}

uint64_t BspServer::greatest_clock() const {
  uint64_t greatest = 0;
  for (uint32_t s = 0; s < o_.shards; ++s) {
    greatest = std::max(greatest, up() ? shards_[s]->clock().value : kept_[s].told_clock);
  }
  return greatest;
}

storage::HashSum BspServer::Hash() {
  storage::HashSum sum;
  for (const auto& shard : shards_) sum += shard->Summarize()->hash;
  return sum;
}

// Keys of table 0 that the lanes have at a step.
std::vector<Position> BspServer::KeysOf(const Shard& shard, const BspMessage& m) {
  const auto update = server::UpdateFor(o_.load->Node(m.step, CoverNodes(m.lanes, o_.lanes)[0]),
                                        shard.first_position(), shard.last_position());
  const auto positions = update.tables[0].positions;
  return {positions.begin(), positions.end()};
}

// A ticket for what is pushed as one node; of any other keys there is none to give.
wire::Ticket BspServer::Give(const BspMessage& m) {
  if (m.lanes.empty() || CoverNodes(m.lanes, o_.lanes).size() != 1) return {};
  auto keys = std::make_shared<server::RequestKeys>();
  for (const auto& shard : shards_) keys->groups.emplace_back().positions = KeysOf(*shard, m);
  std::vector<server::TicketBook::KeysPtr> dropped;
  return tickets_->Add(SessionId(m.worker + 1), m.step, 0, keys, dropped);
}

// Whether the named ticket stands for keys here. It must be those that would have been sent.
bool BspServer::Known(const BspMessage& m) {
  auto keys = tickets_->Find(SessionId(m.worker + 1), m.named);
  if (!keys.ok()) {
    ++counts_.stale_tickets;
    return false;
  }
  ++counts_.named_tickets;
  for (size_t s = 0; s < shards_.size(); ++s) {
    if ((*keys)->groups[s].positions != KeysOf(*shards_[s], m)) {
      Error("a ticket stands for other keys");
    }
  }
  return true;
}

BspMessage BspServer::Serve(const BspMessage& m) {
  BspMessage reply = m;
  reply.kind = BspMessage::kBroken;
  if (!up()) return reply;
  reply.identity = {incarnation_, 1};
  if (m.named && !Known(m)) return reply;
  if (m.kind == BspMessage::kPull) {
    ServePull(m, reply);
  } else if (m.kind == BspMessage::kPush) {
    ServePush(m, reply);
  } else {
    reply.kind = BspMessage::kPrefetched;
    reply.given = Give(m);
  }
  return reply;
}

bool BspServer::WouldWait(const BspMessage& pull) const {
  return std::any_of(shards_.begin(), shards_.end(), [&](const auto& shard) {
    return shard->CheckPull(pull.step) == PullVerdict::kWait;
  });
}

// As server::PullCall joins what the shards say.
void BspServer::ServePull(const BspMessage& m, BspMessage& reply) {
  reply.given = m.named ? m.named : Give(m);
  uint64_t resume = 0;
  bool wait = false;
  for (size_t s = 0; s < shards_.size(); ++s) {
    Shard& shard = *shards_[s];
    kept_[s].told_clock = std::max(kept_[s].told_clock, shard.clock().value);
    const PullVerdict verdict = shard.CheckPull(m.step);
    if (verdict == PullVerdict::kTooOld) resume = std::max(resume, shard.ResumeStep().value);
    wait |= verdict == PullVerdict::kWait;
  }
  if (resume != 0) {
    reply.kind = BspMessage::kTooOld;
    reply.step = Step(resume);
    ++counts_.too_old;
    return;
  }
  reply.kind = wait ? BspMessage::kNotYet : BspMessage::kServed;
  if (wait) return;
  for (const auto& shard : shards_) {
    const bool preimages = shard->CheckPull(m.step) == PullVerdict::kServePreimage;
    counts_.served_preimages += preimages;
    CheckWeights(*shard, m.step, preimages);
  }
}

// A sample of rows, as of the step before.
void BspServer::CheckWeights(Shard& shard, Step step, bool preimages) {
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
  if (!s.ok()) return Error(absl::StrCat("read: ", s.message()));
  for (size_t i = 0; i < positions.size(); ++i) {
    const auto want = o_.load->After(Step(step.value - 1)).Weights(0, positions[i]);
    if (std::memcmp(want.data(), out.data() + i * want.size(), want.size() * 4) != 0) {
      return Error(absl::StrCat("a lane was served wrong weights at step ", step.value));
    }
  }
}

void BspServer::ServePush(const BspMessage& m, BspMessage& reply) {
  wire::PushRequestView request;
  request.fields.step = m.step;
  for (const LaneNode n : m.nodes) request.contributions.push_back({n, 0, 0, 0, {}});
  const SessionId session(m.worker + 1);
  sessions_->Open(session);
  if (!sessions_->Use(session, m.sequence, server::WorkOfContributions(request))) {
    return Error("a number of a session stands for two pieces of work");
  }
  reply.kind = BspMessage::kAccepted;
  for (const auto& shard : shards_) {
    for (const LaneNode n : m.nodes) {
      const auto answer =
          shard->Contribute(m.step, n,
                            server::UpdateFor(o_.load->Node(m.step, n), shard->first_position(),
                                              shard->last_position()));
      if (answer.verdict == server::GateVerdict::kTooNew) reply.kind = BspMessage::kBroken;
      if (answer.verdict == server::GateVerdict::kInvalidNode) Error("invalid node");
      if (answer.mismatch) Error("a repeated contribution differs");
    }
  }
}

void BspServer::Commit(uint32_t s) {
  auto committed = shards_[s]->TryCommit();
  if (!committed.ok() || !*committed) Error("commit failed");
  tickets_->Committed(Step(least_clock()));
}

void BspServer::DieInCommit(uint32_t s) {
  ScopedFailpoint death("server.commit.appended", {.act = FailWith(absl::AbortedError("kill"))});
  if (shards_[s]->TryCommit().ok()) Error("the failpoint was not passed");
  Kill();
}

void BspServer::WriteImage(uint32_t s) {
  Shard& shard = *shards_[s];
  const std::string path = absl::StrCat(o_.folder, "/", s, "-", counts_.images++);
  const uint64_t segment = *log_.Rotate();
  const absl::Status written = shard.WriteImage(path, segment);
  if (!written.ok()) return Error(absl::StrCat("image: ", written.message()));
  kept_[s].image = path;
  kept_[s].segment = segment;
  uint64_t needed = segment;
  for (const Kept& k : kept_) needed = std::min(needed, k.segment);
  if (!log_.Trim(needed).ok()) Error("the log was not trimmed");
}

}  // namespace strata::sim
