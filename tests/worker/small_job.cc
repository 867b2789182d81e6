#include "tests/worker/small_job.h"

#include <algorithm>
#include <utility>

#include "proto/core/uid.h"
#include "tests/worker/client/served_rows.h"
#include "tests/worker/small_training.h"

namespace strata::testing {

InputIndex SmallIndex(const std::string& file, uint32_t lines) {
  constexpr uint32_t kLinesOfTask = 3;
  InputIndex index;
  index.add_files()->set_path(file);
  for (uint32_t line = 0; line < lines; line += kLinesOfTask) {
    InputTask& task = *index.add_tasks();
    task.set_first_line(line + 1);
    task.set_lines(std::min(kLinesOfTask, lines - line));
  }
  index.set_lines(lines);
  index.mutable_shape()->set_fields(5);
  index.mutable_shape()->set_numeric(2);
  return index;
}

WorkerJobDirective SmallDirective(const std::string& mode, uint32_t lines) {
  WorkerJobDirective d;
  d.set_job(5);
  d.set_cluster_id(ClusterId{0, 1}.text());
  d.set_job_uid(JobUid{0, 5}.text());
  d.set_generation(2);
  JobSpec& spec = *d.mutable_spec()->mutable_spec();
  spec = SmallSpec();
  spec.mutable_data()->clear_train();
  spec.mutable_data()->add_train(std::string("train"));
  TrainingSpec& training = *spec.mutable_training();
  training.set_mode(mode);
  training.set_lanes(1);
  training.set_batch_size(3);
  training.set_epochs(1);
  training.set_threads(1);
  *d.mutable_train_index() = SmallIndex("train", lines);
  d.set_map_epoch(3);
  for (uint32_t s = 0; s < 4; ++s) {
    ShardAssignment& shard = *d.add_shards();
    shard.set_shard(s);
    shard.set_first_partition(s * 16);
    shard.set_last_partition(s * 16 + 15);
  }
  d.add_server_addresses("0");
  d.add_lanes(0);
  return d;
}

namespace {

class NotedSource : public MadeUpSource {
 public:
  explicit NotedSource(MadeUpData* data) : data_(data) {}

  absl::StatusOr<uint64_t> ReadLines(uint64_t first, const BatchLimit& most, Batch* out) override {
    data_->Note(most);
    return MadeUpSource::ReadLines(first, most, out);
  }

 private:
  MadeUpData* const data_;
};

}  // namespace

absl::Status MadeUpData::StatusOf(const std::string& file) {
  absl::MutexLock lock(&mu_);
  return file == bad_file_ ? status_ : absl::OkStatus();
}

absl::StatusOr<InputIndex> MadeUpData::BuildIndex(const JobSpec&,
                                                  const std::vector<std::string>& files,
                                                  const IndexOptions&) {
  if (absl::Status s = StatusOf(files[0]); !s.ok()) return s;
  absl::MutexLock lock(&mu_);
  indexed_.push_back(files[0]);
  return SmallIndex(files[0], 6);
}

absl::StatusOr<std::unique_ptr<BatchSource>> MadeUpData::Open(const JobSpec&,
                                                              const InputIndex& index,
                                                              const DataShape&) {
  const std::string& file = index.files(0).path();
  if (absl::Status s = StatusOf(file); !s.ok()) return s;
  absl::MutexLock lock(&mu_);
  opened_.push_back(file);
  return std::make_unique<NotedSource>(this);
}

void MadeUpData::Fail(const std::string& file, absl::Status status) {
  absl::MutexLock lock(&mu_);
  bad_file_ = file;
  status_ = std::move(status);
}

std::vector<std::string> MadeUpData::opened() const {
  absl::MutexLock lock(&mu_);
  return opened_;
}

std::vector<BatchLimit> MadeUpData::limits() const {
  absl::MutexLock lock(&mu_);
  return limits_;
}

void MadeUpData::Note(const BatchLimit& limit) {
  absl::MutexLock lock(&mu_);
  limits_.push_back(limit);
}

std::vector<std::string> MadeUpData::indexed() const {
  absl::MutexLock lock(&mu_);
  return indexed_;
}

}  // namespace strata::testing
