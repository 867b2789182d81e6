// Work on files that waits to be done: of each job one piece at a time, in the order in which it
// came.
#ifndef STRATA_SCHEDULER_JOB_FILE_QUEUE_H_
#define STRATA_SCHEDULER_JOB_FILE_QUEUE_H_

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "scheduler/job/file_work.h"

namespace strata::scheduler {

// Pure; one thread at a time. A piece that is put off stays the first of its job: what comes after
// it may build on it, as a manifest in a folder whose earlier one is to be removed.
class FileQueue {
 public:
  // A look for leftovers stands for an earlier one that waits: it comes later, and looks where that
  // would have.
  void Add(FileWork work);
  // Jobs whose first piece `may` be done, and nobody does: the caller is to do them now.
  std::vector<uint64_t> Begin(const std::function<bool(const FileWork&)>& may);
  // For who does them: the first piece, which stays where it is. Null: there is none, and nobody
  // does them any more.
  const FileWork* First(uint64_t job);
  // The first piece was done.
  void Done(uint64_t job);
  // It can not be done now, and nobody does the job's pieces any more.
  void PutOff(uint64_t job) { doing_.erase(job); }
  // Jobs of which something is done, or is to be.
  std::set<uint64_t> Jobs() const;
  // For people: the first piece of the job, as "removing /c/step-000000000042". Empty: none.
  std::string Describe(uint64_t job) const;

 private:
  // None is empty. Lists: the first piece stays where it is while those behind it come and go.
  std::map<uint64_t, std::list<FileWork>> work_;
  std::set<uint64_t> doing_;
};

uint64_t JobOf(const FileWork& work);

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_JOB_FILE_QUEUE_H_
