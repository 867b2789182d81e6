// ChainLink: what the copy before this one asks.
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"
#include "proto/wire/message_codec.h"
#include "server/job/chain_link.h"

namespace strata::server {

absl::Status ChainLink::Check(const Caller& caller, const wire::ForwardFields& fields,
                              bool question) const {
  absl::MutexLock lock(&mu_);
  const ChainConfiguration& c = chain_.configuration();
  if (directive_.members_size() == 0 || fields.chain_epoch != c.epoch) {
    return absl::FailedPreconditionError(
        absl::StrCat("forward.chain_epoch ", fields.chain_epoch, ": this copy goes by ", c.epoch));
  }
  if (fields.log_id != options_.log_id) {
    return absl::FailedPreconditionError(absl::StrCat(
        "forward.log_id \"", fields.log_id, "\": this copy is \"", options_.log_id, "\""));
  }
  // Who knows the log ids is not who has that log: the certificate says which server calls.
  const auto is_it = [&](const ChainMember& member) {
    return member.log_id() == fields.from_log_id &&
           (!caller.asked || member.server() == caller.name ||
            STRATA_MUTATION("chain.any_server_forwards"));
  };
  bool known = false;
  for (int i = 0; i < directive_.members_size(); ++i) {
    const bool before = i + 1 == static_cast<int>(c.place);
    known |= (question || before) && is_it(directive_.members(i));
  }
  known |= question && is_it(directive_.joining());
  if (known || STRATA_MUTATION("chain.entries_of_anybody")) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("forward.from_log_id \"", fields.from_log_id,
                   "\" is not the copy before this one at chain epoch ", c.epoch));
}

Buffer ChainLink::ReplyNow(const wire::ServerState& state) const {
  wire::ForwardReply reply;
  reply.state = state;
  reply.chain_epoch = chain_.configuration().epoch;
  for (size_t i = 0; i < shards_.size(); ++i) {
    wire::ForwardEnd end;
    end.shard = options_.shards[i];
    end.empty = shards_[i].empty;
    if (!end.empty) {
      end.step = chain_.end(i).step;
      end.cut = chain_.end(i).cut;
      end.committed_step = chain_.committed(i).step;
      end.committed_cut = chain_.committed(i).cut;
    }
    end.image = shards_[i].image;
    end.image_bytes = shards_[i].image_bytes;
    reply.ends.push_back(end);
  }
  return wire::EncodeForwardReply(reply);
}

void ChainLink::Answer(const wire::ServerState& state, bool wait, absl::Time deadline,
                       DataReply reply) {
  {
    absl::MutexLock lock(&mu_);
    if (!closed_) {
      Held held{{}, deadline, state, std::move(reply)};
      for (size_t i = 0; i < shards_.size(); ++i) {
        held.until.push_back(wait ? chain_.end(i) : LogEnd());
      }
      held_.push_back(std::move(held));
      reply = nullptr;
      if (wait) WakeAt(deadline);
    }
  }
  if (reply) return reply(absl::UnavailableError("the copy is being closed"));
  Pump();
}

}  // namespace strata::server
