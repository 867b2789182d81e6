#include "storage/gpu/below.h"

#include <algorithm>
#include <cstring>

namespace strata::storage::gpu {

absl::Status GpuBelow::Open(std::span<const Position> positions, Access access,
                            std::span<RowRef> refs) {
  absl::Status s = table_->Resolve(positions, access, refs);
  open_ = s.ok();
  return s;
}

void GpuBelow::Release() {
  if (open_) table_->Release();
  open_ = false;
}

absl::Status GpuBelow::Serve(std::span<const Position> positions, Access access,
                             std::span<RowRef> refs) {
  const TableCounters before = table_->counters();
  absl::Status s = Open(positions, access, refs);
  Discount(before);
  return s;
}

absl::Status GpuBelow::Store(std::vector<Row>& rows, size_t& done) {
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.known != b.known ? a.known : a.position < b.position;
  });
  const auto known = static_cast<size_t>(
      std::count_if(rows.begin(), rows.end(), [](const Row& r) { return r.known; }));
  const TableCounters before = table_->counters();
  const size_t most = std::min(kStoreRows, table_->max_batch());
  absl::Status s;
  for (done = 0; done < rows.size();) {
    const bool replaces = done < known;
    const size_t n = std::min(most, (replaces ? known : rows.size()) - done);
    positions_.resize(n);
    refs_.resize(n);
    for (size_t i = 0; i < n; ++i) positions_[i] = rows[done + i].position;
    s = Open(positions_, replaces ? Access::kReplace : Access::kUpdate, refs_);
    if (!s.ok()) break;
    for (size_t i = 0; i < n; ++i) std::memcpy(refs_[i].row, rows[done + i].bytes, row_bytes_);
    Release();
    if (!replaces) lacking_ -= n;
    stored_ += n;
    done += n;
  }
  Discount(before);
  return s;
}

void GpuBelow::Discount(const TableCounters& since) {
  const TableCounters now = table_->counters();
  discount_.hits += now.hits - since.hits;
  discount_.ssd_reads += now.ssd_reads - since.ssd_reads;
  discount_.absent += now.absent - since.absent;
}

TableCounters GpuBelow::counters() const {
  TableCounters counters = table_->counters();
  counters.rows += lacking_;
  counters.hbm_written_back = stored_;
  counters.hits -= discount_.hits;
  counters.ssd_reads -= discount_.ssd_reads;
  counters.absent -= discount_.absent;
  return counters;
}

}  // namespace strata::storage::gpu
