// A directory with checkpoints of a job.
#ifndef STRATA_TESTS_SCHEDULER_STORE_WRITTEN_CHECKPOINTS_H_
#define STRATA_TESTS_SCHEDULER_STORE_WRITTEN_CHECKPOINTS_H_

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

#include "proto/core/uid.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/runtime/files/plain_file.h"
#include "proto/strata/checkpoint.pb.h"
#include "tests/scheduler/state/saved_jobs.h"

namespace strata::scheduler {

inline constexpr JobIdentity kIdentity = {{0, 1}, {0, 2}};
inline constexpr char kOlder[] = "/step-000000000003";
inline constexpr char kNewest[] = "/step-000000000004";
inline constexpr char kNewestManifest[] = "/step-000000000004/MANIFEST.json";
inline constexpr char kNewestFile[] = "/step-000000000004/a.strata";

// Whole ones of steps 3 and 4, of one file each.
inline void WriteCheckpoints(const std::string& directory, const JobIdentity& identity = {}) {
  for (const uint64_t step : {3, 4}) {
    const std::string folder = directory + "/" + CheckpointFolderName(step);
    Manifest saved = SavedBy(JobOf("adagrad", "adagrad", "adam"));
    saved.set_step(step);
    saved.set_cluster_id(identity.cluster.text());
    saved.set_job_uid(identity.job.text());
    saved.add_files()->set_name("a.strata");
    REQUIRE(WriteManifest(folder, saved).ok());
    REQUIRE(WritePlainFile(folder + "/a.strata", "").ok());
  }
}

}  // namespace strata::scheduler

#endif  // STRATA_TESTS_SCHEDULER_STORE_WRITTEN_CHECKPOINTS_H_
