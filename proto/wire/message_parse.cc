#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/format.h"
#include "proto/wire/header_codec.h"
#include "proto/wire/message_codec.h"
#include "proto/wire/message_limits.h"

namespace strata::wire {
namespace {

void Read(FieldReader& r, Ticket& out) {
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        r.Fixed64(out.incarnation);
        break;
      case 2:
        r.Varint(out.number);
        break;
      case 3:
        r.Varint(out.keys);
        break;
      case 4:
        r.Fixed32(out.fingerprint);
        break;
      default:
        r.Skip();
    }
  }
}

void Read(FieldReader& r, GroupView& out) {
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        r.Varint(out.table.value);
        break;
      case 2:
        r.Varint(out.shard.value);
        break;
      case 3:
        r.Bytes(out.key_bytes);
        break;
      case 4:
        r.Bytes(out.value_bytes);
        break;
      case 5:
        r.Fixed32(out.crc32c);
        break;
      default:
        r.Skip();
    }
  }
}

template <typename T>
void ReadEmbedded(FieldReader& r, const char* name, T& out) {
  r.Message(name, [&out](FieldReader& sub) { Read(sub, out); });
}

// Open: its number is kept as it came.
template <typename Enum>
void ReadEnum(FieldReader& r, Enum& out) {
  auto number = static_cast<int32_t>(out);
  r.Varint(number);
  out = static_cast<Enum>(number);
}

void AddGroup(FieldReader& r, std::vector<GroupView>& groups) {
  if (Full(r, groups.size(), kMaxGroups)) return;
  ReadEmbedded(r, "Group", groups.emplace_back());
}

void AddShards(FieldReader& r, std::vector<ShardId>& shards) {
  r.Numbers([&r, &shards](uint32_t shard) {
    if (!Full(r, shards.size(), kMaxShards)) shards.emplace_back(shard);
  });
}

void AddCodecs(FieldReader& r, std::vector<ValueCodec>& codecs) {
  r.Numbers([&r, &codecs](uint32_t codec) {
    if (!Full(r, codecs.size(), kMaxCodecs)) {
      codecs.push_back(static_cast<ValueCodec>(static_cast<int32_t>(codec)));
    }
  });
}

void Read(FieldReader& r, OpenSessionRequest& out) {
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        ReadEmbedded(r, "Header", out.header);
        break;
      case 2:
        ReadText(r, out.cluster_id);
        break;
      case 3:
        ReadText(r, out.job_uid);
        break;
      default:
        r.Skip();
    }
  }
}

// OpenSessionReply and MarkReply.
template <typename Reply>
void ReadState(FieldReader& r, Reply& out) {
  while (r.Next()) {
    if (r.field() == 1) {
      ReadEmbedded(r, "ServerState", out.state);
    } else {
      r.Skip();
    }
  }
}
void Read(FieldReader& r, OpenSessionReply& out) { ReadState(r, out); }
void Read(FieldReader& r, MarkReply& out) { ReadState(r, out); }

void Read(FieldReader& r, PullRequestView& out) {
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        ReadEmbedded(r, "Header", out.header);
        break;
      case 2:
        r.Varint(out.step.value);
        break;
      case 3:
        r.Varint(out.wait_ms);
        break;
      case 4:
        AddShards(r, out.shards);
        break;
      case 5:
        AddGroup(r, out.groups);
        break;
      case 6:
        r.Varint(out.want_ticket);
        break;
      case 7:
        ReadEnum(r, out.codec.others);
        break;
      case 8:
        ReadEmbedded(r, "Ticket", out.ticket);
        break;
      case 9:
        AddCodecs(r, out.codec.of_table);
        break;
      default:
        r.Skip();
    }
  }
}

void Read(FieldReader& r, PrefetchRequestView& out) {
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        ReadEmbedded(r, "Header", out.header);
        break;
      case 2:
        r.Varint(out.step.value);
        break;
      case 3:
        AddShards(r, out.shards);
        break;
      case 4:
        AddGroup(r, out.groups);
        break;
      default:
        r.Skip();
    }
  }
}

void Read(FieldReader& r, PrefetchReply& out) {
  while (r.Next()) {
    if (r.field() == 1) {
      ReadEmbedded(r, "ServerState", out.state);
    } else if (r.field() == 2) {
      ReadEmbedded(r, "Ticket", out.ticket);
    } else {
      r.Skip();
    }
  }
}

void Read(FieldReader& r, PullReplyView& out) {
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        ReadEmbedded(r, "ServerState", out.state);
        break;
      case 2:
        ReadEnum(r, out.outcome);
        break;
      case 3:
        AddGroup(r, out.groups);
        break;
      case 4:
        ReadEmbedded(r, "Ticket", out.ticket);
        break;
      default:
        r.Skip();
    }
  }
}

void ReadContribution(FieldReader& r, ContributionView& out, std::vector<GroupView>& groups) {
  out.first_group = groups.size();
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        r.Varint(out.node.first);
        break;
      case 2:
        r.Varint(out.node.end);
        break;
      case 3:
        r.Varint(out.examples);
        break;
      case 4:
        AddGroup(r, groups);
        break;
      case 5:
        ReadEmbedded(r, "Ticket", out.ticket);
        break;
      default:
        r.Skip();
    }
  }
  out.group_count = groups.size() - out.first_group;
}

void AddContribution(FieldReader& r, PushRequestView& out) {
  if (Full(r, out.contributions.size(), kMaxContributions)) return;
  ContributionView& added = out.contributions.emplace_back();
  r.Message("Contribution",
            [&added, &out](FieldReader& sub) { ReadContribution(sub, added, out.groups); });
}

void Read(FieldReader& r, PushRequestView& out) {
  PushFields& fields = out.fields;
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        ReadEmbedded(r, "Header", fields.header);
        break;
      case 2:
        r.Varint(fields.sequence.value);
        break;
      case 3:
        r.Varint(fields.step.value);
        break;
      case 4:
        r.Varint(fields.task.value);
        break;
      case 5:
        r.Varint(fields.window);
        break;
      case 6:
        r.Varint(fields.cut);
        break;
      case 7:
        r.Varint(fields.lane.value);
        break;
      case 8:
        AddShards(r, out.shards);
        break;
      case 9:
        AddContribution(r, out);
        break;
      default:
        r.Skip();
    }
  }
}

void Read(FieldReader& r, PushReply& out) {
  while (r.Next()) {
    if (r.field() == 1) {
      ReadEmbedded(r, "ServerState", out.state);
    } else if (r.field() == 2) {
      r.Varint(out.repeated);
    } else {
      r.Skip();
    }
  }
}

void Read(FieldReader& r, MarkRequest& out) {
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        ReadEmbedded(r, "Header", out.header);
        break;
      case 2:
        r.Varint(out.sequence.value);
        break;
      case 3:
        r.Varint(out.lane.value);
        break;
      case 4:
        r.Varint(out.cut);
        break;
      case 5:
        r.Varint(out.task.value);
        break;
      case 6:
        r.Varint(out.window);
        break;
      default:
        r.Skip();
    }
  }
}

template <typename T>
absl::StatusOr<T> Parse(const char* name, std::span<const uint8_t> bytes) {
  return ParseMessage<T>(name, bytes, [](FieldReader& r, T& out) { Read(r, out); });
}

}  // namespace

absl::StatusOr<OpenSessionRequest> ParseOpenSessionRequest(std::span<const uint8_t> bytes) {
  return Parse<OpenSessionRequest>("OpenSessionRequest", bytes);
}
absl::StatusOr<OpenSessionReply> ParseOpenSessionReply(std::span<const uint8_t> bytes) {
  return Parse<OpenSessionReply>("OpenSessionReply", bytes);
}
absl::StatusOr<PullRequestView> ParsePullRequest(std::span<const uint8_t> bytes) {
  return Parse<PullRequestView>("PullRequest", bytes);
}
absl::StatusOr<PullReplyView> ParsePullReply(std::span<const uint8_t> bytes) {
  return Parse<PullReplyView>("PullReply", bytes);
}
absl::StatusOr<PrefetchRequestView> ParsePrefetchRequest(std::span<const uint8_t> bytes) {
  return Parse<PrefetchRequestView>("PrefetchRequest", bytes);
}
absl::StatusOr<PrefetchReply> ParsePrefetchReply(std::span<const uint8_t> bytes) {
  return Parse<PrefetchReply>("PrefetchReply", bytes);
}
absl::StatusOr<PushRequestView> ParsePushRequest(std::span<const uint8_t> bytes) {
  return Parse<PushRequestView>("PushRequest", bytes);
}
absl::StatusOr<PushReply> ParsePushReply(std::span<const uint8_t> bytes) {
  return Parse<PushReply>("PushReply", bytes);
}
absl::StatusOr<MarkRequest> ParseMarkRequest(std::span<const uint8_t> bytes) {
  return Parse<MarkRequest>("MarkRequest", bytes);
}
absl::StatusOr<MarkReply> ParseMarkReply(std::span<const uint8_t> bytes) {
  return Parse<MarkReply>("MarkReply", bytes);
}

}  // namespace strata::wire
