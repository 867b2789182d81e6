#include "tests/proto/wire/codec_oracle.h"

#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/buffer.h"
#include "proto/wire/message_codec.h"

namespace strata::testing {
namespace {

void Fill(const wire::Header& h, Header* out) {
  out->set_job(h.job.value);
  out->set_session(h.session.value);
  out->set_generation(h.generation.value);
  out->set_map_epoch(h.map_epoch.value);
  out->set_server(h.server);
}

void Fill(const wire::ServerState& s, ServerState* out) {
  out->set_incarnation(s.incarnation);
  out->set_generation(s.generation.value);
  out->set_map_epoch(s.map_epoch.value);
  out->set_clock(s.clock.value);
}

void Fill(const wire::GroupView& g, Group* out) {
  out->set_table(g.table.value);
  out->set_shard(g.shard.value);
  out->set_keys(g.key_bytes.data(), g.key_bytes.size());
  out->set_values(g.value_bytes.data(), g.value_bytes.size());
  out->set_crc32c(g.crc32c);
}

// A ticket without content is none.
template <typename M>
void FillTicket(const wire::Ticket& t, M* m) {
  if (t == wire::Ticket()) return;
  Ticket* out = m->mutable_ticket();
  out->set_incarnation(t.incarnation);
  out->set_number(t.number);
  out->set_keys(t.keys);
  out->set_fingerprint(t.fingerprint);
}

std::vector<Key> KeysOf(const wire::GroupView& g) {
  std::vector<Key> keys(g.keys());
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = g.key(i);
  return keys;
}

Buffer Encode(const wire::OpenSessionRequest& m) { return wire::EncodeOpenSessionRequest(m); }
Buffer Encode(const wire::OpenSessionReply& m) { return wire::EncodeOpenSessionReply(m); }
Buffer Encode(const wire::PushReply& m) { return wire::EncodePushReply(m); }
Buffer Encode(const wire::PrefetchReply& m) { return wire::EncodePrefetchReply(m); }
Buffer Encode(const wire::MarkRequest& m) { return wire::EncodeMarkRequest(m); }
Buffer Encode(const wire::MarkReply& m) { return wire::EncodeMarkReply(m); }
Buffer Encode(const wire::ForwardRequestView& m) { return *wire::EncodeForwardRequest(m); }
Buffer Encode(const wire::ForwardReply& m) { return wire::EncodeForwardReply(m); }

// Our encoders make groups whose value bytes are floats and whose keys are whole; views of others
// (and the checksums of damaged ones) cannot be encoded again. Nothing then.
bool Encodable(std::span<const wire::GroupView> groups, bool keys, bool values) {
  for (const wire::GroupView& g : groups) {
    const size_t n = g.keys();
    if (g.key_bytes.size() % 8 != 0 || g.value_bytes.size() % 4 != 0) return false;
    if (!keys && n != 0) return false;
    if (!values && g.floats() != 0) return false;
    if (keys && values && (n == 0 ? g.floats() != 0 : g.floats() % n != 0)) return false;
  }
  return true;
}

// Keys and the groups that point to them.
struct KeyGroups {
  explicit KeyGroups(const std::vector<wire::GroupView>& views) {
    for (const wire::GroupView& g : views) keys.push_back(KeysOf(g));
    for (size_t i = 0; i < keys.size(); ++i) {
      groups.push_back({views[i].table, views[i].shard, keys[i]});
    }
  }
  std::vector<std::vector<Key>> keys;
  std::vector<wire::KeyGroup> groups;
};

Buffer Encode(const wire::PullRequestView& m) {
  if (!Encodable(m.groups, true, false)) return Buffer();
  const KeyGroups k(m.groups);
  return *wire::EncodePullRequest(m.header, m.step, m.wait_ms, m.shards, k.groups,
                                  {m.want_ticket, m.codec, m.ticket});
}

Buffer Encode(const wire::PrefetchRequestView& m) {
  if (!Encodable(m.groups, true, false)) return Buffer();
  const KeyGroups k(m.groups);
  return *wire::EncodePrefetchRequest(m.header, m.step, m.shards, k.groups);
}

void FillValues(const std::vector<wire::GroupView>& groups, wire::GroupWriter& writer) {
  for (size_t i = 0; i < groups.size(); ++i) {
    const std::span<float> out = writer.values(i);
    if (!out.empty()) std::memcpy(out.data(), groups[i].value_bytes.data(), out.size_bytes());
  }
}

Buffer Encode(const wire::PullReplyView& m) {
  if (!Encodable(m.groups, false, true)) return Buffer();
  std::vector<wire::ValueGroup> groups;
  for (const wire::GroupView& g : m.groups) groups.push_back({g.table, g.shard, g.floats(), 1});
  auto encoder = wire::PullReplyEncoder::Make(groups);
  FillValues(m.groups, *encoder);
  return encoder->Finish(m.state, m.outcome, m.ticket);
}

Buffer Encode(const wire::PushRequestView& m) {
  std::vector<std::vector<Key>> keys;
  for (const wire::GroupView& g : m.groups) keys.push_back(KeysOf(g));
  std::vector<wire::PushContribution> contributions;
  for (const wire::ContributionView& c : m.contributions) {
    wire::PushContribution& made = contributions.emplace_back();
    made.node = c.node;
    made.examples = c.examples;
    made.ticket = c.ticket;
    if (!c.ticket && c.ticket != wire::Ticket()) return Buffer();  // not one of ours
    for (size_t i = c.first_group; i < c.first_group + c.group_count; ++i) {
      const wire::GroupView& g = m.groups[i];
      // A ticket's keys are not sent: as many as there are floats, of one each.
      if (c.ticket && keys[i].empty()) {
        keys[i].resize(g.floats());
      } else if (c.ticket) {
        return Buffer();
      }
      const size_t dim = keys[i].empty() ? 0 : g.floats() / keys[i].size();
      made.groups.push_back({g.table, g.shard, keys[i], static_cast<uint32_t>(dim)});
    }
    if (!Encodable(m.GroupsOf(c), !c.ticket, true)) return Buffer();
  }
  auto encoder = wire::PushRequestEncoder::Make(m.shards, contributions);
  FillValues(m.groups, *encoder);
  return encoder->Finish(m.fields);
}

// Content without what the wire leaves open: unknown fields, and checksums, which our encoders
// compute and a damaged message may hold wrong.
void Normalise(Group* g) { g->clear_crc32c(); }
template <typename M>
void Normalise(M*) {}
void Normalise(PullRequest* m) {
  for (Group& g : *m->mutable_groups()) Normalise(&g);
}
void Normalise(PrefetchRequest* m) {
  for (Group& g : *m->mutable_groups()) Normalise(&g);
}
void Normalise(PullReply* m) {
  for (Group& g : *m->mutable_groups()) Normalise(&g);
}
void Normalise(PushRequest* m) {
  for (Contribution& c : *m->mutable_contributions()) {
    for (Group& g : *c.mutable_groups()) Normalise(&g);
  }
}

// A parser cannot tell an absent embedded message from an empty one and need not. Our encoders
// write headers and states always: make those present; a ticket only where there is one.
template <typename M>
void Present(M* m) {
  if constexpr (requires { m->mutable_header(); }) m->mutable_header();
  if constexpr (requires { m->mutable_state(); }) m->mutable_state();
  if constexpr (requires { m->mutable_ticket(); }) {
    if (m->ticket().ByteSizeLong() == 0) m->clear_ticket();
  }
  if constexpr (requires { m->mutable_contributions(); }) {
    for (Contribution& c : *m->mutable_contributions()) Present(&c);
  }
}

template <typename Proto, typename View>
Verdict JudgeAs(absl::StatusOr<View> view, std::span<const uint8_t> bytes) {
  Verdict verdict;
  if (!view.ok()) {
    verdict.error = std::string(view.status().message());
    return verdict;
  }
  verdict.accepted = true;
  Proto theirs;
  if (!theirs.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    verdict.complaint = "accepted what protobuf refuses";
    return verdict;
  }
  theirs.DiscardUnknownFields();
  Present(&theirs);
  Proto ours = ToProto(*view);
  if (ours.SerializeAsString() != theirs.SerializeAsString()) {
    verdict.complaint = absl::StrCat("ours: ", ours.ShortDebugString(),
                                     "\nprotobuf's: ", theirs.ShortDebugString());
    return verdict;
  }
  const Buffer again = Encode(*view);
  if (again.size() == 0) return verdict;
  Proto reread;
  const bool read = reread.ParseFromArray(again.data(), static_cast<int>(again.size()));
  Present(&reread);
  Normalise(&reread);
  Normalise(&theirs);
  if (!read || reread.SerializeAsString() != theirs.SerializeAsString()) {
    verdict.complaint = absl::StrCat("encoded again: ", reread.ShortDebugString(),
                                     "\nprotobuf's: ", theirs.ShortDebugString());
  }
  return verdict;
}

}  // namespace

OpenSessionRequest ToProto(const wire::OpenSessionRequest& m) {
  OpenSessionRequest out;
  Fill(m.header, out.mutable_header());
  out.set_cluster_id(m.cluster_id);
  out.set_job_uid(m.job_uid);
  return out;
}

OpenSessionReply ToProto(const wire::OpenSessionReply& m) {
  OpenSessionReply out;
  Fill(m.state, out.mutable_state());
  return out;
}

PullRequest ToProto(const wire::PullRequestView& m) {
  PullRequest out;
  Fill(m.header, out.mutable_header());
  out.set_step(m.step.value);
  out.set_wait_ms(m.wait_ms);
  for (const ShardId s : m.shards) out.add_shards(s.value);
  for (const wire::GroupView& g : m.groups) Fill(g, out.add_groups());
  out.set_want_ticket(m.want_ticket);
  out.set_codec(static_cast<ValueCodec>(m.codec.others));
  for (const wire::ValueCodec c : m.codec.of_table) out.add_codecs(static_cast<ValueCodec>(c));
  FillTicket(m.ticket, &out);
  return out;
}

PrefetchRequest ToProto(const wire::PrefetchRequestView& m) {
  PrefetchRequest out;
  Fill(m.header, out.mutable_header());
  out.set_step(m.step.value);
  for (const ShardId s : m.shards) out.add_shards(s.value);
  for (const wire::GroupView& g : m.groups) Fill(g, out.add_groups());
  return out;
}

PrefetchReply ToProto(const wire::PrefetchReply& m) {
  PrefetchReply out;
  Fill(m.state, out.mutable_state());
  FillTicket(m.ticket, &out);
  return out;
}

PullReply ToProto(const wire::PullReplyView& m) {
  PullReply out;
  Fill(m.state, out.mutable_state());
  out.set_outcome(static_cast<PullOutcome>(m.outcome));
  for (const wire::GroupView& g : m.groups) Fill(g, out.add_groups());
  FillTicket(m.ticket, &out);
  return out;
}

PushRequest ToProto(const wire::PushRequestView& m) {
  PushRequest out;
  const wire::PushFields& f = m.fields;
  Fill(f.header, out.mutable_header());
  out.set_sequence(f.sequence.value);
  out.set_step(f.step.value);
  out.set_task(f.task.value);
  out.set_window(f.window);
  out.set_cut(f.cut);
  out.set_lane(f.lane.value);
  for (const ShardId s : m.shards) out.add_shards(s.value);
  for (const wire::ContributionView& c : m.contributions) {
    Contribution* made = out.add_contributions();
    made->set_node_first(c.node.first);
    made->set_node_end(c.node.end);
    made->set_examples(c.examples);
    for (const wire::GroupView& g : m.GroupsOf(c)) Fill(g, made->add_groups());
    FillTicket(c.ticket, made);
  }
  return out;
}

PushReply ToProto(const wire::PushReply& m) {
  PushReply out;
  Fill(m.state, out.mutable_state());
  out.set_repeated(m.repeated);
  return out;
}

MarkRequest ToProto(const wire::MarkRequest& m) {
  MarkRequest out;
  Fill(m.header, out.mutable_header());
  out.set_sequence(m.sequence.value);
  out.set_lane(m.lane.value);
  out.set_cut(m.cut);
  out.set_task(m.task.value);
  out.set_window(m.window);
  return out;
}

MarkReply ToProto(const wire::MarkReply& m) {
  MarkReply out;
  Fill(m.state, out.mutable_state());
  return out;
}

ForwardRequest ToProto(const wire::ForwardRequestView& m) {
  ForwardRequest out;
  const wire::ForwardFields& f = m.fields;
  Fill(f.header, out.mutable_header());
  out.set_cluster_id(f.cluster_id);
  out.set_job_uid(f.job_uid);
  out.set_chain_epoch(f.chain_epoch);
  out.set_from_log_id(f.from_log_id);
  out.set_log_id(f.log_id);
  for (const wire::ForwardEntryView& e : m.entries) {
    ForwardEntry* made = out.add_entries();
    made->set_shard(e.shard.value);
    made->set_header(e.header.data(), e.header.size());
    made->set_payload(e.payload.data(), e.payload.size());
    made->set_crc32c(e.crc32c);
  }
  for (const wire::ForwardImageView& i : m.images) {
    ForwardImage* made = out.add_images();
    made->set_shard(i.shard.value);
    made->set_image(i.image);
    made->set_offset(i.offset);
    made->set_data(i.data.data(), i.data.size());
    made->set_crc32c(i.crc32c);
    made->set_bytes(i.bytes);
  }
  out.set_wait_ms(f.wait_ms);
  return out;
}

ForwardReply ToProto(const wire::ForwardReply& m) {
  ForwardReply out;
  Fill(m.state, out.mutable_state());
  out.set_chain_epoch(m.chain_epoch);
  for (const wire::ForwardEnd& e : m.ends) {
    ForwardEnd* made = out.add_ends();
    made->set_shard(e.shard.value);
    made->set_empty(e.empty);
    made->set_step(e.step);
    made->set_cut(e.cut);
    made->set_committed_step(e.committed_step);
    made->set_committed_cut(e.committed_cut);
    made->set_image(e.image);
    made->set_image_bytes(e.image_bytes);
  }
  return out;
}

Verdict Judge(MessageKind kind, std::span<const uint8_t> bytes) {
  switch (kind) {
    case MessageKind::kOpenSessionRequest:
      return JudgeAs<OpenSessionRequest>(wire::ParseOpenSessionRequest(bytes), bytes);
    case MessageKind::kOpenSessionReply:
      return JudgeAs<OpenSessionReply>(wire::ParseOpenSessionReply(bytes), bytes);
    case MessageKind::kPullRequest:
      return JudgeAs<PullRequest>(wire::ParsePullRequest(bytes), bytes);
    case MessageKind::kPullReply:
      return JudgeAs<PullReply>(wire::ParsePullReply(bytes), bytes);
    case MessageKind::kPushRequest:
      return JudgeAs<PushRequest>(wire::ParsePushRequest(bytes), bytes);
    case MessageKind::kPushReply:
      return JudgeAs<PushReply>(wire::ParsePushReply(bytes), bytes);
    case MessageKind::kMarkRequest:
      return JudgeAs<MarkRequest>(wire::ParseMarkRequest(bytes), bytes);
    case MessageKind::kMarkReply:
      return JudgeAs<MarkReply>(wire::ParseMarkReply(bytes), bytes);
    case MessageKind::kPrefetchRequest:
      return JudgeAs<PrefetchRequest>(wire::ParsePrefetchRequest(bytes), bytes);
    case MessageKind::kPrefetchReply:
      return JudgeAs<PrefetchReply>(wire::ParsePrefetchReply(bytes), bytes);
    case MessageKind::kForwardRequest:
      return JudgeAs<ForwardRequest>(wire::ParseForwardRequest(bytes), bytes);
    case MessageKind::kForwardReply:
      return JudgeAs<ForwardReply>(wire::ParseForwardReply(bytes), bytes);
  }
  return {};
}

}  // namespace strata::testing
