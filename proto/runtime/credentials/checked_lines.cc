#include "proto/runtime/credentials/checked_lines.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "proto/core/checksum.h"

namespace strata {
namespace {

constexpr char kChecksum[] = "crc32c ";
constexpr size_t kChecksumBytes = sizeof(kChecksum) - 1 + 8 + 1;
constexpr size_t kSerialDigits = 32;
constexpr size_t kMaxSerialDigits = 64;

std::string ChecksumLine(absl::string_view text) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(text.data());
  return absl::StrFormat("%s%08x\n", kChecksum, Crc32c({bytes, text.size()}));
}

}  // namespace

std::string WithChecksum(absl::string_view text) { return absl::StrCat(text, ChecksumLine(text)); }

absl::StatusOr<std::vector<absl::string_view>> CheckedLines(absl::string_view text) {
  if (text.size() < kChecksumBytes) return absl::DataLossError("it ends too early");
  const absl::string_view lines = text.substr(0, text.size() - kChecksumBytes);
  if (text.substr(lines.size()) != ChecksumLine(lines)) {
    return absl::DataLossError("its checksum does not fit its contents");
  }
  std::vector<absl::string_view> each = absl::StrSplit(lines, '\n');
  if (!each.back().empty()) return absl::DataLossError("its last line has no end");
  each.pop_back();
  if (each.empty()) return absl::DataLossError("it has no heading");
  return each;
}

bool ParseTimeText(absl::string_view text, absl::Time& time) {
  std::string error;
  return absl::ParseTime("%Y-%m-%dT%H:%M:%SZ", text, &time, &error);
}

bool IsSerial(absl::string_view text) {
  return text.size() >= kSerialDigits && text.size() <= kMaxSerialDigits &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace strata
