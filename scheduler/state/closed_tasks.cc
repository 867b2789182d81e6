#include "scheduler/state/closed_tasks.h"

#include <set>

namespace strata::scheduler {

void SetClosedTasks(const google::protobuf::RepeatedField<uint64_t>& listed,
                    CheckpointRecord& record) {
  const std::set<uint64_t> closed(listed.begin(), listed.end());
  uint64_t below = 0;
  while (closed.count(below) > 0) ++below;
  record.set_closed_below(below);
  record.mutable_closed_tasks()->Assign(closed.lower_bound(below), closed.end());
}

std::vector<uint64_t> ListClosedTasks(const CheckpointRecord& record) {
  std::vector<uint64_t> closed;
  for (uint64_t task = 0; task < record.closed_below(); ++task) closed.push_back(task);
  closed.insert(closed.end(), record.closed_tasks().begin(), record.closed_tasks().end());
  return closed;
}

}  // namespace strata::scheduler
