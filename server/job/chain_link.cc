#include "server/job/chain_link.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "proto/runtime/base/failpoints.h"
#include "proto/wire/forward_entry.h"
#include "proto/wire/message_codec.h"
#include "proto/wire/message_limits.h"
#include "server/job/peer_watch.h"

namespace strata::server {
ChainLink::ChainLink(Options options, std::vector<LogEnd> ends, std::vector<LogEnd> committed,
                     std::vector<bool> empty)
    : options_(std::move(options)),
      pace_(options_.image_bytes_per_second),
      disk_(MakeSerial(options_.disk)),
      chain_(ends, committed),
      backoff_({kFirstPause, kLastPause, IdSource::System()}) {
  for (size_t i = 0; i < ends.size(); ++i) {
    Shard& shard = shards_.emplace_back(ends[i]);
    shard.empty = i < empty.size() && empty[i];
    readers_.emplace_back();
    shard.told = committed[i];
  }
}

ChainLink::~ChainLink() { Close(); }

void ChainLink::Close() {
  std::vector<Held> held;
  std::unique_ptr<Executor> disk;
  {
    absl::MutexLock lock(&mu_);
    closed_ = true;
    held.swap(held_);
    disk = std::move(disk_);
  }
  disk.reset();  // waits; what it does sets alarms
  options_.timer->Cancel(this);
  { const absl::MutexLock lock(&calling_); }
  for (const Held& h : held) h.reply(absl::UnavailableError("the copy is being closed"));
}

ChainConfiguration ChainLink::ConfigurationOf(const ChainDirective& directive) {
  ChainConfiguration c;
  c.epoch = directive.chain_epoch();
  c.place = directive.place();
  c.members = static_cast<uint32_t>(directive.members_size());
  c.full = directive.full();
  c.min_replicas = std::max(directive.min_replicas(), 1u);
  const int next = static_cast<int>(c.place) + 1;
  if (next < directive.members_size()) {
    c.next = directive.members(next).log_id();
  } else if (next == directive.members_size() && directive.has_joining()) {
    c.next = directive.joining().log_id();
  }
  return c;
}

bool ChainLink::Configure(const ChainDirective& directive) {
  const ChainConfiguration c = ConfigurationOf(directive);
  {
    absl::MutexLock lock(&mu_);
    const ChainConfiguration before = chain_.configuration();
    if (closed_ || !chain_.Configure(c)) return false;
    directive_ = directive;
    if (c.epoch != before.epoch) {  // whoever refused a call may know it by now
      paused_ = false;
      backoff_.OnSuccess();
    }
    const int next = static_cast<int>(c.place) + 1;
    ChainMember copy;
    if (next < directive.members_size()) copy = directive.members(next);
    if (next == directive.members_size()) copy = directive.joining();
    if (copy.data_address() != address_ || c.next != before.next) {
      address_ = copy.data_address();
      channel_ = ConnectToCopy(*options_.transport, copy);
      for (Shard& shard : shards_) {
        StopSending(shard);
        if (c.next != before.next) shard.needs_image = false;
      }
    }
  }
  Pump();
  return true;
}

void ChainLink::Appended(size_t shard, const AppendedRecord& record) {
  const LogEnd end = record.end;
  bool wanted = false;
  {
    absl::MutexLock lock(&mu_);
    wanted = !chain_.configuration().next.empty();
  }
  ChainEntryPtr entry;
  if (wanted) entry = MakeChainEntry(record.header, end, record.parts, record.crc32c);
  {
    absl::MutexLock lock(&mu_);
    const LogEnd before = chain_.end(shard);
    chain_.Appended(shard, end);
    shards_[shard].segments.Appended(before, record.at.segment);
    if (entry == nullptr || chain_.configuration().next.empty()) {
      shards_[shard].entries.Restart(end);  // read again from the log, where it is wanted
    } else {
      shards_[shard].entries.Add(before, std::move(entry));
      Bound();
    }
  }
  Pump();
}

void ChainLink::Bound() {
  for (;;) {
    uint64_t bytes = 0;
    Shard* largest = &shards_[0];
    for (Shard& shard : shards_) {
      bytes += shard.entries.bytes();
      if (shard.entries.bytes() > largest->entries.bytes()) largest = &shard;
    }
    if (bytes <= kMostBytes) return;
    largest->entries.DropFirst();
  }
}

void ChainLink::Loaded(size_t shard, LogEnd end) {
  {
    absl::MutexLock lock(&mu_);
    shards_[shard].empty = false;
    shards_[shard].entries.Restart(end);
    chain_.Appended(shard, end);
  }
  Pump();
}

void ChainLink::Receiving(size_t shard, uint64_t image, uint64_t bytes) {
  absl::MutexLock lock(&mu_);
  shards_[shard].image = image;
  shards_[shard].image_bytes = bytes;
}

void ChainLink::WakeAt(absl::Time when) {
  options_.timer->At(when, this, [self = weak_from_this()] {
    if (const auto link = self.lock()) link->Pump();
  });
}

void ChainLink::ReadyAt(size_t shard, absl::Time when) {
  options_.timer->At(when, this, [self = weak_from_this(), shard] {
    const auto link = self.lock();
    if (link == nullptr) return;
    {
      absl::MutexLock lock(&link->mu_);
      link->chain_.SetReady(shard, true);
    }
    link->Pump();
  });
}

void ChainLink::Pause(absl::Duration wait) {
  if (paused_) return;
  paused_ = true;
  options_.timer->At(options_.timer->Now() + wait, this, [self = weak_from_this()] {
    const auto link = self.lock();
    if (link == nullptr) return;
    {
      absl::MutexLock lock(&link->mu_);
      link->paused_ = false;
    }
    link->Pump();
  });
}

// Decides with the lock, acts without it.
void ChainLink::Pump() {
  Work work;
  {
    absl::ReaderMutexLock calling(&calling_);
    {
      absl::MutexLock lock(&mu_);
      if (closed_) return;
      Collect(work);
    }
    for (const auto& [shard, end] : work.committed) options_.committed(shard, end);
  }
  for (auto& [reply, bytes] : work.replies) reply(std::move(bytes));
  for (Out& out : work.out) Send(std::move(out));
}

void ChainLink::Collect(Work& work) {
  const absl::Time now = options_.timer->Now();
  bool waits = false;
  for (size_t i = 0; i < shards_.size(); ++i) {
    const LogEnd committed = chain_.committed(i);
    waits |= committed < chain_.end(i) && !shards_[i].empty;
    if (committed <= shards_[i].told) continue;
    shards_[i].told = committed;
    work.committed.emplace_back(i, committed);
  }
  if (!waits) waits_since_.reset();
  if (waits && !waits_since_) waits_since_ = now;
  for (auto held = held_.begin(); held != held_.end();) {
    bool all = true;
    for (size_t i = 0; i < held->until.size(); ++i) all &= chain_.committed(i) >= held->until[i];
    if (!all && now < held->deadline) {
      ++held;
      continue;
    }
    work.replies.emplace_back(std::move(held->reply), ReplyNow(held->state));
    held = held_.erase(held);
  }
  if (chain_.lost_end() && trouble_.ok()) {
    trouble_ = absl::DataLossError(
        "the copy after this one has an entry that is missing here: the log lost its end, as after "
        "a power failure");
    LOG(ERROR) << "copy_lost_end job=" << options_.job.value << " server=" << options_.server_index
               << " error=\"" << trouble_ << '"';
  }
  if (paused_ || channel_ == nullptr) return;
  while (auto call = chain_.Next(true)) {
    Out out;
    if (Fill(*call, out)) {
      work.out.push_back(std::move(out));
    } else {
      chain_.Drop(call->id);
    }
  }
}

// False: nothing of it can be sent now; its shards are not ready.
bool ChainLink::Fill(const ReplicaChain::Call& call, Out& out) {
  const ChainConfiguration& c = chain_.configuration();
  out.call = call.id;
  out.channel = channel_;
  wire::ForwardFields& fields = out.message.fields;
  fields.header.job = options_.job;
  fields.header.generation = options_.generation;
  fields.header.server = options_.server_index + 1;
  fields.cluster_id = options_.identity.cluster.text();
  fields.job_uid = options_.identity.job.text();
  fields.chain_epoch = call.epoch;
  fields.from_log_id = options_.log_id;
  fields.log_id = c.next;
  const bool waits = call.wait || (!call.parts.empty() && c.place + 2 < c.members);
  fields.wait_ms = waits ? static_cast<uint32_t>(absl::ToInt64Milliseconds(kWait)) : 0;
  uint64_t bytes = 0;
  const size_t n = call.parts.size();
  for (size_t k = 0; k < n; ++k) {  // each call begins with another shard
    const ReplicaChain::Part& part = call.parts[(call.id + k) % n];
    if (part.image || shards_[part.shard].needs_image) {
      FillImage(part, out);
      continue;
    }
    auto entries =
        shards_[part.shard].entries.After(part.after, kCallBytes / n, wire::kMaxForwarded / n);
    if (!entries) {
      chain_.SetReady(part.shard, false);
      Read(part.shard, part.after);
      continue;
    }
    ReadAhead(part.shard, part.after);
    if (entries->front()->size() > kCallBytes) {
      if (bytes == 0) bytes += FillPart(part.shard, std::move(entries->front()), out);
      continue;
    }
    for (ChainEntryPtr& entry : *entries) {
      if (bytes > 0 && bytes + entry->size() > kCallBytes) break;  // with the next one
      bytes += entry->size();
      out.entries.push_back(std::move(entry));
    }
  }
  return call.parts.empty() || !out.entries.empty() || !out.parts.empty() || !out.chunks.empty();
}

uint64_t ChainLink::FillPart(size_t shard, ChainEntryPtr entry, Out& out) {
  Shard& s = shards_[shard];
  const LogEnd of = entry->end;
  if (s.part_of != of) s.part_at = 0;
  s.part_of = of;
  auto part = EntryPart::From(std::move(entry), s.part_at, kCallBytes);
  const uint64_t bytes = part->bytes;
  sent_parts_[out.call].push_back({shard, of, s.part_at + bytes});
  out.parts.emplace_back(shard, std::move(part));
  return bytes;
}

// Not arrived, or refused: the record is sent from its beginning again.
void ChainLink::PartsAnswered(uint64_t call, bool arrived) {
  const auto sent = sent_parts_.extract(call);
  if (sent.empty()) return;
  for (const SentPart& part : sent.mapped()) {
    Shard& shard = shards_[part.shard];
    if (shard.part_of == part.of) shard.part_at = arrived ? part.next : 0;
  }
}

bool ChainLink::FillImage(const ReplicaChain::Part& part, Out& out) {
  Shard& shard = shards_[part.shard];
  const bool mine = shard.sending && part.next.image == shard.sending->image;
  const uint64_t offset = mine ? part.next.image_bytes : 0;
  if (!shard.chunk || shard.chunk->offset != offset) {
    ReadImage(part.shard, offset);
    return false;
  }
  out.message.images.push_back(shard.chunk->View(options_.shards[part.shard]));
  out.chunks.push_back(*std::exchange(shard.chunk, std::nullopt));
  return true;
}

void ChainLink::Send(Out out) {
  const uint64_t call = out.call;
  if (absl::Status s = Failpoint("server.chain.forward"); !s.ok()) return Answered(call, s);
  for (const auto& [shard, part] : out.parts) {
    out.message.entries.push_back(part->View(options_.shards[shard]));
  }
  std::vector<Buffer> entries;
  for (const ChainEntryPtr& entry : out.entries) entries.push_back(entry->sent.bytes());
  auto pieces = wire::EncodeForwardPieces(out.message, entries);
  if (!pieces.ok()) {
    LOG(ERROR) << "copy_not_fed job=" << options_.job.value << " server=" << options_.server_index
               << " next=retry error=\"" << pieces.status() << '"';
    return Answered(call, pieces.status());
  }
  const absl::Duration timeout = absl::Milliseconds(out.message.fields.wait_ms) + kPatience;
  std::vector<ShardId> whole;  // of which the last part goes with this call
  for (const wire::ForwardImageView& part : out.message.images) {
    if (part.offset + part.data.size() == part.bytes) whole.push_back(part.shard);
  }
  out.channel->CallInPieces(
      DataMethod::kForward, *std::move(pieces), timeout,
      [self = weak_from_this(), call, whole = std::move(whole)](absl::StatusOr<Buffer> reply) {
        const auto link = self.lock();
        if (link == nullptr) return;
        if (absl::IsDataLoss(reply.status())) link->ImagesRefused(whole, reply.status());
        link->Answered(call, reply);
      });
}

void ChainLink::Answered(uint64_t call, const absl::StatusOr<Buffer>& reply) {
  absl::StatusOr<wire::ForwardReply> message =
      reply.ok() ? wire::ParseForwardReply(reply->span())
                 : absl::StatusOr<wire::ForwardReply>(reply.status());
  if (message.ok()) {
    if (absl::Status s = Failpoint("server.chain.acked"); !s.ok()) message = s;
  }
  {
    absl::MutexLock lock(&mu_);
    if (closed_) return;
    PartsAnswered(call, message.ok());
    if (message.ok() && message->chain_epoch == chain_.configuration().epoch) {
      std::vector<std::optional<NextEnd>> next(shards_.size());
      for (const wire::ForwardEnd& end : message->ends) {
        const auto at = std::find(options_.shards.begin(), options_.shards.end(), end.shard);
        if (at == options_.shards.end()) continue;
        next[static_cast<size_t>(at - options_.shards.begin())] =
            NextEnd{end.empty,
                    {end.step, end.cut},
                    {end.committed_step, end.committed_cut},
                    end.image,
                    end.image_bytes};
      }
      chain_.Replied(call, message->chain_epoch, next);
      backoff_.OnSuccess();
      for (size_t i = 0; i < shards_.size(); ++i) {
        const auto told = chain_.next(i);
        if (told && told->empty) shards_[i].needs_image = false;
        if (!told || told->empty || shards_[i].needs_image) continue;
        // What the copies after the next one lack may be asked of this one (R7).
        shards_[i].entries.Have(std::min(told->committed, chain_.end(i)), told->end);
        shards_[i].refused = 0;
        shards_[i].damage.clear();
        StopSending(shards_[i]);
      }
    } else {
      chain_.Broken(call);
      Pause(backoff_.OnFailure());
    }
  }
  Pump();
}

}  // namespace strata::server
