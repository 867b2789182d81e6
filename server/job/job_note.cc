#include "server/job/job_note.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/util/message_differencer.h"
#include "proto/core/ids.h"
#include "proto/runtime/files/plain_file.h"
#include "proto/runtime/files/record_file.h"
#include "server/job/job_folder.h"

namespace strata::server {
namespace {

constexpr char kNote[] = "/NOTE";
constexpr char kWhat[] = "note of a job";

std::optional<uint64_t> GenerationOf(absl::string_view folder) {
  uint64_t generation = 0;
  const absl::string_view digits = folder.substr(folder.rfind('-') + 1);
  if (!absl::SimpleAtoi(digits, &generation)) return std::nullopt;
  return generation;
}

}  // namespace

KeptJob NoteOf(const ServerJobDirective& directive) {
  KeptJob note;
  *note.mutable_spec() = directive.spec();
  *note.mutable_shape() = directive.shape();
  note.set_generation(directive.generation());
  note.set_map_epoch(directive.map_epoch());
  *note.mutable_shards() = directive.shards();
  note.set_server_index(directive.server_index());
  note.set_start_step(directive.start_step());
  note.set_index_fingerprint(directive.index_fingerprint());
  note.set_given_up_through(directive.given_up_through());
  note.set_closed_below(directive.closed_below());
  return note;
}

absl::Status WriteJobNote(const std::string& folder, const KeptJob& note) {
  const std::string path = folder + kNote;
  KeptJob there;
  if (ReadRecordFile(path, kWhat, &there).ok() &&
      google::protobuf::util::MessageDifferencer::Equals(there, note)) {
    return absl::OkStatus();
  }
  if (absl::Status s = WriteRecordFile(path, note); !s.ok()) return s;
  return SyncPlainFolder(folder);
}

absl::StatusOr<KeptJob> ReadJobNote(const std::string& root, const JobIdentity& identity) {
  // One that was begun, and not opened, is nothing beside an older one that was. At level memory
  // none says that it was.
  std::optional<std::pair<bool, uint64_t>> newest;  // opened, generation
  std::string newest_folder;
  for (const std::string& shards : ShardsFolders(root, identity)) {
    for (const std::string& folder : GenerationFolders(shards)) {
      const auto generation = GenerationOf(folder);
      if (!generation) continue;
      const auto found = std::make_optional(std::make_pair(MayBeOpened(folder), *generation));
      if (newest && found <= newest) continue;
      newest = found;
      newest_folder = folder;
    }
  }
  if (!newest) {
    return absl::NotFoundError(
        absl::StrCat("there is no generation in ", JobFolder(root, identity)));
  }
  const uint64_t generation = newest->second;
  const std::string path = newest_folder + kNote;
  KeptJob note;
  if (absl::Status s = ReadRecordFile(path, kWhat, &note); !s.ok()) return s;
  if (note.generation() != generation || !note.has_spec()) {
    return absl::DataLossError(absl::StrCat(kWhat, " ", path, ": it is of generation ",
                                            note.generation(), ", its folder of generation ",
                                            generation));
  }
  return note;
}

}  // namespace strata::server
