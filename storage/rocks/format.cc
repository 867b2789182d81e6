#include "storage/rocks/format.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace strata::storage::rocks {
namespace {

template <typename T>
void PutBigEndian(T value, char* out) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    out[i] = static_cast<char>(value >> (8 * (sizeof(T) - 1 - i)));
  }
}

template <typename T>
T GetBigEndian(const char* in) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value = value << 8 | static_cast<uint8_t>(in[i]);
  return value;
}

}  // namespace

RowKey MakeKey(const KeyFields& fields) {
  RowKey key;
  PutBigEndian(fields.partition.value, key.data());
  PutBigEndian(fields.table.value, key.data() + 4);
  PutBigEndian(fields.position.value, key.data() + 8);
  return key;
}

KeyFields ReadKey(const char* key) {
  return {.partition = PartitionId(GetBigEndian<uint32_t>(key)),
          .table = TableId(GetBigEndian<uint32_t>(key + 4)),
          .position = Position(GetBigEndian<uint64_t>(key + 8))};
}

absl::Status Translate(const rocksdb::Status& s, absl::string_view action,
                       const std::string& directory) {
  if (s.ok()) return absl::OkStatus();
  const std::string text =
      absl::StrCat("SSD tier in ", directory, ": cannot ", action, ": ", s.ToString());
  // IOError text carries strerror: file handles are not a subcode of their own.
  if (s.IsNoSpace() || s.subcode() == rocksdb::Status::kNoSpace ||
      absl::StrContains(text, "No space left")) {
    return absl::ResourceExhaustedError(
        absl::StrCat(text, "; free disk space, then the work goes on"));
  }
  if (absl::StrContains(text, "Too many open files")) {
    return absl::ResourceExhaustedError(absl::StrCat(text, "; raise the limit of open files"));
  }
  if (s.IsMemoryLimit()) return absl::ResourceExhaustedError(text);
  if (s.IsCorruption()) {
    return absl::DataLossError(absl::StrCat(text, "; the tier must be filled afresh"));
  }
  if (s.IsInvalidArgument()) return absl::InvalidArgumentError(text);
  return absl::UnavailableError(text);
}

}  // namespace strata::storage::rocks
