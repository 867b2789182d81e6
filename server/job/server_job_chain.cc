// ServerJob: a copy of its shards among others (server/protocol/replica_chain.h).
#include <glog/logging.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/core/mutation.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/wire/message_codec.h"
#include "server/job/server_job.h"
#include "server/snapshot/image_files.h"
#include "storage/checkpoint/shard_file.h"

namespace strata::server {

// A Forward that is being taken: every shard ends its part once.
struct ServerJob::Forwarded {
  // What the request and records point into. Sums stay there until they are applied.
  struct Message {
    Buffer bytes;
    std::shared_ptr<void> memory;
  };
  std::shared_ptr<const Message> message;
  wire::ForwardRequestView request;
  std::vector<std::vector<ReceivedRecord>> records;  // by shard
  std::vector<std::vector<size_t>> images;           // by shard: indices into the request's
  std::function<void(absl::Status)> finish;
  std::atomic<size_t> parts{1};
  absl::Mutex mu;
  absl::Status status ABSL_GUARDED_BY(mu);

  void End(absl::Status s) {
    {
      absl::MutexLock lock(&mu);
      if (status.ok()) status = std::move(s);
    }
    if (parts.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    absl::Status first;
    {
      absl::MutexLock lock(&mu);
      first = status;
    }
    finish(std::move(first));
  }
};

// What was recovered is committed up to the entry before the last one; async: nobody knows (R10).
std::shared_ptr<ChainLink> ServerJob::MakeLink(const OpenedJob& opened) {
  if (!plan_.copy) return nullptr;
  ChainLink::Options o;
  o.job = plan_.job;
  o.identity = plan_.identity;
  o.generation = plan_.generation;
  o.server_index = plan_.server_index;
  o.log_id = plan_.copy->log_id;
  o.folder = opened.folder;
  o.transport = options_.transport;
  o.timer = options_.timer;
  o.disk = options_.disk;
  o.log = log_.get();
  o.image_bytes_per_second = plan_.snapshot_bytes_per_second;
  o.most_kept_bytes = plan_.log_bytes;
  o.committed = [this](size_t shard, LogEnd end) { runners_[shard]->SetCommitted(Step(end.step)); };
  o.want_image = [this](size_t shard) { WriteImage(shard); };
  std::vector<LogEnd> ends, committed;
  for (const auto& shard : opened.shards) {
    o.shards.push_back(shard->options().id);
    ends.push_back(shard->log_end());
    LogEnd known = ends.back();
    if (opened.recovered && plan_.synchronous && known.step > 0) --known.step;
    if (opened.recovered && !plan_.synchronous) known = LogEnd();
    committed.push_back(known);
    shard->WaitForCopies(Step(known.step));
    parts_.push_back(std::make_unique<EntryParts>(
        [memory = options_.memory](uint64_t bytes) { return memory->Take(bytes); }));
  }
  head_ = false;
  const std::vector<bool> empty(ends.size(), opened.empty);
  auto link =
      std::make_shared<ChainLink>(std::move(o), std::move(ends), std::move(committed), empty);
  for (size_t i = 0; i < opened.shards.size(); ++i) {
    opened.shards[i]->SetAppended(
        [link = link.get(), i](const AppendedRecord& record) { link->Appended(i, record); });
  }
  if (!opened.empty) return link;
  for (const ShardPlan& shard : plan_.shards) {
    receivers_.push_back(std::make_unique<ImageReceiver>(
        absl::StrCat(opened.folder, "/receiving-", shard.id.value)));
  }
  receiving_ = receivers_.size();
  return link;
}

absl::Status ServerJob::CheckHead() const {
  if (head_ || STRATA_MUTATION("chain.backup_answers")) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("shards of server ", plan_.server_index, " of job ", plan_.job.value,
                   " have another head at map epoch ", map_epoch_.load()));
}

// 1 each shard goes by the configuration, behind what waits in its queue  2 the copy does, when the
// last shard has it (GoBy). In between neighbours hear that it goes by the one before.
void ServerJob::FollowChain(const ServerJobDirective& directive) {
  if (link_ == nullptr || !directive.has_chain()) return;
  const auto chain = std::make_shared<const ChainDirective>(directive.chain());
  MutexLock lock(&chain_mu_);
  if (chain_ != nullptr && chain_->SerializeAsString() == chain->SerializeAsString()) return;
  const auto number = handover_.Told(chain->chain_epoch());
  if (!number) return;
  chain_ = chain;
  for (size_t i = 0; i < runners_.size(); ++i) {
    runners_[i]->GoBy(chain->chain_epoch(), [this, i, number = *number, chain] {
      MutexLock going(&chain_mu_);
      if (handover_.Handed(i, number)) GoBy(*chain);
    });
  }
  if (runners_.empty()) GoBy(*chain);
}

void ServerJob::GoBy(const ChainDirective& chain) {
  const bool head = chain.place() == 0;
  if (head && !head_) {
    LOG(INFO) << "copy_promoted job=" << plan_.job.value << " server=" << plan_.server_index
              << " chain_epoch=" << chain.chain_epoch() << " members=" << chain.members_size();
    if (absl::Status s = Failpoint("server.chain.promote"); !s.ok()) LOG(ERROR) << s;
  }
  if (!link_->Configure(chain)) return;
  if (head && !head_) {
    ServerJobDirective newest;
    {
      absl::MutexLock lock(&mu_);
      newest = newest_;
    }
    FollowSessions(newest);  // before anybody's push is taken
    head_ = true;
    FollowNewest();
  }
  head_ = head;
  WatchNeighbours(chain);
}

void ServerJob::WatchNeighbours(const ChainDirective& chain) {
  std::vector<PeerWatch::Peer> peers;
  const auto add = [&](const ChainMember& copy) {
    wire::ForwardRequestView question;
    wire::ForwardFields& f = question.fields;
    f.header.job = plan_.job;
    f.header.generation = plan_.generation;
    f.header = f.header.To(plan_.server_index);
    f.cluster_id = plan_.identity.cluster.text();
    f.job_uid = plan_.identity.job.text();
    f.chain_epoch = chain.chain_epoch();
    f.from_log_id = plan_.copy->log_id;
    f.log_id = copy.log_id();
    auto bytes = wire::EncodeForwardRequest(question);
    if (bytes.ok()) peers.push_back({copy, *std::move(bytes)});
  };
  const auto place = static_cast<int>(chain.place());
  if (place > 0) add(chain.members(place - 1));
  if (place + 1 < chain.members_size()) add(chain.members(place + 1));
  if (place + 1 == chain.members_size() && chain.has_joining()) add(chain.joining());
  watch_->Watch(std::move(peers));
}

void ServerJob::Forward(const Caller& caller, Buffer bytes, const wire::ForwardRequestView& request,
                        DataReply reply) {
  const wire::ForwardFields& f = request.fields;
  if (absl::Status s = Failpoint("server.chain.received"); !s.ok()) return reply(s);
  // UNAVAILABLE says that nobody is here.
  reply = [reply = std::move(reply)](absl::StatusOr<Buffer> answer) {
    if (absl::IsUnavailable(answer.status())) {
      answer = absl::AbortedError(answer.status().message());
    }
    reply(std::move(answer));
  };
  if (link_ == nullptr || f.cluster_id != plan_.identity.cluster.text() ||
      f.job_uid != plan_.identity.job.text() || f.header.generation != plan_.generation) {
    return reply(absl::FailedPreconditionError(
        absl::StrCat("forward of generation ", f.header.generation.value, ": ",
                     Describe(plan_.identity), ", generation ", plan_.generation.value,
                     link_ == nullptr ? ", has no copies" : ", is here")));
  }
  const bool question = request.entries.empty() && request.images.empty();
  if (absl::Status s = link_->Check(caller, f, question); !s.ok()) return reply(std::move(s));
  if (absl::Status s = Failpoint("server.chain.checked"); !s.ok()) return reply(std::move(s));
  auto memory = options_.memory->Take(bytes.size());
  if (!memory.ok()) return reply(memory.status());
  auto call = std::make_shared<Forwarded>();
  call->message = std::make_shared<const Forwarded::Message>(
      Forwarded::Message{std::move(bytes), *std::move(memory)});
  call->request = request;
  call->records.resize(runners_.size());
  call->images.resize(runners_.size());
  const auto index = [&](ShardId shard) -> absl::StatusOr<size_t> {
    for (size_t i = 0; i < plan_.shards.size(); ++i) {
      if (plan_.shards[i].id == shard) return i;
    }
    return absl::FailedPreconditionError(
        absl::StrCat("forward.shard ", shard.value, " is not here"));
  };
  for (const wire::ForwardEntryView& entry : request.entries) {
    const auto at = index(entry.shard);
    if (!at.ok()) return reply(at.status());
    auto whole = parts_[*at]->Take(entry);
    if (!whole.ok()) return reply(whole.status());
    if (!*whole || link_->empty(*at)) continue;
    ReceivedRecord received{(*whole)->record, call->message, (*whole)->crc32c};
    if ((*whole)->memory != nullptr) {  // it came in parts
      received.owner = std::make_shared<const EntryParts::Whole>(*std::move(*whole));
    }
    call->records[*at].push_back(std::move(received));
  }
  for (size_t i = 0; i < request.images.size(); ++i) {
    const auto at = index(request.images[i].shard);
    if (!at.ok()) return reply(at.status());
    call->images[*at].push_back(i);
  }
  const absl::Time deadline =
      options_.timer->Now() + absl::Milliseconds(std::min(f.wait_ms, kMaxWaitMs));
  call->finish = [this, wait = f.wait_ms > 0, deadline,
                  reply = std::move(reply)](absl::Status status) mutable {
    if (!status.ok()) return reply(std::move(status));
    wire::ServerState state = Identity();
    state.incarnation = options_.process;
    link_->Answer(state, wait, deadline, std::move(reply));
  };
  TakeForwarded(call);
}

// The answer is given without the lock: it may bring the next call, in this thread.
void ServerJob::TakeForwarded(const std::shared_ptr<Forwarded>& call) {
  absl::Status closed;
  {
    absl::ReaderMutexLock lock(&posting_);
    if (closed_) closed = Closed();
    for (size_t i = 0; i < runners_.size() && closed.ok(); ++i) {
      if (!call->images[i].empty()) TakeImage(i, call);
      if (call->records[i].empty()) continue;
      ++call->parts;
      runners_[i]->Receive(call->request.fields.chain_epoch, std::move(call->records[i]),
                           [this, i, call](absl::Status s) {
                             if (absl::IsAlreadyExists(s)) LogsDiffer(i, s);
                             call->End(std::move(s));
                           });
    }
  }
  call->End(std::move(closed));
}

// However often it is sent, it will not fit: this copy is of no use, and is made anew.
void ServerJob::LogsDiffer(size_t shard, const absl::Status& why) {
  absl::MutexLock lock(&mu_);
  if (!copy_trouble_.ok()) return;
  copy_trouble_ = absl::DataLossError(why.message());
  LOG(ERROR) << "copy_differs job=" << plan_.job.value << " server=" << plan_.server_index
             << " shard=" << plan_.shards[shard].id.value << " error=\"" << why << '"';
}

void ServerJob::TakeImage(size_t shard, const std::shared_ptr<Forwarded>& call) {
  if (!link_->empty(shard)) return RefuseImage(shard, call);
  ++call->parts;
  runners_[shard]->Do(
      call->request.fields.chain_epoch,
      [this, shard, call](Shard& rows) -> absl::Status {
        if (receivers_[shard] == nullptr) return absl::OkStatus();
        {
          absl::MutexLock lock(&mu_);
          if (!copy_trouble_.ok()) return absl::AbortedError("this copy takes no image any more");
        }
        ImageReceiver& receiver = *receivers_[shard];
        for (const size_t i : call->images[shard]) {
          const auto whole = receiver.Put(call->request.images[i]);
          if (!whole.ok()) return whole.status();
          link_->Receiving(shard, receiver.image(), receiver.received());
          if (*whole) return LoadReceived(shard, rows);
        }
        return absl::OkStatus();
      },
      [call](absl::Status s) { call->End(std::move(s)); });
}

// One that was taken is sent twice where an answer was lost. Another one says that the log of the
// copy before this one goes on behind what is here: this copy is of no use, and is made anew.
void ServerJob::RefuseImage(size_t shard, const std::shared_ptr<Forwarded>& call) {
  for (const size_t i : call->images[shard]) {
    const wire::ForwardImageView& part = call->request.images[i];
    if (part.offset != 0 || part.image == link_->image(shard)) continue;
    const std::string why = absl::StrCat(
        "shard ", part.shard.value, " is here up to step ", link_->end(shard).step,
        ", and the log that it copies goes on later: the copy begins anew with a newer image");
    {
      absl::MutexLock lock(&mu_);
      copy_trouble_ = absl::DataLossError(why);
    }
    ++call->parts;
    return call->End(absl::FailedPreconditionError(why));
  }
}

// 1 the image's rows, 2 an image of our own, which names a segment of the log here, 3 OPEN, when
// all shards are here: without it a process that begins anew begins with nothing, too.
absl::Status ServerJob::LoadReceived(size_t shard, Shard& rows) {
  const auto fail = [&](absl::Status s) {
    LOG(ERROR) << "image_not_loaded job=" << plan_.job.value << " shard=" << rows.options().id.value
               << " error=\"" << s << '"';
    absl::MutexLock lock(&mu_);
    copy_trouble_ = s;
    return s;
  };
  const auto damaged = [&](const absl::Status& s) {
    if (!absl::IsDataLoss(s)) return fail(s);
    return fail(absl::DataLossError(
        absl::StrCat("the base image of shard ", rows.options().id.value, " that server ",
                     link_->sender(), " sent is damaged: ", s.message())));
  };
  auto reader = storage::ShardFileReader::Open(receivers_[shard]->path());
  if (!reader.ok()) return damaged(reader.status());
  if (absl::Status s = rows.LoadImage(**reader); !s.ok()) return damaged(s);
  const std::string path =
      absl::StrCat(folder_, "/", ImageFileName({rows.options().id, rows.clock()}));
  absl::Status s = rows.WriteImage(path, log_->stats().last_segment);
  if (!s.ok()) return fail(std::move(s));
  receivers_[shard].reset();
  const bool last = --receiving_ == 0;
  Failpoint("server.chain.counted").IgnoreError();
  if (last) s = WriteOpened(plan_, root_);
  if (!s.ok()) return fail(std::move(s));
  link_->Loaded(shard, rows.log_end());
  return absl::OkStatus();
}

void ServerJob::ReportCopy(ServerJobReport& report) const {
  if (link_ == nullptr) return;
  link_->Report(*report.mutable_copy());
  link_->ReportImages(report);
  absl::Status trouble = link_->trouble();
  if (trouble.ok()) {
    absl::MutexLock lock(&mu_);
    trouble = copy_trouble_;
  }
  if (trouble.ok()) return;
  report.set_state(absl::IsDataLoss(trouble) ? ServerJobReport::LOST : ServerJobReport::FAILED);
  report.set_message(std::string(trouble.message()));
}

}  // namespace strata::server
