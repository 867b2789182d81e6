#include "proto/wire/message.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/core/checksum.h"

namespace strata::wire {
namespace {

template <typename... Parts>
absl::Status Invalid(const GroupView& group, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("group of table ", group.table.value, ", shard ",
                                                 group.shard.value, ": ", parts...));
}

absl::Status CheckSize(const GroupView& group, size_t keys, uint64_t key_bytes) {
  // Neither factor passes 2^34: keys because they were received, so the product fits.
  const uint64_t expected = static_cast<uint64_t>(keys) * key_bytes;
  if (group.value_bytes.size() == expected) return absl::OkStatus();
  return Invalid(group, "values have ", group.value_bytes.size(), " bytes, expected ", expected,
                 " (", keys, " keys of ", key_bytes, " bytes)");
}

// `keys_crc32c`: of the keys, wherever they are.
absl::Status CheckCrc(const GroupView& group, uint32_t keys_crc32c) {
  const uint32_t crc = Crc32cExtend(keys_crc32c, group.value_bytes);
  if (crc == group.crc32c) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "group of table ", group.table.value, ", shard ", group.shard.value, ": CRC32C of ",
      group.key_bytes.size(), " + ", group.value_bytes.size(), " bytes is 0x", absl::Hex(crc),
      ", the message says 0x", absl::Hex(group.crc32c)));
}

}  // namespace

uint32_t ExtendFingerprint(uint32_t so_far, TableId table, ShardId shard, size_t keys,
                           uint32_t crc32c) {
  const uint32_t numbers[4] = {table.value, shard.value, static_cast<uint32_t>(keys), crc32c};
  return Crc32cExtend(so_far, {reinterpret_cast<const uint8_t*>(numbers), sizeof numbers});
}

bool IsTicketError(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) && absl::StartsWith(status.message(), kTicketError);
}

const float* AlignedValues(const GroupView& group, std::vector<float>& scratch) {
  const uint8_t* at = group.value_bytes.data();
  if (reinterpret_cast<uintptr_t>(at) % alignof(float) == 0) {
    return reinterpret_cast<const float*>(at);
  }
  scratch.resize(group.floats());
  if (!scratch.empty()) std::memcpy(scratch.data(), at, scratch.size() * sizeof(float));
  return scratch.data();
}

absl::Status CheckRequestGroup(const GroupView& group, const TableSpec& table, GroupValues values,
                               Position first, Position last, std::span<Position> positions) {
  if (group.key_bytes.size() % 8 != 0) {
    return Invalid(group, "keys have ", group.key_bytes.size(), " bytes, expected a multiple of 8");
  }
  const size_t n = group.keys();
  absl::Status status =
      CheckSize(group, n, values == GroupValues::kNone ? 0 : uint64_t{table.push_dim()} * 4);
  if (status.ok()) status = CheckCrc(group, Crc32c(group.key_bytes));
  if (!status.ok() || n == 0) return status;

  if (table.kind == TableKind::kDense) {
    std::memcpy(positions.data(), group.key_bytes.data(), n * 8);
  } else {
    const uint64_t salt = TableSalt(table.id);
    for (size_t i = 0; i < n; ++i) positions[i] = PositionOf(group.key(i), salt);
  }
  bool ascending = true;
  for (size_t i = 1; i < n; ++i) ascending &= positions[i - 1] < positions[i];
  if (!ascending) {
    size_t i = 1;
    while (positions[i - 1] < positions[i]) ++i;
    return Invalid(group, "key ", i, " of ", n, " (", group.key(i).value, ") lies at position ",
                   positions[i].value, ", not above its predecessor's ", positions[i - 1].value,
                   "; keys must strictly ascend by position");
  }
  if (positions[0] < first || positions[n - 1] > last) {
    const size_t i = positions[0] < first ? 0 : n - 1;
    return Invalid(group, "key ", i, " of ", n, " (", group.key(i).value, ") lies at position ",
                   positions[i].value, ", outside the shard's ", first.value, "..", last.value);
  }
  return absl::OkStatus();
}

absl::Status CheckReplyGroup(const GroupView& group, TableId table, ShardId shard, size_t keys,
                             uint32_t dim, ValueCodec codec) {
  if (group.table != table || group.shard != shard) {
    return Invalid(group, "expected table ", table.value, ", shard ", shard.value);
  }
  if (!group.key_bytes.empty()) {
    return Invalid(group, "a reply repeats no keys, but has ", group.key_bytes.size(), " bytes");
  }
  const absl::Status status = CheckSize(group, keys, ValueBytes(codec, dim));
  return status.ok() ? CheckCrc(group, 0) : status;
}

absl::Status CheckTicketGroup(const GroupView& group, size_t keys, uint32_t keys_crc32c,
                              uint32_t dim) {
  if (!group.key_bytes.empty()) {
    return Invalid(group, "a ticket names the keys, but there are ", group.key_bytes.size(),
                   " bytes of them");
  }
  const absl::Status status = CheckSize(group, keys, uint64_t{dim} * 4);
  return status.ok() ? CheckCrc(group, keys_crc32c) : status;
}

OpenSessionRequest OpenSessionFor(const Header& header, const JobIdentity& identity) {
  return {header, identity.cluster.text(), identity.job.text()};
}

}  // namespace strata::wire
