#include "proto/runtime/credentials/revocations.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/runtime/credentials/certificate.h"
#include "proto/runtime/credentials/checked_lines.h"
#include "proto/runtime/credentials/issued_certificates.h"

namespace strata {
namespace {

constexpr char kHeading[] = "strata revocations 2";
constexpr char kHeading1[] = "strata revocations 1";
constexpr char kUnknown[] = "unknown";

absl::Status Damaged(absl::string_view why) {
  return absl::DataLossError(absl::StrCat("the list of revoked certificates is damaged: ", why));
}

std::string UntilText(absl::Time until) {
  return until == absl::InfiniteFuture() ? kUnknown : TimeText(until);
}

// One line; nothing where it is none.
bool ParseEntry(const std::vector<absl::string_view>& fields, bool with_until,
                Revocations::Entry& entry) {
  if (fields.size() != (with_until ? 4 : 3) || !IsSerial(fields[0]) || fields[1].empty() ||
      !ParseTimeText(fields[2], entry.since)) {
    return false;
  }
  entry.who = std::string(fields[1]);
  return !with_until || fields[3] == kUnknown || ParseTimeText(fields[3], entry.until);
}

}  // namespace

Revocations Revocations::Unknown(std::string why) {
  Revocations unknown;
  unknown.unknown_ = std::move(why);
  return unknown;
}

bool Revocations::Contains(absl::string_view serial) const {
  return all_.find(std::string(serial)) != all_.end();
}

bool Revocations::Add(const std::string& serial, Entry entry) {
  return all_.emplace(serial, std::move(entry)).second;
}

void Revocations::AddAll(const Revocations& other) {
  all_.insert(other.all_.begin(), other.all_.end());
}

void Revocations::DropExpired(absl::Time now) {
  std::erase_if(all_, [&](const auto& e) { return e.second.until + kKeptAfterExpiry <= now; });
}

std::string Revocations::Text() const {
  std::string text = absl::StrCat(kHeading, "\n");
  for (const auto& [serial, entry] : all_) {
    absl::StrAppend(&text, serial, " ", entry.who, " ", TimeText(entry.since), " ",
                    UntilText(entry.until), "\n");
  }
  return WithChecksum(text);
}

absl::StatusOr<Revocations> Revocations::Parse(absl::string_view text) {
  const auto lines = CheckedLines(text);
  if (!lines.ok()) return Damaged(lines.status().message());
  const bool with_until = lines->front() == kHeading;
  if (!with_until && lines->front() != kHeading1) return Damaged("line 1 is not its heading");
  Revocations parsed;
  for (size_t i = 1; i < lines->size(); ++i) {
    const std::vector<absl::string_view> fields = absl::StrSplit((*lines)[i], ' ');
    Entry entry;
    if (!ParseEntry(fields, with_until, entry)) {
      return Damaged(
          absl::StrCat("line ", i + 1, " is not SERIAL NAME SINCE", with_until ? " UNTIL" : ""));
    }
    if (!parsed.Add(std::string(fields[0]), std::move(entry))) {
      return Damaged(absl::StrCat("line ", i + 1, " is there twice"));
    }
  }
  return parsed;
}

}  // namespace strata
