#include "worker/data/index/vocabularies.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "worker/data/files/data_file.h"

namespace strata {
namespace {

constexpr uint64_t kMostBytes = uint64_t{4} << 30;

using Loaded = std::shared_ptr<const Vocabulary>;

// The file's text and, in `entry`, the file itself.
absl::StatusOr<std::string> ReadWhole(const std::string& path, TextFiles* files,
                                      const Cancelled& cancelled, InputFile* entry) {
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
  entry->set_path(path);
  entry->set_bytes((*raw)->size());
  entry->set_fingerprint(*fingerprint);
  return all;
}

// Adds the fingerprints of all values, then of the beginnings.
void AddValues(const Vocabulary& vocabulary, const std::vector<uint64_t>& beginnings,
               InputFile* entry) {
  std::vector<uint64_t> counts;
  for (const uint64_t count : beginnings) {
    if (count < vocabulary.size()) counts.push_back(count);
  }
  counts.push_back(vocabulary.size());
  const std::vector<std::string> fingerprints = vocabulary.Fingerprints(counts);
  for (size_t i = 0; i < counts.size(); ++i) {
    const size_t at = (i + counts.size() - 1) % counts.size();
    VocabularyValues* values = entry->add_values();
    values->set_count(counts[at]);
    values->set_fingerprint(fingerprints[at]);
  }
}

// Other ways to a file, as part of a sentence.
std::string OtherFile(const std::string& field, const VocabularyOptions& options) {
  if (options.option.empty()) return "or name another file";
  return absl::StrCat("or name another file by ", options.option, " ", field, "=FILE");
}

absl::StatusOr<Loaded> Load(const FieldConfig& field, TextFiles* files,
                            const VocabularyOptions& options, InputIndex* index) {
  const std::string& path = field.vocabulary().file();
  InputFile entry;
  auto text = ReadWhole(path, files, options.cancelled, &entry);
  if (!text.ok()) {
    return OfVocabulary(text.status(), absl::StrCat("put the values of field '", field.name(),
                                                    "' there, ", OtherFile(field.name(), options)));
  }
  auto vocabulary = Vocabulary::Parse(*std::move(text), path);
  if (!vocabulary.ok()) return vocabulary;
  std::vector<uint64_t> beginnings = options.beginnings;
  const auto known = options.known.find(path);
  if (known != options.known.end()) beginnings = {known->second.values};
  AddValues(**vocabulary, beginnings, &entry);
  if (known != options.known.end()) {
    InputIndex seen;
    *seen.add_vocabularies() = entry;
    const std::string problem =
        VocabularyProblem(known->second, VocabulariesOf(seen).at(path), options.known_by);
    if (!problem.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("vocabulary file ", path, " of field '", field.name(), "' ", problem,
                       "; put these values back, ", OtherFile(field.name(), options)));
    }
    if ((*vocabulary)->size() > known->second.values) {
      vocabulary = Vocabulary::Parse((*vocabulary)->Beginning(known->second.values), path);
    }
  }
  if (index != nullptr) *index->add_vocabularies() = std::move(entry);
  return vocabulary;
}

}  // namespace

absl::StatusOr<Vocabularies> LoadVocabularies(const JobSpec& spec, TextFiles* files,
                                              InputIndex* index, const VocabularyOptions& options) {
  Vocabularies loaded;
  for (int i = 0; i < spec.fields_size(); ++i) {
    const FieldConfig& field = spec.fields(i);
    if (!field.has_vocabulary() || loaded.contains(field.vocabulary().file())) continue;
    auto vocabulary = Load(field, files, options, index);
    if (!vocabulary.ok()) {
      return absl::Status(
          vocabulary.status().code(),
          absl::StrCat("spec.fields[", i, "].vocabulary.file: ", vocabulary.status().message()));
    }
    loaded.emplace(field.vocabulary().file(), *std::move(vocabulary));
  }
  return loaded;
}

absl::Status OfVocabulary(const absl::Status& status, absl::string_view remedy) {
  absl::string_view said = status.message();
  if (!absl::ConsumePrefix(&said, "input file ")) return status;
  const bool of_data = absl::ConsumeSuffix(&said, kCheckData);
  return absl::Status(status.code(), absl::StrCat("vocabulary file ", said, of_data ? "; " : "",
                                                  of_data ? remedy : absl::string_view()));
}

}  // namespace strata
