#include "scheduler/job/new_files.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "scheduler/job/progress.h"

namespace strata::scheduler {
namespace {

bool Same(const TrainedFile& was, const InputFile& is) {
  return was.bytes() == is.bytes() && was.fingerprint() == is.fingerprint();
}

std::string Count(int files) {
  return absl::StrCat(files, files == 1 ? " training file" : " training files");
}

// What became of file `i` of the checkpoint, which is not file `i` of the job.
absl::Status NotThere(const TrainedData& saved, int i, const InputIndex& now) {
  const TrainedFile& was = saved.files(i);
  const auto& files = now.files();
  const auto moved =
      std::find_if(files.begin(), files.end(), [&](const InputFile& f) { return Same(was, f); });
  const auto changed = std::find_if(files.begin(), files.end(),
                                    [&](const InputFile& f) { return f.path() == was.path(); });
  std::string what = absl::StrCat("training file ", was.path(), ", number ", i + 1,
                                  " of the checkpoint to resume from, ");
  if (moved != files.end()) {
    absl::StrAppend(&what, "is number ", moved - files.begin() + 1, " now");
  } else if (changed != files.end()) {
    absl::StrAppend(&what, "has changed: it had ", was.bytes(), " bytes and has ",
                    changed->bytes());
    if (was.bytes() == changed->bytes()) absl::StrAppend(&what, ", other ones");
  } else {
    absl::StrAppend(&what, "is not among the job's files any more");
  }
  return absl::FailedPreconditionError(
      absl::StrCat(what,
                   "; resume with the checkpoint's files in their order, and new ones behind "
                   "them, or begin a new job with spec.model.initFrom"));
}

}  // namespace

absl::StatusOr<FilesToRead> FindFilesToRead(const TrainedData& saved, const InputIndex& now) {
  if (saved.files().empty()) return FilesToRead{};
  for (int i = 0; i < saved.files_size(); ++i) {
    if (i >= now.files_size() || !Same(saved.files(i), now.files(i))) {
      return NotThere(saved, i, now);
    }
  }
  if (now.files_size() == saved.files_size()) {
    return FilesToRead{.first = saved.first_file(), .more = false, .before = saved.before()};
  }
  return FilesToRead{
      .first = static_cast<uint32_t>(saved.files_size()), .more = true, .before = saved.end()};
}

absl::Status CheckReadToEnd(const FilesToRead& files, const TrainedData& saved,
                            const InputIndex& now, const CheckpointRecord& checkpoint, bool bsp) {
  if (!files.more) return absl::OkStatus();
  const uint64_t done = bsp ? checkpoint.step() : checkpoint.closed_below();
  const uint64_t end = bsp ? saved.end().steps() : saved.end().tasks();
  if (done == end) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("training file ", now.files(static_cast<int>(files.first)).path(),
                   " is new, but checkpoint ", checkpoint.folder(), " has not read the ",
                   Count(saved.files_size()), " before it to the end (", bsp ? "step " : "task ",
                   done, " of ", end, "); resume with those alone first, then with more"));
}

InputIndex IndexToRead(const InputIndex& all, const FilesToRead& files) {
  InputIndex out;
  for (int i = static_cast<int>(files.first); i < all.files_size(); ++i) {
    *out.add_files() = all.files(i);
  }
  uint64_t lines = 0;
  for (const InputTask& task : all.tasks()) {
    if (task.file() < files.first) continue;
    InputTask* const own = out.add_tasks();
    *own = task;
    own->set_file(task.file() - files.first);
    lines += task.lines();
  }
  out.set_lines(lines);
  *out.mutable_shape() = all.shape();
  *out.mutable_vocabularies() = all.vocabularies();
  *out.mutable_before() = files.before;
  return out;
}

TrainedData TrainedDataOf(const JobSpec& spec, const InputIndex& all, const InputIndex& reads) {
  TrainedData out;
  for (const InputFile& file : all.files()) {
    TrainedFile* const listed = out.add_files();
    listed->set_path(file.path());
    listed->set_bytes(file.bytes());
    listed->set_fingerprint(file.fingerprint());
  }
  out.set_first_file(static_cast<uint32_t>(all.files_size() - reads.files_size()));
  if (reads.has_before()) *out.mutable_before() = reads.before();
  out.mutable_end()->set_steps(TotalSteps(spec, reads));
  if (spec.training().mode() != "bsp") out.mutable_end()->set_tasks(TotalTasks(spec, reads));
  out.mutable_end()->set_lines(TotalLines(spec, reads));
  return out;
}

std::string FilesToReadText(const FilesToRead& files, const InputIndex& all) {
  if (files.first == 0) return "";
  const int left = all.files_size() - static_cast<int>(files.first);
  std::string text = absl::StrCat(Count(static_cast<int>(files.first)),
                                  files.first == 1 ? " was" : " were", " read before; reads ", left,
                                  ": ", all.files(static_cast<int>(files.first)).path());
  if (left > 1) absl::StrAppend(&text, " to ", all.files(all.files_size() - 1).path());
  return text;
}

}  // namespace strata::scheduler
