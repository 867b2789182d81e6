#include "worker/data/index/vocabularies.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/data/files/data_file.h"

namespace strata {
namespace {

constexpr uint64_t kMostBytes = uint64_t{4} << 30;

absl::StatusOr<std::shared_ptr<const Vocabulary>> Load(const std::string& path, TextFiles* files,
                                                       InputIndex* index,
                                                       const Cancelled& cancelled) {
  if (absl::Status s = StillWanted(cancelled, path); !s.ok()) return s;
  const auto raw = files->OpenRaw(path);
  if (!raw.ok()) return raw.status();
  const auto fingerprint = (*raw)->Fingerprint();
  if (!fingerprint.ok()) return fingerprint.status();
  const auto text = files->Open(path, cancelled);
  if (!text.ok()) return text.status();
  if ((*text)->size() > kMostBytes) {
    return absl::InvalidArgumentError(absl::StrCat("vocabulary file ", path, " has ",
                                                   (*text)->size(), " bytes; at most ", kMostBytes,
                                                   " are read; have the values hashed instead"));
  }
  if (!(*text)->is_copy() && (*text)->identity() != (*raw)->identity()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "vocabulary file ", path, " changed while it was read; restore it, or submit a new job"));
  }
  std::string all(static_cast<size_t>((*text)->size()), '\0');
  if (absl::Status s = (*text)->Read(0, all.size(), all.data()); !s.ok()) return s;
  if (index != nullptr) {
    InputFile* entry = index->add_vocabularies();
    entry->set_path(path);
    entry->set_bytes((*raw)->size());
    entry->set_fingerprint(*fingerprint);
  }
  return Vocabulary::Parse(std::move(all), path);
}

}  // namespace

absl::StatusOr<Vocabularies> LoadVocabularies(const JobSpec& spec, TextFiles* files,
                                              InputIndex* index, const Cancelled& cancelled) {
  Vocabularies loaded;
  for (int i = 0; i < spec.fields_size(); ++i) {
    const FieldConfig& field = spec.fields(i);
    if (!field.has_vocabulary() || loaded.contains(field.vocabulary().file())) continue;
    auto vocabulary = Load(field.vocabulary().file(), files, index, cancelled);
    if (!vocabulary.ok()) {
      return absl::Status(
          vocabulary.status().code(),
          absl::StrCat("spec.fields[", i, "].vocabulary.file: ", vocabulary.status().message()));
    }
    loaded.emplace(field.vocabulary().file(), *std::move(vocabulary));
  }
  return loaded;
}

}  // namespace strata
