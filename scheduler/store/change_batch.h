// Changes of records that wait for their store.
#ifndef STRATA_SCHEDULER_STORE_CHANGE_BATCH_H_
#define STRATA_SCHEDULER_STORE_CHANGE_BATCH_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "scheduler/store/metadata_store.h"

namespace strata::scheduler {

// What a store does not take is tried again with what has changed since; of a record its last
// change counts. So however long a store takes nothing, there is one change of each record. Not
// thread-safe.
class ChangeBatch {
 public:
  void Add(std::vector<MetadataChange> changes);
  void Clear();
  const std::vector<MetadataChange>& changes() const { return changes_; }
  bool empty() const { return changes_.empty(); }

 private:
  std::vector<MetadataChange> changes_;   // one of a key
  std::map<std::string, size_t> places_;  // by key: in changes_
};

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_STORE_CHANGE_BATCH_H_
