#include "proto/job/schema/schema_vocabulary.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"

namespace strata {
namespace {

// The file of each field that has one.
std::map<std::string, std::string> FilesOf(const JobSpec& spec) {
  std::map<std::string, std::string> files;
  for (const FieldConfig& field : spec.fields()) {
    if (field.has_vocabulary()) files[field.name()] = field.vocabulary().file();
  }
  return files;
}

std::string Values(uint64_t count) {
  return absl::StrCat(count, count == 1 ? " value" : " values");
}

}  // namespace

VocabularyContents VocabulariesOf(const InputIndex& index) {
  VocabularyContents out;
  for (const InputFile& file : index.vocabularies()) {
    if (file.values().empty()) continue;
    VocabularyContent& content = out[file.path()];
    content.values = file.values(0).count();
    content.fingerprint = file.values(0).fingerprint();
    for (int i = 1; i < file.values_size(); ++i) {
      content.beginnings[file.values(i).count()] = file.values(i).fingerprint();
    }
  }
  return out;
}

void DescribeVocabularies(const JobSpec& spec, const VocabularyContents& contents, Schema* schema) {
  const std::map<std::string, std::string> files = FilesOf(spec);
  for (SchemaField& field : *schema->mutable_fields()) {
    const auto file = files.find(field.name());
    if (file == files.end()) continue;
    const auto content = contents.find(file->second);
    if (content == contents.end()) continue;
    field.set_vocabulary(content->second.fingerprint);
    field.set_vocabulary_values(content->second.values);
  }
}

std::vector<uint64_t> VocabularyCounts(std::initializer_list<const Schema*> saved) {
  std::set<uint64_t> counts;
  for (const Schema* schema : saved) {
    for (const SchemaField& field : schema->fields()) {
      if (!field.vocabulary().empty()) counts.insert(field.vocabulary_values());
    }
  }
  return {counts.begin(), counts.end()};
}

VocabularyContents KnownVocabularies(const JobSpec& spec, const Schema& saved) {
  VocabularyContents out;
  const std::map<std::string, std::string> files = FilesOf(spec);
  for (const SchemaField& field : saved.fields()) {
    const auto file = files.find(field.name());
    if (file == files.end() || field.vocabulary().empty()) continue;
    out[file->second] = {field.vocabulary_values(), field.vocabulary(), {}};
  }
  return out;
}

std::string VocabularyProblem(const VocabularyContent& saved, const VocabularyContent& now,
                              absl::string_view who) {
  if (saved.fingerprint == now.fingerprint) return "";
  if (now.values < saved.values) {
    return absl::StrCat("has ", Values(now.values), ", and ", who, " knows ", saved.values,
                        ": line ", now.values + 1, " is missing");
  }
  const auto beginning = now.beginnings.find(saved.values);
  if (beginning != now.beginnings.end() && beginning->second == saved.fingerprint) return "";
  if (beginning == now.beginnings.end() && now.values > saved.values) {
    return absl::StrCat("has ", Values(now.values), ", and was not compared with the ",
                        saved.values, " of a checkpoint that came since");
  }
  return absl::StrCat("does not begin with the ", Values(saved.values), " that ", who,
                      " knows, each in its line");
}

std::string VocabularyChange(const SchemaField& saved, const SchemaField& now,
                             const VocabularyContents& contents) {
  if (saved.vocabulary().empty() || now.vocabulary().empty()) return "";
  if (saved.vocabulary() == now.vocabulary() || STRATA_MUTATION("schema.any_lines")) return "";
  const VocabularyContent known = {saved.vocabulary_values(), saved.vocabulary(), {}};
  for (const auto& [file, content] : contents) {
    if (content.fingerprint != now.vocabulary()) continue;
    const std::string problem = VocabularyProblem(known, content);
    if (problem.empty()) return "";
    return absl::StrCat("vocabulary file ", file, " ", problem,
                        " (put the checkpoint's values back, new ones behind them)");
  }
  return absl::StrCat("vocabulary was ", saved.vocabulary(), " (",
                      Values(saved.vocabulary_values()), "), is ", now.vocabulary(), " (",
                      Values(now.vocabulary_values()), ")",
                      now.vocabulary_values() > saved.vocabulary_values()
                          ? "; whether it only grew is not known without its file"
                          : "");
}

std::string MoreValues(const SchemaField& saved, const SchemaField& now) {
  const uint64_t had = saved.vocabulary_values(), has = now.vocabulary_values();
  if (had == 0 || has <= had) return "";
  return absl::StrCat(" (a vocabulary of ", Values(had), ", ", has, " now)");
}

}  // namespace strata
