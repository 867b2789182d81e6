// Copies between arrays of the host, done by several threads at once.
// Tested by tests/worker/device/step_test.cc
#ifndef STRATA_WORKER_DEVICE_LAYERS_COPY_LIST_H_
#define STRATA_WORKER_DEVICE_LAYERS_COPY_LIST_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "ops/parallel.h"

namespace strata::device {

// One thread at a time. Owns scratch memory, so that a steady state allocates nothing.
class CopyList {
 public:
  // What a thread copies at a time: large beside what it costs to hand it out.
  static constexpr size_t kPieceBytes = size_t{256} << 10;

  void Clear() { pieces_.clear(); }

  // `from` and `to` live until Run has returned, and overlap with nothing else in the list.
  template <typename T>
  void Add(const T* from, size_t count, T* to) {
    const size_t bytes = count * sizeof(T);
    for (size_t at = 0; at < bytes; at += kPieceBytes) {
      pieces_.push_back({reinterpret_cast<const uint8_t*>(from) + at,
                         reinterpret_cast<uint8_t*>(to) + at, std::min(kPieceBytes, bytes - at)});
    }
  }
  template <typename T>
  void Add(const std::vector<T>& from, T* to) {
    Add(from.data(), from.size(), to);
  }

  // Copies all, and meanwhile calls beside(), which may be any work that the copies have nothing to
  // do with, on one of the threads.
  template <typename Beside>
  void Run(ops::Parallel* parallel, const Beside& beside) const {
    parallel->For(pieces_.size() + 1, [&](size_t i) {
      if (i == 0) return beside();
      const Piece& piece = pieces_[i - 1];
      std::memcpy(piece.to, piece.from, piece.bytes);
    });
  }
  void Run(ops::Parallel* parallel) const {
    Run(parallel, [] {});
  }

 private:
  struct Piece {
    const uint8_t* from;
    uint8_t* to;
    size_t bytes;
  };
  std::vector<Piece> pieces_;
};

}  // namespace strata::device

#endif  // STRATA_WORKER_DEVICE_LAYERS_COPY_LIST_H_
