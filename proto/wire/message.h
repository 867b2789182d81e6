// The data plane's messages (proto/strata/data.proto says what every field means) as plain values
// and as views of received bytes, and the checks of their groups. Names follow data.proto; the
// namespace keeps them apart from protobuf's generated classes.
// Tested by tests/proto/wire/message_codec_test.cc
#ifndef STRATA_PROTO_WIRE_MESSAGE_H_
#define STRATA_PROTO_WIRE_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "proto/core/lane_tree.h"
#include "proto/core/table_spec.h"
#include "proto/core/uid.h"
#include "proto/wire/value_codec.h"

namespace strata::wire {

struct Header {
  JobId job;
  SessionId session;
  Generation generation;
  MapEpoch map_epoch;
  uint32_t server = 0;  // 1 + index of the job's server; 0: it is not said
  // The same, to the server of that index.
  Header To(uint32_t index) const {
    Header header = *this;
    header.server = index + 1;
    return header;
  }
  friend bool operator==(const Header&, const Header&) = default;
};

struct ServerState {
  uint64_t incarnation = 0;
  Generation generation;
  MapEpoch map_epoch;
  Step clock;
  friend bool operator==(const ServerState&, const ServerState&) = default;
};

// The server's handle for the keys of a pull (data.proto).
struct Ticket {
  uint64_t incarnation = 0;
  uint64_t number = 0;  // 0: none
  uint64_t keys = 0;
  uint32_t fingerprint = 0;
  explicit operator bool() const { return number != 0; }
  friend bool operator==(const Ticket&, const Ticket&) = default;
};
// Ticket::fingerprint of the groups so far (none: 0) and one more; `crc32c` is that of its keys.
uint32_t ExtendFingerprint(uint32_t so_far, TableId table, ShardId shard, size_t keys,
                           uint32_t crc32c);
// What the text of a stale ticket's FAILED_PRECONDITION begins with, and no other text.
inline constexpr char kTicketError[] = "ticket ";
bool IsTicketError(const absl::Status& status);

// A received group. Points into the message, which must outlive it. No alignment is promised:
// other clients may place keys and values anywhere.
struct GroupView {
  TableId table;
  ShardId shard;
  std::span<const uint8_t> key_bytes;    // (keys, 8)
  std::span<const uint8_t> value_bytes;  // (keys, dim, 4), or as the codec of a pull says
  uint32_t crc32c = 0;

  size_t keys() const { return key_bytes.size() / 8; }
  // REQUIRES: i < keys().
  Key key(size_t i) const {
    uint64_t k;
    std::memcpy(&k, key_bytes.data() + i * 8, 8);
    return Key(k);
  }
  size_t floats() const { return value_bytes.size() / 4; }
  // REQUIRES: i < floats().
  float value(size_t i) const {
    float v;
    std::memcpy(&v, value_bytes.data() + i * 4, 4);
    return v;
  }
};

// The group's values as an array of floats(): in place where they are aligned for float (always so
// for messages of our own encoders in a Buffer), else copied to `scratch`, which must outlive the
// use.
const float* AlignedValues(const GroupView& group, std::vector<float>& scratch);

// What a group's values must be.
enum class GroupValues : uint8_t {
  kNone,    // pull request; push whose values are on a device
  kPerKey,  // push: dim floats for every key
};

// Checks a group of a request against its table and its shard's range of positions, cheapest first,
// and stores the position of key i in positions[i].
//   INVALID_ARGUMENT: key bytes no multiple of 8; value bytes other than `values` says (the text
//   names the table, the size and the expected size); keys that do not strictly ascend by position;
//   a key outside [first, last]. DATA_LOSS: the checksum is wrong.
// REQUIRES: group.table == table.id; positions.size() == group.keys().
// Reading 10^5 keys of 16 floats takes well under a millisecond. Any thread.
absl::Status CheckRequestGroup(const GroupView& group, const TableSpec& table, GroupValues values,
                               Position first, Position last, std::span<Position> positions);

// Checks group i of a pull's reply: that it speaks of `table` and `shard`, repeats no keys and has
// the values of `keys` keys (INVALID_ARGUMENT), and its checksum (DATA_LOSS). `dim` 0: those went
// by a device's memory (device_values.h).
absl::Status CheckReplyGroup(const GroupView& group, TableId table, ShardId shard, size_t keys,
                             uint32_t dim, ValueCodec codec = ValueCodec::kFloat32);
// The same of a push's group whose keys, of that CRC32C, are a ticket's.
absl::Status CheckTicketGroup(const GroupView& group, size_t keys, uint32_t keys_crc32c,
                              uint32_t dim);

struct OpenSessionRequest {
  Header header;
  std::string cluster_id = {};
  std::string job_uid = {};
};
OpenSessionRequest OpenSessionFor(const Header& header, const JobIdentity& identity);
struct OpenSessionReply {
  ServerState state;
};

struct PullRequestView {
  Header header;
  Step step;
  uint32_t wait_ms = 0;
  std::vector<ShardId> shards;
  std::vector<GroupView> groups;
  bool want_ticket = false;
  PullCodecs codec;
  Ticket ticket;
};

struct PrefetchRequestView {
  Header header;
  Step step;
  std::vector<ShardId> shards;
  std::vector<GroupView> groups;
};
struct PrefetchReply {
  ServerState state;
  Ticket ticket;
};

// Open, as protobuf's enums are: an unknown number is kept as it came, and is nothing that a caller
// may act upon.
enum class PullOutcome : int32_t { kUnspecified = 0, kServed = 1, kNotYet = 2, kTooOld = 3 };

struct PullReplyView {
  ServerState state;
  PullOutcome outcome = PullOutcome::kUnspecified;
  std::vector<GroupView> groups;
  Ticket ticket;
};

// Groups first_group .. first_group + group_count - 1 of the message's list.
struct ContributionView {
  LaneNode node;
  uint64_t examples = 0;
  size_t first_group = 0;
  size_t group_count = 0;
  Ticket ticket;
};

// A push's fields beside its contributions.
struct PushFields {
  Header header;
  Sequence sequence;
  Step step;
  TaskId task;
  uint64_t window = 0;
  uint64_t cut = 0;
  LaneId lane;
  friend bool operator==(const PushFields&, const PushFields&) = default;
};

struct PushRequestView {
  PushFields fields;
  std::vector<ShardId> shards;
  std::vector<ContributionView> contributions;
  std::vector<GroupView> groups;  // of all contributions, in order

  std::span<const GroupView> GroupsOf(const ContributionView& c) const {
    return std::span<const GroupView>(groups).subspan(c.first_group, c.group_count);
  }
};

struct PushReply {
  ServerState state;
  bool repeated = false;
};

struct MarkRequest {
  Header header;
  Sequence sequence;
  LaneId lane;
  uint64_t cut = 0;
  TaskId task;
  uint64_t window = 0;
};

struct MarkReply {
  ServerState state;
};

// From one copy of a server's shards to the next (data.proto).
struct ForwardFields {
  Header header;
  std::string cluster_id = {};
  std::string job_uid = {};
  uint64_t chain_epoch = 0;
  std::string from_log_id = {};
  std::string log_id = {};
  uint32_t wait_ms = 0;
  friend bool operator==(const ForwardFields&, const ForwardFields&) = default;
};
// Points into the message, or into what is to be sent, which must outlive it.
struct ForwardEntryView {
  ShardId shard;
  std::span<const uint8_t> header;
  std::span<const uint8_t> payload;
  uint32_t crc32c = 0;
};
struct ForwardImageView {
  ShardId shard;
  uint64_t image = 0;
  uint64_t offset = 0;
  std::span<const uint8_t> data;
  uint32_t crc32c = 0;
  uint64_t bytes = 0;
};
struct ForwardRequestView {
  ForwardFields fields;
  std::vector<ForwardEntryView> entries;
  std::vector<ForwardImageView> images;
};
struct ForwardEnd {
  ShardId shard;
  bool empty = false;
  uint64_t step = 0;
  uint64_t cut = 0;
  uint64_t committed_step = 0;
  uint64_t committed_cut = 0;
  uint64_t image = 0;
  uint64_t image_bytes = 0;
  friend bool operator==(const ForwardEnd&, const ForwardEnd&) = default;
};
struct ForwardReply {
  ServerState state;
  uint64_t chain_epoch = 0;
  std::vector<ForwardEnd> ends;
};

}  // namespace strata::wire

#endif  // STRATA_PROTO_WIRE_MESSAGE_H_
