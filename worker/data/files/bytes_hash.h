// A hash of bytes that come in pieces.
// Tested by tests/worker/data/files/text_files_test.cc
#ifndef STRATA_WORKER_DATA_FILES_BYTES_HASH_H_
#define STRATA_WORKER_DATA_FILES_BYTES_HASH_H_

#include <cstdint>
#include <memory>

#include "absl/strings/string_view.h"

namespace strata {

// XXH64 (seed 0; Y. Collet, xxhash.com) of all bytes since Reset, however they were cut. One
// thread.
//
//   BytesHash hash;
//   hash.Add("ab");
//   hash.Add("c");
//   hash.value();  // that of "abc"
class BytesHash {
 public:
  BytesHash();
  ~BytesHash();
  BytesHash(const BytesHash&) = delete;
  BytesHash& operator=(const BytesHash&) = delete;

  void Reset();
  void Add(absl::string_view bytes);
  uint64_t value() const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace strata

#endif  // STRATA_WORKER_DATA_FILES_BYTES_HASH_H_
