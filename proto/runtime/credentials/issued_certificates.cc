#include "proto/runtime/credentials/issued_certificates.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/runtime/credentials/certificate.h"
#include "proto/runtime/credentials/checked_lines.h"

namespace strata {
namespace {

constexpr char kHeading[] = "strata issued 1";

absl::Status Damaged(absl::string_view why) {
  return absl::DataLossError(absl::StrCat("the list of issued certificates is damaged: ", why));
}

}  // namespace

void IssuedCertificates::Add(const std::string& serial, Entry entry) {
  all_.insert_or_assign(serial, std::move(entry));
}

void IssuedCertificates::DropExpired(absl::Time now) {
  std::erase_if(all_, [&](const auto& e) { return e.second.until + kKeptAfterExpiry <= now; });
}

std::string IssuedCertificates::Text() const {
  std::string text = absl::StrCat(kHeading, "\n");
  for (const auto& [serial, entry] : all_) {
    absl::StrAppend(&text, serial, " ", entry.who, " ", TimeText(entry.until), "\n");
  }
  return WithChecksum(text);
}

absl::StatusOr<IssuedCertificates> IssuedCertificates::Parse(absl::string_view text) {
  const auto lines = CheckedLines(text);
  if (!lines.ok()) return Damaged(lines.status().message());
  if (lines->front() != kHeading) return Damaged("line 1 is not its heading");
  IssuedCertificates parsed;
  for (size_t i = 1; i < lines->size(); ++i) {
    const std::vector<absl::string_view> fields = absl::StrSplit((*lines)[i], ' ');
    Entry entry;
    const bool whole = fields.size() == 3 && IsSerial(fields[0]) && !fields[1].empty() &&
                       ParseTimeText(fields[2], entry.until);
    if (!whole) return Damaged(absl::StrCat("line ", i + 1, " is not SERIAL NAME TIME"));
    entry.who = std::string(fields[1]);
    if (!parsed.all_.emplace(std::string(fields[0]), std::move(entry)).second) {
      return Damaged(absl::StrCat("line ", i + 1, " is there twice"));
    }
  }
  return parsed;
}

}  // namespace strata
