// Where the scheduler keeps what must survive it: small records under keys, changed in atomic
// batches. The records together are the snapshot; a batch is one event.
#ifndef STRATA_SCHEDULER_STORE_METADATA_STORE_H_
#define STRATA_SCHEDULER_STORE_METADATA_STORE_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace strata::scheduler {

// One record's new value; nothing: the record goes.
struct MetadataChange {
  std::string key;
  std::optional<std::string> value;
};

// One caller at a time.
class MetadataStore {
 public:
  virtual ~MetadataStore() = default;

  // All changes or none; durable when it returns OK (implementations say how durable). A later
  // change of the same key in a batch wins. RESOURCE_EXHAUSTED: disk full; the store still works
  // and the batch may be written again. DATA_LOSS, INTERNAL: as the text says.
  virtual absl::Status Append(const std::vector<MetadataChange>& batch) = 0;

  // Every record, by key.
  virtual absl::StatusOr<std::map<std::string, std::string>> Read() const = 0;
};

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_STORE_METADATA_STORE_H_
