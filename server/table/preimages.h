// The weights that rows had before a shard's last commit, so that the step before it can still be
// pulled (DESIGN.md section 6, "Bsp, to the bit", point 4).
#ifndef STRATA_SERVER_TABLE_PREIMAGES_H_
#define STRATA_SERVER_TABLE_PREIMAGES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "storage/row/device_rows.h"
#include "storage/row/table.h"

namespace strata::server {

// One table's. A row that the commit created is here with its initial weights: what an absent key
// reads as. Few steps are ever pulled again, so weights of rows that lie on a device stay there
// until somebody wants to read them.
//
// Memory: 8 bytes per row of one step and 4 dim, reused from step to step, on the host; or those
// 4 dim on the device, beyond the table's limit (DeviceRows::AllocateThere), in pieces that are
// never given back, with a quarter to spare: a steady step allocates nothing. After BringToHost
// both hold them until Clear.
class PreImages {
 public:
  // device: of the table, which outlives it; null: all are on the host.
  explicit PreImages(uint32_t dim, storage::DeviceRows* device = nullptr)
      : dim_(dim), device_(device) {}

  void Clear();
  // Place for the weights (n, dim) of the next rows. REQUIRES: positions strictly ascend, above
  // those that are here.
  float* Extend(std::span<const Position> positions);
  // Extends by the rows of the open Locate (refs, as positions: all exist), in the device's memory;
  // those of them that are not on the device go there too. False, and nothing has changed: none is,
  // or there is no room for their weights; Extend by them. Errors are the device's.
  absl::StatusOr<bool> KeepThere(std::span<const Position> positions,
                                 std::span<const storage::RowRef> refs);

  // Copies to the host what is not there. Errors are the device's.
  absl::Status BringToHost();
  bool on_host() const { return blocks_.empty(); }

  // Adds rows, strictly ascending among themselves, at their places; of a row that is here already,
  // what is here stays. O(both). REQUIRES: on_host, both.
  void Merge(const PreImages& rows);

  std::span<const Position> positions() const { return positions_; }
  // REQUIRES: on_host.
  std::span<const float> all_weights() const;  // (rows, dim)

  // Finds ascending positions by a merge: call with ascending positions only. Null: not here.
  // REQUIRES: on_host.
  class Cursor {
   public:
    explicit Cursor(const PreImages& images);
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
  const float* weights(size_t i) const { return weights_.data() + i * dim_; }
  // Place on the device; null: there is none, or the step's rows go to the host already.
  absl::StatusOr<float*> ExtendThere(std::span<const Position> positions);

  struct Piece {
    float* memory;
    size_t floats;
  };
  struct Block {
    const float* weights;  // (rows, dim), in a piece
    size_t rows;
  };

  const uint32_t dim_;
  storage::DeviceRows* const device_;
  std::vector<Position> positions_;
  // The first rows are in blocks_ on the device, the others in weights_: behind one that is on the
  // host all are.
  std::vector<Block> blocks_;
  std::vector<float, Uninitialised> weights_;
  std::vector<Piece> pieces_;
  size_t piece_floats_ = 0;  // of all pieces
  size_t piece_ = 0;         // in use, and those before it
  size_t used_ = 0;          // floats of it
  bool refused_ = false;     // a piece, in this step
  // Of KeepThere: rows that are not on the device.
  std::vector<uint32_t> elsewhere_;
  std::vector<float> weights_elsewhere_;  // (elsewhere_, dim)
};

}  // namespace strata::server

#endif  // STRATA_SERVER_TABLE_PREIMAGES_H_
