// The interface of a table's tiers, alone (DRAM) or stacked (tiered, GPU): rows by position.
// One writer: all calls of one table come from one executor at a time; tables need no locks.
// Tested by tests/storage/dram/table_test.cc
// Tested by tests/storage/tiered/table_test.cc
#ifndef STRATA_STORAGE_ROW_TABLE_H_
#define STRATA_STORAGE_ROW_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/ids.h"

namespace strata::storage {

enum class Access : uint8_t {
  kRead,     // absent rows come back as null; creates nothing
  kUpdate,   // absent rows are made, bytes uninitialised, and marked created; present rows turn
             // dirty
  kReplace,  // as kUpdate of rows that exist, whose every byte the caller will set: nothing is read
             // from below for them. REQUIRES: they exist
};

struct RowRef {
  uint8_t* row = nullptr;  // row_bytes, 4-byte aligned; valid until Release
  bool created = false;    // kUpdate: the caller must fill all of it
  bool on_device = false;  // of DeviceRows::Locate alone (device_rows.h)
};

// Where a row may lie: a hint that outlives Release, checked wherever it is used, so that any
// number is harmless.
using RowSlot = uint32_t;
inline constexpr RowSlot kNoRow = ~RowSlot{0};

struct TableCounters {
  uint64_t rows = 0;  // that exist, in any tier
  uint64_t dram_rows = 0;
  uint64_t dram_bytes = 0;  // rows and index: what the limit bounds
  uint64_t hits = 0;        // referenced and found in DRAM
  uint64_t ssd_reads = 0;   // referenced and found below
  uint64_t absent = 0;
  uint64_t evicted = 0;
  uint64_t written_back = 0;
  uint64_t written_ahead = 0;  // of them by Tidy
  uint64_t pinned = 0;         // rows held by Pin
  // Of the tier above DRAM, where there is one (storage/gpu/table.h); the counters above know
  // nothing of it, but for rows and pinned.
  uint64_t hbm_rows = 0;
  uint64_t hbm_bytes = 0;         // of its memory: what its limit bounds
  uint64_t hbm_hits = 0;          // referenced and found there
  uint64_t hbm_evicted = 0;       // left for DRAM
  uint64_t hbm_written_back = 0;  // rows written to DRAM
  uint64_t hbm_gathered = 0;      // rows read where they lie (device_rows.h)
  uint64_t hbm_updated = 0;       // rows updated there
  uint64_t hbm_extra_bytes = 0;   // beyond hbm_bytes: of DeviceRows::AllocateThere
};

class DeviceRows;

class RowTable {
 public:
  virtual ~RowTable() = default;

  // Of a table with rows in a device's memory: its way to read and update them there. Else null.
  virtual DeviceRows* device_rows() { return nullptr; }

  // Most positions that one Resolve may name: such a batch always fits the DRAM limit.
  virtual size_t max_batch() const = 0;

  // A hint: up to `rows` rows that may be new come next, ascending by position over all calls.
  virtual void Expect(uint64_t rows) { static_cast<void>(rows); }

  // Finds the rows of `positions` (strictly ascending, at most max_batch) and pins them: refs[i]
  // answers positions[i] and stays valid until Release. At most one Resolve is open at a time.
  // On error nothing is pinned and nothing was created. RESOURCE_EXHAUSTED names requested and free
  // bytes; DATA_LOSS / UNAVAILABLE come from the tier below, named.
  // `slots` is empty, or as positions: hints, of which the right ones save a search; on success it
  // says where the rows are (kNoRow: absent).
  virtual absl::Status Resolve(std::span<const Position> positions, Access access,
                               std::span<RowRef> refs, std::span<RowSlot> slots) = 0;
  absl::Status Resolve(std::span<const Position> positions, Access access, std::span<RowRef> refs) {
    return Resolve(positions, access, refs, {});
  }
  virtual void Release() = 0;

  // Holds rows in DRAM (of a GPU table: in HBM) beyond Release, until as many calls of Unpin: those
  // of `slots`, as the open Resolve gave them, from the first on. Pins hold at most half of a
  // tier's rows: when they do, the rest is not pinned. Returns how many of `slots` were gone
  // through. A pinned row can still be erased, which ends its pins.
  virtual size_t Pin(std::span<const RowSlot> slots) = 0;
  // Ends one pin of each row that still lies where it did. REQUIRES: they went through Pin. A row
  // that was erased meanwhile and made again in its old place loses a pin of another's, and may
  // leave DRAM too early.
  virtual void Unpin(std::span<const Position> positions, std::span<const RowSlot> slots) = 0;

  // Removes rows (those that exist); nothing may be pinned.
  virtual absl::Status Erase(std::span<const Position> positions) = 0;

  // Calls `visit` for every row of every tier with first <= position <= last, ascending by
  // position. The row bytes are valid during the call. Stops at the first error, and returns it.
  // Promotes nothing.
  using Visitor = std::function<absl::Status(Position, std::span<const uint8_t> row)>;
  virtual absl::Status Scan(Position first, Position last, const Visitor& visit) = 0;

  // Writes dirty rows to the tier below, if there is one; they stay.
  virtual absl::Status Flush() = 0;

  // A slice of background work: writes at most `rows` dirty rows below that are next to leave, so
  // that later calls find clean ones to drop. Returns how many; 0: there is nothing to do now.
  virtual absl::StatusOr<size_t> Tidy(size_t rows) = 0;

  virtual TableCounters counters() const = 0;
};

}  // namespace strata::storage

#endif  // STRATA_STORAGE_ROW_TABLE_H_
