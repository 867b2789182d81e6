#include "tools/cli/import/command.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "proto/core/ids.h"
#include "proto/job/schema/schema.h"
#include "proto/job/schema/schema_vocabulary.h"
#include "proto/job/tables/model_tables.h"
#include "proto/strata/job.pb.h"
#include "tools/cli/base/job_text.h"
#include "tools/cli/inspect/get_row_key.h"
#include "tools/cli/job/file.h"
#include "tools/cluster/import/array_header.h"
#include "tools/cluster/import/import.h"

namespace strata {
namespace {

absl::Status CheckCounts(const ImportCommandOptions& o) {
  const size_t sources = o.rows.size();
  const auto many = [&](absl::string_view option, size_t count, absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("import: ", count, " ", option, " and ", sources, " --rows; ", why));
  };
  if (o.keys.size() != sources) {
    return many("--keys", o.keys.size(), "give one --keys for each --rows, in the same order");
  }
  if (o.tables.size() != sources && !(o.tables.empty() && sources == 1)) {
    return many("--table", o.tables.size(), "give one --table for each --rows, in the same order");
  }
  if (o.fields.empty() && !o.raw_keys) {
    return absl::InvalidArgumentError(
        "import: give --field, whose values the keys are, or --raw-keys where they are feature "
        "ids");
  }
  if (!o.raw_keys && o.fields.size() != sources) {
    return many("--field", o.fields.size(), "give one --field for each --rows, in the same order");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Key>> RawKey(const std::string& value) {
  const auto number = ParseNumber64("key", ShownText(value));
  if (!number.ok()) return number.status();
  return Key(*number);
}

// The field's values are of that table, too.
absl::Status CheckTable(const JobSpec& spec, const std::string& table, const std::string& field) {
  const auto counts = CountFields(spec);
  if (!counts || table.empty()) return absl::OkStatus();
  const auto model = MakeModelTables(spec, counts->fields, counts->numeric);
  if (!model.ok()) return model.status();
  return FindRowTable(*model, spec, table, field).status();
}

// Says in `source`, whose table is known, what keys its values have. Adds to `vocabularies` what
// the field's has.
absl::Status SetKeys(const JobSpec& spec, const std::string& field, ImportSource& source,
                     VocabularyContents& vocabularies) {
  auto keys = FieldKeys::Make(spec, field);
  if (!keys.ok() && spec.data().format() != "csv" &&
      !absl::StartsWith(spec.data().format(), "criteo")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "import: the job's data are ", spec.data().format(),
        ", whose features are numbers of their own: give --raw-keys instead of --field ", field));
  }
  if (!keys.ok()) return keys.status();
  if (absl::Status s = CheckTable(spec, source.table, field); !s.ok()) return s;
  for (const auto& [file, content] : keys->vocabularies()) {
    vocabularies.emplace(file, content);
    source.vocabulary = absl::StrCat("the vocabulary of field '", field, "' (", file, ")");
  }
  source.key_of = [shared = std::make_shared<const FieldKeys>(*std::move(keys))](
                      const std::string& value) -> absl::StatusOr<std::optional<Key>> {
    if (absl::Status s = shared->CheckOneValue(value); !s.ok()) return s;
    const auto category = shared->Of(value);
    if (!category.ok()) {  // said of an option that is not here
      return absl::InvalidArgumentError(absl::StripPrefix(category.status().message(), "--"));
    }
    if (category->is_shared) return std::nullopt;
    return category->key;
  };
  return absl::OkStatus();
}

// All that the job has, whatever keys the rows came by: later jobs are held to the values.
absl::Status AddVocabularies(const JobSpec& spec, VocabularyContents& vocabularies) {
  for (const FieldConfig& field : spec.fields()) {
    const std::string& file = field.vocabulary().file();
    if (file.empty() || vocabularies.contains(file)) continue;
    auto keys = FieldKeys::Make(spec, field.name());
    if (!keys.ok()) return keys.status();
    vocabularies.insert(keys->vocabularies().begin(), keys->vocabularies().end());
  }
  return absl::OkStatus();
}

absl::StatusOr<ImportOptions> Sources(const ImportCommandOptions& o) {
  if (absl::Status s = CheckCounts(o); !s.ok()) return s;
  auto job = LoadJobFile(o.source.file, o.source.overrides);
  if (!job.ok()) return job.status();
  ImportOptions out;
  out.job = *std::move(job);
  out.output = o.output;
  out.now = absl::Now();
  size_t tensor = 0;
  for (size_t i = 0; i < o.rows.size(); ++i) {
    ImportSource source;
    if (!o.tables.empty()) source.table = o.tables[i];
    source.keys = o.keys[i];
    source.rows = o.rows[i];
    const bool npy = o.rows.size() > 1 && absl::EndsWith(source.rows, ".npy");
    if (!npy && tensor < o.tensors.size()) source.tensor = o.tensors[tensor++];
    source.key_of = RawKey;
    if (!o.raw_keys) {
      absl::Status s = SetKeys(out.job.spec(), o.fields[i], source, out.vocabularies);
      if (!s.ok()) return s;
    }
    out.sources.push_back(std::move(source));
  }
  if (absl::Status s = AddVocabularies(out.job.spec(), out.vocabularies); !s.ok()) return s;
  if (tensor == o.tensors.size()) return out;
  return absl::InvalidArgumentError(
      absl::StrCat("import: --tensor ", o.tensors[tensor],
                   " is one more than there are safetensors files in --rows; leave it out"));
}

}  // namespace

ExitCode RunImport(const ImportCommandOptions& options) {
  const auto what = Sources(options);
  if (!what.ok()) return ReportError(what.status());
  const auto done = ImportRows(*what);
  if (!done.ok()) return ReportError(done.status());
  if (options.json) {
    nlohmann::ordered_json json{{"checkpoint", options.output},
                                {"modelHash", done->model_hash},
                                {"bytes", done->bytes},
                                {"tables", nlohmann::ordered_json::array()}};
    for (const ImportedTable& table : done->tables) {
      json["tables"].push_back({{"name", table.name}, {"rows", table.rows}});
    }
    std::printf(
        "%s\n",
        json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
    return kExitOk;
  }
  std::printf("%s\n", options.output.c_str());
  for (const ImportedTable& table : done->tables) {
    std::fprintf(stderr, "table %s: %s rows\n", table.name.c_str(), WithCommas(table.rows).c_str());
  }
  std::fprintf(stderr,
               "start a job from them with spec.model.initFrom: {checkpoint: %s, "
               "newTensors: allow}\n",
               options.output.c_str());
  return kExitOk;
}

}  // namespace strata
