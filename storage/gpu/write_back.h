// Dirty rows that left a GPU table's slots and are not yet written below: the staging places.
// Tested by tests/storage/gpu/table_test.cc
#ifndef STRATA_STORAGE_GPU_WRITE_BACK_H_
#define STRATA_STORAGE_GPU_WRITE_BACK_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "storage/gpu/backend.h"
#include "storage/gpu/below.h"

namespace strata::storage::gpu {

// A row waits in its place until it is written below in a batch sorted by position, or goes back
// into a slot because it is referenced again. While it waits, its place holds the newest version of
// it, and it is neither in a slot nor erased. Not thread-safe.
class GpuWriteBack {
 public:
  // backend and below outlive it.
  GpuWriteBack(uint32_t places, GpuBackend* backend, GpuBelow* below);

  size_t waiting() const { return place_of_.size(); }

  // `n` free places, which stay free unless Add takes them; valid until the next call. Writes all
  // that waits, if there are fewer. REQUIRES: n <= places.
  absl::Status Room(size_t n, std::span<const uint32_t>& places);

  // A row that left lies in `place`, one of Room's.
  void Add(Position position, uint32_t place, uint8_t flags);
  // Call after the last Add of one Room.
  void Settle();

  // The place where a row waits, or kNoGpuSlot.
  uint32_t Find(Position position) const;
  uint8_t FlagsAt(uint32_t place) const { return entries_[place].flags; }
  // The row that waits there does so no more.
  void Remove(uint32_t place);

  // Writes at most `most` of the rows that wait below, the lowest positions first. Returns how
  // many; after an error those not written wait on.
  absl::StatusOr<size_t> Write(size_t most);

  // What waits within [first, last], ascending by position; GpuRow::slot is the place.
  std::vector<GpuRow> Waiting(Position first, Position last) const;

 private:
  struct Entry {
    uint64_t position = 0;
    uint8_t flags = 0;
    bool taken = false;
  };

  absl::Status WritePart(std::span<const GpuRow> waiting);

  GpuBackend* const backend_;
  GpuBelow* const below_;
  std::vector<Entry> entries_;  // (places)
  std::vector<uint32_t> free_;  // behind Room, before Settle: some of its last are taken
  size_t room_ = 0;             // of them the last, that Room gave
  absl::flat_hash_map<uint64_t, uint32_t> place_of_;
};

}  // namespace strata::storage::gpu

#endif  // STRATA_STORAGE_GPU_WRITE_BACK_H_
