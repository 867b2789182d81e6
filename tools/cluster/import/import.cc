#include "tools/cluster/import/import.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/core/partition.h"
#include "proto/core/position.h"
#include "proto/core/uid.h"
#include "proto/job/checks/shown.h"
#include "proto/job/schema/schema.h"
#include "proto/job/schema/schema_mapping.h"
#include "proto/job/tables/model_tables.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/runtime/files/plain_file.h"
#include "proto/strata/checkpoint.pb.h"
#include "storage/checkpoint/shard_file.h"
#include "storage/io/file_io.h"
#include "storage/row/layout.h"
#include "tools/cluster/import/array_file.h"
#include "tools/cluster/import/key_file.h"
#include "tools/cluster/import/output_folder.h"

namespace strata {
namespace {

constexpr char kFileName[] = "shard-00000.strata";
constexpr char kSegment[] = "embedding";
constexpr size_t kBlockFloats = size_t{1} << 18;

// Which row of which source a position has.
struct Entry {
  Position position;
  uint64_t place = 0;  // source in the upper 16 bits, row in the others

  size_t source() const { return static_cast<size_t>(place >> kRowBits); }
  uint64_t row() const { return place & kMostRows; }
  static constexpr int kRowBits = 48;
  static constexpr uint64_t kMostRows = (uint64_t{1} << kRowBits) - 1;
};
constexpr size_t kMostSources = size_t{1} << 16;

struct Source {
  const ImportSource* what = nullptr;
  ArrayFile rows;
};

// A table that gets rows.
struct Target {
  const TableSpec* spec = nullptr;
  storage::RowLayout layout;
  storage::SegmentLayout segment;  // of the embedding
  std::vector<Source> sources;
};

struct Model {
  ModelTables tables;
  bool counted = false;  // the job says how many fields its examples have
  FieldCounts counts;
};

// Hashed tables are what the job file says; where its data decide how many fields there are, any
// number does.
absl::StatusOr<Model> ModelOf(const JobSpec& spec) {
  Model out;
  const auto counts = CountFields(spec);
  out.counted = counts.has_value();
  out.counts = counts.value_or(
      FieldCounts{.fields = static_cast<uint32_t>(std::max(2, spec.fields_size())), .numeric = 0});
  auto tables = MakeModelTables(spec, out.counts.fields, out.counts.numeric);
  if (!tables.ok()) return tables.status();
  out.tables = *std::move(tables);
  return out;
}

absl::StatusOr<const TableSpec*> FindTable(const ModelTables& tables, const std::string& name) {
  std::vector<std::string> names;
  const TableSpec* only = nullptr;
  for (const TableSpec& table : tables.tables) {
    if (table.kind != TableKind::kHashed) continue;
    if (table.name == name) return &table;
    names.push_back(table.name);
    only = &table;
  }
  if (name.empty() && names.size() == 1) return only;
  const std::string there = absl::StrCat("the job has ", absl::StrJoin(names, ", "));
  if (name.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("name the table of the rows by --table; ", there));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--table '", name, "' is no table of features; ", there));
}

// A row's score is what its own batches gave it.
absl::Status CheckScore(const TableSpec& spec) {
  if (!spec.life_cycle.scored()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "table ", spec.name,
      ": lifeCycle.removal.score: imported rows begin at score 0, and would be removed "
      "before they have been seen; leave that rule out, or import into another table"));
}

absl::StatusOr<Target> TargetOf(const TableSpec& spec) {
  if (absl::Status s = CheckScore(spec); !s.ok()) return s;
  Target out;
  out.spec = &spec;
  out.layout = storage::RowLayout::For(spec);
  for (size_t i = 0; i < spec.segments.size(); ++i) {
    if (spec.segments[i].name != kSegment) continue;
    out.segment = out.layout.segments[i];
    return out;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("table ", spec.name,
                   " has no embeddings: the job's model has one weight a feature; import "
                   "for a job of another spec.model.type"));
}

// The sources by number of table, open and of the right shape.
absl::StatusOr<std::map<uint32_t, Target>> OpenSources(const ImportOptions& options,
                                                       const ModelTables& tables) {
  std::map<uint32_t, Target> out;
  if (options.sources.empty() || options.sources.size() > kMostSources) {
    return absl::InvalidArgumentError(absl::StrCat("there are ", options.sources.size(),
                                                   " files of rows; give 1 to ", kMostSources));
  }
  for (const ImportSource& source : options.sources) {
    const auto table = FindTable(tables, source.table);
    if (!table.ok()) return table.status();
    auto it = out.find((*table)->id.value);
    if (it == out.end()) {
      auto target = TargetOf(**table);
      if (!target.ok()) return target.status();
      it = out.emplace((*table)->id.value, *std::move(target)).first;
    }
    auto rows = ArrayFile::Open(source.rows, source.tensor);
    if (!rows.ok()) return rows.status();
    if (absl::Status s = rows->CheckRows(it->second.segment.dim); !s.ok()) return s;
    if (rows->rows() == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(rows->name(), " has no rows; give the file that has them, or leave it out"));
    }
    if (rows->rows() > Entry::kMostRows) {
      return absl::InvalidArgumentError(
          absl::StrCat(rows->name(), " has ", rows->rows(), " rows; at most ", Entry::kMostRows));
    }
    it->second.sources.push_back({&source, *std::move(rows)});
  }
  return out;
}

// Every element, in the file's order.
absl::Status CheckElements(Target& target) {
  const uint32_t dim = target.segment.dim;
  const uint64_t block = std::max<uint64_t>(1, kBlockFloats / dim);
  std::vector<float> values;
  for (Source& source : target.sources) {
    for (uint64_t first = 0; first < source.rows.rows(); first += block) {
      values.resize(std::min(block, source.rows.rows() - first) * dim);
      if (absl::Status s = source.rows.ReadRows(first, values); !s.ok()) return s;
    }
  }
  return absl::OkStatus();
}

// Values of one file that are out of their field's vocabulary.
struct UnknownValues {
  uint64_t count = 0;
  std::string first;  // "FILE:LINE: 'VALUE'"

  absl::Status Check(const ImportSource& source) const {
    if (count == 0) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        first, " is not in ", source.vocabulary,
        count > 1 ? absl::StrCat(", nor ", count == 2 ? "is " : "are ", count - 1, " more") : "",
        "; all that are not share rows, of which none can be imported: leave their rows out, or "
        "add the values to the vocabulary, behind those that it has"));
  }
};

absl::Status AddKeys(const Target& target, size_t number, std::vector<Entry>& out) {
  const Source& source = target.sources[number];
  const uint64_t rows = source.rows.rows();
  auto keys = KeyFile::Open(source.what->keys);
  if (!keys.ok()) return keys.status();
  std::string value;
  uint64_t count = 0;
  UnknownValues unknown;
  for (;; ++count) {
    const auto more = (*keys)->Next(&value);
    if (!more.ok()) return more.status();
    if (!*more) break;
    if (count >= rows) continue;  // counted, and told below
    const auto key = source.what->key_of(value);
    if (!key.ok()) {
      return absl::Status(key.status().code(),
                          absl::StrCat((*keys)->Where(count), ": ", key.status().message()));
    }
    if (!key->has_value()) {
      if (++unknown.count > 1) continue;
      unknown.first = absl::StrCat((*keys)->Where(count), ": '", ShownText(value), "'");
      continue;
    }
    out.push_back({target.spec->PositionOfKey(**key), uint64_t{number} << Entry::kRowBits | count});
  }
  if (count == rows) return unknown.Check(*source.what);
  return absl::InvalidArgumentError(absl::StrCat(source.what->keys, " has ", count, " keys, and ",
                                                 source.rows.name(), " has ", rows,
                                                 " rows; give one key for each row, in its order"));
}

absl::StatusOr<std::string> Where(const Target& target, const Entry& entry) {
  auto keys = KeyFile::Open(target.sources[entry.source()].what->keys);
  if (!keys.ok()) return keys.status();
  return (*keys)->Where(entry.row());
}

// Ascending by position; INVALID_ARGUMENT: a key twice.
absl::StatusOr<std::vector<Entry>> Entries(const Target& target) {
  std::vector<Entry> out;
  uint64_t rows = 0;
  for (const Source& source : target.sources) rows += source.rows.rows();
  out.reserve(rows);
  for (size_t i = 0; i < target.sources.size(); ++i) {
    if (absl::Status s = AddKeys(target, i, out); !s.ok()) return s;
  }
  std::sort(out.begin(), out.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.position, a.place) < std::pair(b.position, b.place);
  });
  // Of several, the one that comes first in the files.
  std::optional<std::pair<Entry, Entry>> twice;
  for (size_t i = 1; i < out.size(); ++i) {
    if (out[i].position != out[i - 1].position) continue;
    if (!twice || out[i].place < twice->second.place) twice.emplace(out[i - 1], out[i]);
  }
  if (!twice) return out;
  const auto first = Where(target, twice->first), second = Where(target, twice->second);
  if (!first.ok() || !second.ok()) return first.ok() ? second.status() : first.status();
  return absl::InvalidArgumentError(absl::StrCat(
      *first, " and ", *second, " have the same key, ",
      target.spec->KeyAtPosition(twice->second.position).value, "; leave one of the rows out"));
}

absl::Status WriteTable(Target& target, uint64_t seed, storage::ShardFileWriter& file) {
  const auto entries = Entries(target);
  if (!entries.ok()) return entries.status();
  std::vector<float> row(target.layout.row_bytes() / sizeof(float));
  const std::span<uint8_t> bytes(reinterpret_cast<uint8_t*>(row.data()), target.layout.row_bytes());
  for (const Entry& entry : *entries) {
    storage::InitialRow(*target.spec, target.layout, seed,
                        target.spec->KeyAtPosition(entry.position), bytes.data());
    absl::Status s = target.sources[entry.source()].rows.ReadRows(
        entry.row(), {row.data() + target.segment.weight_offset, target.segment.dim});
    if (s.ok()) s = file.AddRow(target.spec->id, entry.position, bytes);
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

storage::ShardFileHeader HeaderOf(const ImportOptions& options, const ModelTables& tables) {
  storage::ShardFileHeader header;
  header.kind = storage::ShardFileKind::kCheckpoint;
  header.identity = {DrawId<ClusterId>(*options.ids), DrawId<JobUid>(*options.ids)};
  header.generation = Generation(1);
  header.partitioning = Partitioning(options.job.spec().storage().partitions());
  header.partitions = {PartitionId(0), PartitionId(header.partitioning.count() - 1)};
  for (const TableSpec& table : tables.tables) {
    const storage::RowLayout layout = storage::RowLayout::For(table);
    header.tables.push_back({table.id, table.kind, layout.dim, layout.state_floats});
  }
  return header;
}

// The imported tables and their fields, of what the job's model is made of.
Schema SchemaOf(const ImportOptions& options, const Model& model,
                const std::map<uint32_t, Target>& targets) {
  const JobSpec& spec = options.job.spec();
  Schema whole = MakeSchema(spec, model.tables);
  DescribeVocabularies(spec, options.vocabularies, &whole);
  Schema out;
  out.set_model(kImportedModel);
  const auto taken = [&](absl::string_view table) {
    return std::any_of(targets.begin(), targets.end(),
                       [&](const auto& t) { return t.second.spec->name == table; });
  };
  for (const SchemaTable& table : whole.tables()) {
    if (taken(table.name())) *out.add_tables() = table;
  }
  const bool fields = model.counted || spec.data().format() != "libffm";
  for (const SchemaField& field : whole.fields()) {
    if (fields && taken(field.table())) *out.add_fields() = field;
  }
  return out;
}

Manifest ManifestOf(const ImportOptions& options, const Model& model,
                    const storage::ShardFileHeader& header,
                    const storage::ShardFileSummary& written) {
  Manifest out;
  *out.mutable_job() = options.job;
  out.set_generation(header.generation.value);
  out.set_cluster_id(header.identity.cluster.text());
  out.set_job_uid(header.identity.job.text());
  out.set_partitions(header.partitioning.count());
  out.set_fields(model.counts.fields);
  out.set_numeric(model.counts.numeric);
  CheckpointFile& file = *out.add_files();
  file.set_name(kFileName);
  SetWriter(header.writer(), &file);
  file.set_bytes(written.bytes);
  file.set_crc32c(written.crc32c);
  file.set_last_partition(header.partitions.last.value);
  file.set_rows(written.rows);
  file.set_hash_low(written.hash.low);
  file.set_hash_high(written.hash.high);
  out.set_model_hash(ModelHashText({file}, /*step=*/0));
  out.set_time_unix_ms(absl::ToUnixMillis(options.now));
  return out;
}

absl::StatusOr<ImportSummary> Write(const ImportOptions& options, const Model& model,
                                    std::map<uint32_t, Target>& targets) {
  const storage::ShardFileHeader header = HeaderOf(options, model.tables);
  const std::string path = absl::StrCat(options.output, "/", kFileName);
  auto file = storage::ShardFileWriter::Create(path, header);
  if (!file.ok()) return file.status();
  const uint64_t seed = options.job.spec().training().seed();
  for (auto& [number, target] : targets) {
    if (absl::Status s = WriteTable(target, seed, **file); !s.ok()) return s;
  }
  const auto written = (*file)->Finish();
  if (!written.ok()) {
    storage::RemoveFile(path).IgnoreError();  // it may have its name already
    return written.status();
  }
  Manifest manifest = ManifestOf(options, model, header, *written);
  *manifest.mutable_schema() = SchemaOf(options, model, targets);
  if (absl::Status s = WriteManifest(options.output, manifest); !s.ok()) {
    // It may have its name already. The file of a manifest that stays must stay, too.
    const std::string named = absl::StrCat(options.output, "/", kManifestName);
    if (RemovePlainFile(named).ok()) storage::RemoveFile(path).IgnoreError();
    return s;
  }
  ImportSummary out;
  out.model_hash = manifest.model_hash();
  out.bytes = written->bytes;
  for (const auto& [number, target] : targets) {
    ImportedTable& table = out.tables.emplace_back(ImportedTable{.name = target.spec->name});
    for (const Source& source : target.sources) table.rows += source.rows.rows();
  }
  return out;
}

}  // namespace

// 1 sources and tables (OpenSources)  2 the folder (ImportFolder::Take)  3 every element
// (CheckElements)  4 the rows, by position (WriteTable)  5 the manifest, last (Write).
absl::StatusOr<ImportSummary> ImportRows(const ImportOptions& options) {
  const auto model = ModelOf(options.job.spec());
  if (!model.ok()) return model.status();
  auto targets = OpenSources(options, model->tables);
  if (!targets.ok()) return targets.status();
  const auto folder = ImportFolder::Take(options.output, kFileName);
  if (!folder.ok()) return folder.status();
  for (auto& [number, target] : *targets) {
    if (absl::Status s = CheckElements(target); !s.ok()) return s;
  }
  return Write(options, *model, *targets);
}

}  // namespace strata
