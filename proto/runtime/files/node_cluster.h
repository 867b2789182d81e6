// Which cluster a node belongs to: since its first contact, and until it is told to leave. An empty
// or foreign scheduler at the same address knows none of its jobs, and would have it drop them all.
#ifndef STRATA_PROTO_RUNTIME_FILES_NODE_CLUSTER_H_
#define STRATA_PROTO_RUNTIME_FILES_NODE_CLUSTER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/strata/control.pb.h"

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
  // file of a node that is of no cluster yet cannot be written; try again. One that is of a cluster
  // follows a later start of its scheduler all the same, or its jobs would wait for a disk that
  // they may not need: until the file can be written, a new process of it knows of the start before
  // alone.
  absl::Status Follow(const Scheduler& scheduler);
  // Now and then: tries again to write what could not be written. For logs: what began, or ended,
  // since the last call; mostly empty.
  std::string Tend(absl::Time now);
  // Which cluster and start it is; and, where that cannot be written, as a trouble
  // (ClusterNotRecorded) of each job that the report has.
  void AddTo(NodeReport& report) const;

 private:
  struct Unrecorded {
    absl::Status why;
    std::optional<absl::Time> since;  // none: Tend has not seen it yet
    absl::Time next;                  // not before
  };

  absl::Status Write(const ClusterId& id, uint64_t term, const std::string& start_id) const;

  std::string path_;
  std::optional<Unrecorded> unrecorded_;
  ClusterId id_;
  uint64_t term_ = 0;
  std::string start_id_;
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_FILES_NODE_CLUSTER_H_
