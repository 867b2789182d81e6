#include "proto/runtime/credentials/revocations.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "proto/core/checksum.h"
#include "proto/runtime/credentials/certificate.h"

namespace strata {
namespace {

constexpr char kHeading[] = "strata revocations 1\n";
constexpr char kChecksum[] = "crc32c ";
constexpr size_t kChecksumBytes = sizeof(kChecksum) - 1 + 8 + 1;
constexpr size_t kSerialDigits = 32;
constexpr size_t kMaxSerialDigits = 64;

std::string ChecksumLine(absl::string_view text) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(text.data());
  return absl::StrFormat("%s%08x\n", kChecksum, Crc32c({bytes, text.size()}));
}

absl::Status Damaged(absl::string_view why) {
  return absl::DataLossError(
      absl::StrCat("the list of revoked certificates is damaged: ", why,
                   "; put it back from a copy, or make a new CA: strata certs init"));
}

}  // namespace

bool IsSerial(absl::string_view text) {
  return text.size() >= kSerialDigits && text.size() <= kMaxSerialDigits &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool Revocations::Contains(absl::string_view serial) const {
  return all_.find(std::string(serial)) != all_.end();
}

bool Revocations::Add(const std::string& serial, Entry entry) {
  return all_.emplace(serial, std::move(entry)).second;
}

std::string Revocations::Text() const {
  std::string text = kHeading;
  for (const auto& [serial, entry] : all_) {
    absl::StrAppend(&text, serial, " ", entry.who, " ", TimeText(entry.since), "\n");
  }
  return absl::StrCat(text, ChecksumLine(text));
}

absl::StatusOr<Revocations> Revocations::Parse(absl::string_view text) {
  if (text.size() < kChecksumBytes) return Damaged("it ends too early");
  const absl::string_view lines = text.substr(0, text.size() - kChecksumBytes);
  if (text.substr(lines.size()) != ChecksumLine(lines)) {
    return Damaged("its checksum does not fit its contents");
  }
  std::vector<absl::string_view> each = absl::StrSplit(lines, '\n');
  if (absl::StrCat(each.front(), "\n") != kHeading) return Damaged("line 1 is not its heading");
  if (!each.back().empty()) return Damaged("its last line has no end");
  each.pop_back();
  Revocations parsed;
  for (size_t i = 1; i < each.size(); ++i) {
    const std::vector<absl::string_view> fields = absl::StrSplit(each[i], ' ');
    Entry entry;
    std::string error;
    const bool whole = fields.size() == 3 && IsSerial(fields[0]) && !fields[1].empty() &&
                       absl::ParseTime("%Y-%m-%dT%H:%M:%SZ", fields[2], &entry.since, &error);
    if (!whole) return Damaged(absl::StrCat("line ", i + 1, " is not SERIAL NAME TIME"));
    entry.who = std::string(fields[1]);
    if (!parsed.Add(std::string(fields[0]), std::move(entry))) {
      return Damaged(absl::StrCat("line ", i + 1, " is there twice"));
    }
  }
  return parsed;
}

}  // namespace strata
