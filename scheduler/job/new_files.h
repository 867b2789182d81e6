// Daily training: what a job reads that resumes with more files than before. Pure functions.
//
// A checkpoint lists the files of its run (TrainedData). A job that resumes has to name them all,
// in their order, wherever they lie; a file is the same one by its size, its first and its last 64
// KiB (DataFile::Fingerprint). It may name more behind them when that run had read its files to the
// end: then it reads the new ones alone, spec.training.epochs times, and its steps and tasks are
// counted on behind the earlier ones.
#ifndef STRATA_SCHEDULER_JOB_NEW_FILES_H_
#define STRATA_SCHEDULER_JOB_NEW_FILES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/control.pb.h"
#include "scheduler/state/state.pb.h"

namespace strata::scheduler {

struct FilesToRead {
  uint32_t first = 0;   // files before it were read by earlier runs
  bool more = false;    // than the checkpoint lists
  DataProgress before;  // of the earlier runs; of none: empty
};

// FAILED_PRECONDITION: a file that the checkpoint lists is gone, changed or elsewhere in the order;
// named, with the remedy. A checkpoint that lists none says nothing: all are read as before.
absl::StatusOr<FilesToRead> FindFilesToRead(const TrainedData& saved, const InputIndex& now);

// FAILED_PRECONDITION: there are more files, and the run of `checkpoint` has not read its own to
// the end.
absl::Status CheckReadToEnd(const FilesToRead& files, const TrainedData& saved,
                            const InputIndex& now, const CheckpointRecord& checkpoint, bool bsp);

// `all` without the files before files.first.
InputIndex IndexToRead(const InputIndex& all, const FilesToRead& files);

// What manifests of the job say of its data. `reads`: all, or IndexToRead.
TrainedData TrainedDataOf(const JobSpec& spec, const InputIndex& all, const InputIndex& reads);

// For people: "2 training files were read before; reads 1: /data/day3.tsv". Empty: all are read.
std::string FilesToReadText(const FilesToRead& files, const InputIndex& all);

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_JOB_NEW_FILES_H_
