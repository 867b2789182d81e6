// A vocabulary: the values that a field is known to have, each with a row of its own.
// Tested by tests/worker/data/formats/fields_parser_test.cc
#ifndef STRATA_WORKER_DATA_FORMATS_VOCABULARY_H_
#define STRATA_WORKER_DATA_FORMATS_VOCABULARY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace strata {

// Immutable; any thread. Memory: the text and about 32 bytes a value.
class Vocabulary {
 public:
  // Far below the keys of buckets (feature_hash.h).
  static constexpr uint64_t kMostValues = uint64_t{1} << 31;

  // `text`: a value a line, each once. INVALID_ARGUMENT: "NAME:LINE: " and what is wrong: a value
  // that was there before (with the line of the other), an empty line, too many; or no value at
  // all.
  static absl::StatusOr<std::shared_ptr<const Vocabulary>> Parse(std::string text,
                                                                 const std::string& name);

  uint64_t size() const { return lines_.size(); }
  // Of the first counts[i] values in their order, whatever ends their lines: XXH3_128bits (seed 0,
  // as of xxHash 0.8) over each value and a line feed, 32 hexadecimal digits.
  // REQUIRES: `counts` ascend, and none is above size().
  std::vector<std::string> Fingerprints(const std::vector<uint64_t>& counts) const;
  // The text of the first `count` values. REQUIRES: count <= size().
  std::string Beginning(uint64_t count) const;
  // The number of the value's line, from 1; 0: it is not there.
  uint64_t LineOf(absl::string_view value) const {
    const auto found = lines_.find(value);
    return found == lines_.end() ? 0 : found->second;
  }

 private:
  explicit Vocabulary(std::string text) : text_(std::move(text)) {}

  const std::string text_;
  absl::flat_hash_map<absl::string_view, uint32_t> lines_;
};

// By the file's name in the job.
using Vocabularies = std::map<std::string, std::shared_ptr<const Vocabulary>>;

}  // namespace strata

#endif  // STRATA_WORKER_DATA_FORMATS_VOCABULARY_H_
