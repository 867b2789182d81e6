#include "worker/data/files/bytes_hash.h"

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

namespace strata {

struct BytesHash::State {
  XXH64_state_t hash;
};

BytesHash::BytesHash() : state_(std::make_unique<State>()) { Reset(); }
BytesHash::~BytesHash() = default;

void BytesHash::Reset() { XXH64_reset(&state_->hash, 0); }

void BytesHash::Add(absl::string_view bytes) {
  XXH64_update(&state_->hash, bytes.data(), bytes.size());
}

uint64_t BytesHash::value() const { return XXH64_digest(&state_->hash); }

}  // namespace strata
