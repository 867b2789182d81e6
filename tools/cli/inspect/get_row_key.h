// Which row is meant by what was typed.
// Tested by tests/tools/cli/inspect/get_row_test.cc
// Tested by tests/tools/cli/inspect/get_row_value_test.cc
#ifndef STRATA_TOOLS_CLI_INSPECT_GET_ROW_KEY_H_
#define STRATA_TOOLS_CLI_INSPECT_GET_ROW_KEY_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/core/ids.h"
#include "proto/core/table_spec.h"
#include "proto/job/schema/schema_vocabulary.h"
#include "proto/job/tables/model_tables.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"
#include "worker/data/formats/field_reader.h"

namespace strata {

// "123" or "0x7b". INVALID_ARGUMENT names `option` and the range.
absl::StatusOr<uint64_t> ParseNumber64(absl::string_view option, absl::string_view text);

// The bounds between which a number lies, the lower one included.
struct NumberBucket {
  bool missing = false;  // of lines without a number
  double lower = -std::numeric_limits<double>::infinity();
  double upper = std::numeric_limits<double>::infinity();
};

// A category of the data, and the key that the readers make of it
// (worker/data/formats/feature_hash.h).
struct CategoryKey {
  uint32_t field = 0;
  std::string name;  // of the field: "C3", a column
  bool is_hashed = true;
  // The bytes that are hashed: the value, its default, or an integer's bucket. Of a bucket the
  // number's text.
  std::string hashed;
  std::optional<NumberBucket> bucket;  // of a field that is bucketised
  bool is_shared = false;  // out of the field's vocabulary: others that are have the row, too
  // Where a vocabulary has the value: its line, from 1; 0: it has not. Without one, nothing.
  std::optional<uint64_t> line;
  Key key;
};

// The same of many values of one field. Const calls from any thread.
class FieldKeys {
 public:
  // Reads the field's vocabulary, if it has one. `saved`: of the checkpoint or job (`who`, for
  // messages) whose rows are meant; values behind those that it knows are out of the vocabulary.
  // Errors: as KeyOfCategory.
  static absl::StatusOr<FieldKeys> Make(const JobSpec& spec, absl::string_view field,
                                        uint32_t libffm_fields = 0, const Schema* saved = nullptr,
                                        absl::string_view who = "the checkpoint");
  absl::StatusOr<CategoryKey> Of(const std::string& value) const;
  // INVALID_ARGUMENT: in a column of the field `text` is no value alone: it has the separator of
  // several values, or a weight other than 1.
  absl::Status CheckOneValue(const std::string& text) const;
  // What the vocabulary had.
  const VocabularyContents& vocabularies() const { return vocabularies_; }

 private:
  uint32_t field_ = 0;
  std::string name_;
  bool is_hashed_ = true;
  uint64_t seed_ = 0;                          // of the field's hashes; without reader_
  bool buckets_ = false;                       // integers of criteo data
  std::shared_ptr<const FieldReader> reader_;  // of csv
  VocabularyContents vocabularies_;
};

// `field`: its name (criteo: C1..C26 and, as buckets, I1..I13; csv: a column of spec.data.columns;
// by spec.fields their names, also of libffm, whose data have `libffm_fields`), or its column, or,
// where no name and no column is a number, its number among the fields with rows, from 0.
// INVALID_ARGUMENT also where several fields read the column. The value of libffm is a feature's
// number, which is its key. Of csv a value is what a column may have, empty too: its key is that of
// the one feature that the column becomes. INVALID_ARGUMENT: no such field (the text says which
// there are), data without fields, or a value that is none of the field or several.
// FAILED_PRECONDITION: a vocabulary has other values than `saved` knows.
absl::StatusOr<CategoryKey> KeyOfCategory(const JobSpec& spec, absl::string_view field,
                                          const std::string& value, uint32_t libffm_fields = 0,
                                          const Schema* saved = nullptr,
                                          absl::string_view who = "the checkpoint");

// The number of the table called `name`. Without a name: the one of `field`, if that is given, or
// the only hashed one. INVALID_ARGUMENT: there is no such table, or several; or the field is of
// another one.
absl::StatusOr<uint32_t> FindRowTable(const ModelTables& tables, const JobSpec& spec,
                                      absl::string_view name, absl::string_view field);

// What a row of the dense table belongs to.
struct TensorRow {
  std::string tensor;
  uint64_t first_element = 0;
  uint32_t elements = 0;  // beside padding
};
// INVALID_ARGUMENT: the key is no tensor's row; the text says where the tensors are.
absl::StatusOr<TensorRow> TensorRowOf(const TableSpec& table, Key key);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_INSPECT_GET_ROW_KEY_H_
