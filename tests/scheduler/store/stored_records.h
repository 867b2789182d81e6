// What a metadata store keeps, as a map.
#ifndef STRATA_TESTS_SCHEDULER_STORE_STORED_RECORDS_H_
#define STRATA_TESTS_SCHEDULER_STORE_STORED_RECORDS_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "scheduler/store/metadata_store.h"

namespace strata::scheduler {

// Applies the changes to `records` in their order. Returns how many of them remove a record that is
// not there.
inline size_t ApplyChanges(const std::vector<MetadataChange>& changes,
                           std::map<std::string, std::string>& records) {
  size_t missing = 0;
  for (const MetadataChange& c : changes) {
    if (c.value) {
      records[c.key] = *c.value;
    } else {
      missing += records.erase(c.key) == 0;
    }
  }
  return missing;
}

}  // namespace strata::scheduler

#endif  // STRATA_TESTS_SCHEDULER_STORE_STORED_RECORDS_H_
