// The weights that rows had before a shard's last commit, so that the step before it can still be
// pulled (DESIGN.md section 6, "Bsp, to the bit", point 4).
#ifndef STRATA_SERVER_PREIMAGES_H_
#define STRATA_SERVER_PREIMAGES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "proto/core/ids.h"

namespace strata::server {

// One table's. A row that the commit created is here with its initial weights: what an absent key
// reads as. Memory: (8 + 4 dim) bytes per row of one step, reused from step to step.
class PreImages {
 public:
  explicit PreImages(uint32_t dim) : dim_(dim) {}

  void Clear() {
    positions_.clear();
    weights_.clear();
  }
  // Place for the weights (n, dim) of the next rows. REQUIRES: positions strictly ascend, above
  // those that are here.
  float* Extend(std::span<const Position> positions) {
    positions_.insert(positions_.end(), positions.begin(), positions.end());
    weights_.resize(positions_.size() * dim_);
    return weights_.data() + (positions_.size() - positions.size()) * dim_;
  }

  // Adds rows, strictly ascending among themselves, at their places; of a row that is here already,
  // what is here stays. O(both).
  void Merge(const PreImages& rows);

  std::span<const Position> positions() const { return positions_; }
  std::span<const float> all_weights() const { return weights_; }  // (rows, dim)
  const float* weights(size_t i) const { return weights_.data() + i * dim_; }

  // Finds ascending positions by a merge: call with ascending positions only. Null: not here.
  class Cursor {
   public:
    explicit Cursor(const PreImages& images) : images_(images) {}
    const float* Find(Position position);

   private:
    const PreImages& images_;
    size_t at_ = 0;
  };

 private:
  // resize() leaves new floats as they are: the caller of Extend writes them.
  struct Uninitialised : std::allocator<float> {
    template <typename U>
    struct rebind {
      using other = Uninitialised;
    };
    template <typename U>
    void construct(U*) noexcept {}
    template <typename U, typename V>
    void construct(U* at, V&& value) {
      ::new (static_cast<void*>(at)) U(std::forward<V>(value));
    }
  };

  uint32_t dim_;
  std::vector<Position> positions_;
  std::vector<float, Uninitialised> weights_;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_PREIMAGES_H_
