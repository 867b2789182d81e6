#include "proto/runtime/credentials/kept_revocations.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"
#include "proto/core/uid.h"
#include "proto/runtime/credentials/checked_lines.h"
#include "proto/runtime/credentials/places.h"
#include "proto/runtime/files/plain_file.h"

namespace strata {
namespace {

constexpr char kHeading[] = "strata kept revocations 1";
constexpr char kFile[] = "/REVOKED";
// A list, and what an earlier one had beside it.
constexpr uint64_t kMostBytes = 2 * kMaxListBytes;

// The cluster's id, and the list as revocations.h writes it.
std::string TextOf(const ClusterId& cluster, absl::string_view list) {
  return WithChecksum(absl::StrCat(kHeading, "\n", cluster.text(), "\n", list));
}

// An empty one: of another cluster.
absl::StatusOr<Revocations> ParseKept(absl::string_view text, const ClusterId& cluster) {
  const auto lines = CheckedLines(text);
  if (!lines.ok()) return lines.status();
  if (lines->front() != kHeading || lines->size() < 2) {
    return absl::DataLossError("line 1 is not its heading");
  }
  if ((*lines)[1] != cluster.text()) return Revocations();
  std::string list;
  for (size_t i = 2; i < lines->size(); ++i) absl::StrAppend(&list, (*lines)[i], "\n");
  return Revocations::Parse(list);
}

}  // namespace

KeptRevocations::KeptRevocations(const std::string& folder,
                                 std::shared_ptr<CredentialSource> source, Say say)
    : folder_(folder), source_(std::move(source)), say_(std::move(say)) {
  if (source_ != nullptr && !folder_.empty()) Read();
}

void KeptRevocations::Read() {
  const std::string path = absl::StrCat(folder_, kFile);
  const auto text = ReadPlainFile(path, kMostBytes);
  if (absl::IsNotFound(text.status()) || STRATA_MUTATION("revoked.forgotten_at_start")) return;
  auto list =
      text.ok() ? ParseKept(*text, source_->cluster()) : absl::StatusOr<Revocations>(text.status());
  if (list.ok()) {
    in_force_ = *std::move(list);
    return source_->SetRevoked(in_force_);
  }
  const std::string why = absl::StrCat(
      path, ", the list that the scheduler told last, is damaged (", list.status().message(),
      "); nobody but a scheduler is let in until one tells it anew: start strata-scheduler with "
      "--revoked, or remove the file");
  source_->SetRevoked(Revocations::Unknown(why));
  said_ = absl::StrCat("revoked_damaged error=\"", why, "\" next=wait_for_scheduler");
  say_(said_);
}

void KeptRevocations::Follow(absl::string_view told) {
  if (source_ == nullptr) return;
  absl::string_view event = "revoked_unreadable", next = "list_before_stays";
  absl::Status s = Take(told);
  if (s.ok() && !kept_) {
    event = "revoked_not_kept";
    next = "retry";
    s = Keep();
  }
  if (s.ok()) {
    if (!told_.empty()) said_.clear();
    return;
  }
  std::string line = absl::StrCat(event, " error=\"", s.message(), "\" next=", next);
  if (line != said_) say_(line);
  said_ = std::move(line);
}

absl::Status KeptRevocations::Take(absl::string_view told) {
  if (told.empty() || told == told_) return absl::OkStatus();
  auto list = Revocations::Parse(told);
  if (!list.ok()) return list.status();
  told_ = std::string(told);
  if (!STRATA_MUTATION("revoked.older_replaces_newer")) list->AddAll(in_force_);
  list->DropExpired(source_->WallNow());
  in_force_ = *std::move(list);
  source_->SetRevoked(in_force_);
  kept_ = folder_.empty();
  return absl::OkStatus();
}

absl::Status KeptRevocations::Keep() {
  const std::string text = TextOf(source_->cluster(), in_force_.Text());
  if (absl::Status s = WritePlainFile(absl::StrCat(folder_, kFile), text); !s.ok()) return s;
  if (absl::Status s = SyncPlainFolder(folder_); !s.ok()) return s;
  kept_ = true;
  return absl::OkStatus();
}

}  // namespace strata
