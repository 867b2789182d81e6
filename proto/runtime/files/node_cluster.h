// Which cluster a node belongs to: since its first contact, and until it is told to leave. An empty
// or foreign scheduler at the same address knows none of its jobs, and would have it drop them all.
#ifndef STRATA_PROTO_RUNTIME_FILES_NODE_CLUSTER_H_
#define STRATA_PROTO_RUNTIME_FILES_NODE_CLUSTER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/core/uid.h"

namespace strata {

// One thread at a time.
class NodeCluster {
 public:
  // What a scheduler says of itself with a directive.
  struct Scheduler {
    std::string cluster_id;
    uint64_t term = 0;
    std::string start_id;    // which start of it has that term
    bool transient = false;  // its cluster ends with its process: nothing is remembered beyond ours
  };

  // `folder`: the node's own, which holds `CLUSTER`; empty: it is remembered in memory alone.
  static absl::StatusOr<NodeCluster> Open(const std::string& folder);
  // Forgets the cluster of the node that has this folder; its process must not run.
  // INVALID_ARGUMENT: there is no such folder.
  static absl::Status Leave(const std::string& folder);

  // Empty: of none yet.
  std::string id() const { return id_.nil() ? "" : id_.text(); }
  uint64_t term() const { return term_; }
  const std::string& start_id() const { return start_id_; }

  // Whether to follow what this scheduler says; the first one decides the cluster, durably.
  // PERMISSION_DENIED: it is of another cluster (the text names both). FAILED_PRECONDITION: a later
  // start of it was heard of, or another one with the same term (the text names both). Others: the
  // file cannot be written; try again.
  absl::Status Follow(const Scheduler& scheduler);

 private:
  std::string path_;
  ClusterId id_;
  uint64_t term_ = 0;
  std::string start_id_;
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_FILES_NODE_CLUSTER_H_
