#include "server/table/change_list.h"

#include <algorithm>
#include <utility>

namespace strata::server {

void ChangeList::Begin(uint64_t base_step, uint64_t rows) {
  Stop();
  active_ = true;
  base_step_ = base_step;
  limit_ = Limit(rows);
}

void ChangeList::Stop() {
  active_ = false;
  std::vector<Position>().swap(positions_);
  before_ = {};
  rows_before_ = 0;
}

void ChangeList::Add(Position position) {
  if (!active_) return;
  if (positions_.size() >= limit_) return Stop();
  positions_.push_back(position);
}

void ChangeList::Changed(Position position, const storage::HashSum& before) {
  Add(position);
  before_ += before;
  ++rows_before_;
}

ChangeList::Changes ChangeList::Take() {
  Changes out{base_step_, std::move(positions_), before_, rows_before_};
  Stop();
  std::sort(out.positions.begin(), out.positions.end());
  out.positions.erase(std::unique(out.positions.begin(), out.positions.end()), out.positions.end());
  return out;
}

}  // namespace strata::server
