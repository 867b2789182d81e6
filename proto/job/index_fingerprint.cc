#include "proto/job/index_fingerprint.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "proto/core/position.h"

namespace strata {
namespace {

class Hash {
 public:
  void Add(uint64_t word) { value_ = Mix64(value_ ^ word) + kStep; }
  // With its length, so that no two lists of texts are one run of bytes.
  void Add(absl::string_view text) {
    Add(text.size());
    for (const char c : text) Add(static_cast<uint64_t>(static_cast<unsigned char>(c)));
  }
  uint64_t value() const { return value_; }

 private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15ull;
  uint64_t value_ = 0;
};

void AddIndex(const InputIndex& index, Hash& hash) {
  hash.Add(static_cast<uint64_t>(index.files_size()));
  for (const InputFile& file : index.files()) {
    hash.Add(absl::string_view(file.path()));
    hash.Add(file.bytes());
    hash.Add(file.fingerprint());
  }
  for (const InputFile& file : index.vocabularies()) {
    hash.Add(absl::string_view(file.path()));
    hash.Add(file.bytes());
    hash.Add(file.fingerprint());
    // Indexes of earlier versions do not say.
    if (!file.values().empty()) hash.Add(absl::string_view(file.values(0).fingerprint()));
  }
  hash.Add(static_cast<uint64_t>(index.tasks_size()));
  for (const InputTask& task : index.tasks()) {
    for (const uint64_t word : {uint64_t{task.file()}, task.offset(), task.bytes(),
                                task.first_line(), uint64_t{task.lines()}}) {
      hash.Add(word);
    }
  }
  hash.Add(index.lines());
  hash.Add(uint64_t{index.shape().fields()});
  hash.Add(uint64_t{index.shape().numeric()});
  if (!index.has_before()) return;
  hash.Add(index.before().steps());
  hash.Add(index.before().tasks());
  hash.Add(index.before().lines());
}

}  // namespace

uint64_t IndexFingerprint(const InputIndex& train, const InputIndex& eval) {
  Hash hash;
  AddIndex(train, hash);
  AddIndex(eval, hash);
  return std::max<uint64_t>(hash.value(), 1);
}

std::string DataFingerprint(const InputIndex& index) {
  Hash low, high;
  high.Add(uint64_t{1});
  for (const InputFile& file : index.files()) {
    for (Hash* hash : {&low, &high}) {
      hash->Add(file.bytes());
      hash->Add(file.fingerprint());
    }
  }
  return absl::StrFormat("%016x%016x", high.value(), low.value());
}

}  // namespace strata
