// Embeddings of other programs made a checkpoint of some tables' rows, from which a job starts by
// spec.model.initFrom: {checkpoint: FOLDER, newTensors: allow}.
//
//   ImportOptions options{.job = job, .output = "pretrained"};
//   options.sources.push_back({.table = "item", .keys = "ids.txt", .rows = "rows.npy",
//                              .key_of = keys_of_field_item});
//   auto done = ImportRows(options);
#ifndef STRATA_TOOLS_CLUSTER_IMPORT_IMPORT_H_
#define STRATA_TOOLS_CLUSTER_IMPORT_IMPORT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/core/ids.h"
#include "proto/job/schema/schema_vocabulary.h"
#include "proto/runtime/base/id_source.h"
#include "proto/strata/job.pb.h"

namespace strata {

// Row i of `rows` becomes the embedding of the key that value i of `keys` stands for.
struct ImportSource {
  std::string table;   // "": the only hashed one
  std::string keys;    // a KeyFile
  std::string rows;    // an ArrayFile
  std::string tensor;  // of `rows`, where it is a safetensors file; "": its only one
  // The key of a value, as the job's readers make it; none: the value is out of its field's
  // vocabulary, so that others have its row too. Its errors are told with the value's place.
  std::function<absl::StatusOr<std::optional<Key>>(const std::string& value)> key_of;
  // For messages: "the vocabulary of field 'item' (items.txt)". Of keys that may be none.
  std::string vocabulary = "";
};

struct ImportOptions {
  TrainingJob job;  // defaults resolved: says tables, optimizers, partitions and the seed
  // Several of one table are one list of rows.
  std::vector<ImportSource> sources;
  // What the vocabularies had by which keys were made.
  VocabularyContents vocabularies;
  std::string output;  // folder; made where it is missing
  absl::Time now;      // when the checkpoint is made
  IdSource* ids = IdSource::System();
};

struct ImportedTable {
  std::string name;
  uint64_t rows = 0;
};

struct ImportSummary {
  std::vector<ImportedTable> tables;  // by number
  std::string model_hash;
  uint64_t bytes = 0;
};

// A row has the given embedding, and everything else that a new row of the job has: the other
// weights, the optimizers' state. Reads the rows twice: in their order, to check them, and by
// position. Memory: 16 bytes for each row of the table with the most, and blocks.
//
// INVALID_ARGUMENT names file, row and column of what is wrong, and the remedy: arrays of another
// shape or dtype, no rows, other numbers of keys and rows, a key twice, an element that is no
// number, an unknown table or tensor, a value out of a vocabulary. FAILED_PRECONDITION: the output
// is not empty (what a killed import left there goes), or another import writes to it. After an
// error nothing of the output is left. Others: of the file system, with the path.
absl::StatusOr<ImportSummary> ImportRows(const ImportOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_IMPORT_IMPORT_H_
