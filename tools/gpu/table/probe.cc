#include "tools/gpu/table/probe.h"

#include <cstddef>

#include "ops/cuda/kernel/kernel.h"
#include "ops/cuda/kernel/vector4.h"
#include "ops/inline.h"
#include "tools/gpu/table/fill.h"

namespace strata::gpu_check {
namespace {

using ops::gpu::CudaApi;
using ops::gpu::Load4;
using ops::gpu::StreamHandle;
using ops::gpu::Vector4;

constexpr uint32_t kLanesOfItem = 4;
constexpr uint32_t kPart = 16;         // bytes of one access
constexpr uint32_t kAhead = 4;         // of a row, per lane
constexpr float kNeverRead = 1.5e30f;  // no float of a bar's table

// A quarter of a bucket's bytes, by each of four lanes.
STRATA_HD Vector4 PartAt(const void* of_bucket, uint32_t lane) {
  return Load4(static_cast<const float*>(of_bucket) + 4 * lane, 4, true);
}
// What is read has to be used, or the compiler would leave it out.
STRATA_HD bool Never(const Vector4& x) {
  return x.at[0] == kNeverRead && x.at[1] == kNeverRead && x.at[2] == kNeverRead &&
         x.at[3] == kNeverRead;
}

// Row `slot` of the table to row i of the probe's, and `mark` into it where it never is.
template <typename Group>
STRATA_HD void MoveRow(const Group& group, const TableProbe& p, uint32_t slot, uint64_t i,
                       bool mark) {
  const auto* const from = reinterpret_cast<const float*>(p.t.rows + size_t{slot} * p.t.stride);
  auto* const to = reinterpret_cast<float*>(p.rows + i * p.t.stride);
  const uint32_t parts = p.t.stride / kPart;
  for (uint32_t begin = group.lane(); begin < parts; begin += kAhead * group.lanes()) {
    Vector4 row[kAhead];
    STRATA_UNROLL
    for (uint32_t a = 0; a < kAhead; ++a) {
      const uint32_t part = begin + a * group.lanes();
      row[a] = part < parts ? Load4(from + 4 * part, 4, true) : ops::gpu::Zero4();
    }
    STRATA_UNROLL
    for (uint32_t a = 0; a < kAhead; ++a) {
      const uint32_t part = begin + a * group.lanes();
      if (mark) row[a].at[0] = 0.0f;
      if (part < parts) ops::gpu::Store4(row[a], to + 4 * part, 4, true);
    }
  }
}

struct LookUpProbe {
  static constexpr uint32_t kLanes = kLanesOfItem;
  TableProbe p;
  STRATA_HD_MEMBER uint64_t items() const { return p.n; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group& group, uint64_t i) const {
    const uint32_t slot = p.slots[i];
    const size_t first = slot / kBarBucketSlots * size_t{kBarBucketSlots};
    bool mark = p.t.positions[slot] == 1;
    for (uint32_t part = group.lane(); part < kLanesOfItem; part += group.lanes()) {
      mark |= Never(PartAt(p.t.control + first, part));
    }
    MoveRow(group, p, slot, i, mark);
  }
};

struct InsertProbe {
  static constexpr uint32_t kLanes = kLanesOfItem;
  TableProbe p;
  STRATA_HD_MEMBER uint64_t items() const { return p.n; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group& group, uint64_t i) const {
    const uint32_t slot = p.slots[i];
    const size_t first = slot / kBarBucketSlots * size_t{kBarBucketSlots};
    bool mark = false;
    for (uint32_t part = group.lane(); part < kLanesOfItem; part += group.lanes()) {
      const Vector4 control = PartAt(p.t.control + first, part);
      const Vector4 pins = PartAt(p.t.pins + first, part);
      const Vector4 flags = PartAt(p.t.flags + first, part);
      const Vector4 low = PartAt(p.t.scores + first, part);
      const Vector4 high = PartAt(p.t.scores + first, part + kLanesOfItem);
      mark |= Never(control) || Never(pins) || Never(flags) || Never(low) || Never(high);
    }
    if (group.lane() == 0) {
      // A store of what was just read would be left out; so `mark`, which is false, takes part.
      const uint64_t position = p.t.positions[slot];
      const uint16_t score = p.t.scores[slot];
      const uint8_t control = p.t.control[slot], flags = p.t.flags[slot], pins = p.t.pins[slot];
      p.t.positions[slot] = position + mark;
      p.t.scores[slot] = static_cast<uint16_t>(score + mark);
      p.t.control[slot] = static_cast<uint8_t>(control + mark);
      p.t.flags[slot] = static_cast<uint8_t>(flags + mark);
      p.t.pins[slot] = static_cast<uint8_t>(pins + mark);
    }
    MoveRow(group, p, slot, i, mark);
  }
};

}  // namespace

absl::Status ProbeLookUps(CudaApi& api, const TableProbe& probe, StreamHandle stream) {
  return ops::gpu::LaunchOver(api, "probe look-ups", LookUpProbe{probe}, probe.n, stream);
}

absl::Status ProbeInserts(CudaApi& api, const TableProbe& probe, StreamHandle stream) {
  return ops::gpu::LaunchOver(api, "probe inserts", InsertProbe{probe}, probe.n, stream);
}

}  // namespace strata::gpu_check
