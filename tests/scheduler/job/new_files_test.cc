#include "scheduler/job/new_files.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "scheduler/job/progress.h"

namespace strata::scheduler {
namespace {

// Files /d/NAME of so many lines, in tasks of at most 4; a file's contents are its lines.
InputIndex Index(const std::vector<std::pair<std::string, uint32_t>>& files) {
  InputIndex index;
  for (const auto& [name, lines] : files) {
    InputFile& file = *index.add_files();
    file.set_path("/d/" + name);
    file.set_bytes(lines * 10);
    file.set_fingerprint(lines);
    for (uint32_t at = 0; at < lines; at += 4) {
      InputTask& task = *index.add_tasks();
      task.set_file(static_cast<uint32_t>(index.files_size() - 1));
      task.set_offset(at * 10);
      task.set_lines(std::min(4u, lines - at));
    }
    index.set_lines(index.lines() + lines);
  }
  return index;
}

JobSpec Spec(const std::string& mode) {
  JobSpec spec;
  spec.mutable_training()->set_mode(mode);
  spec.mutable_training()->set_lanes(2);
  spec.mutable_training()->set_batch_size(1);
  spec.mutable_training()->set_epochs(3);
  return spec;
}

TEST_CASE("days are counted on, run after run", "[scheduler][daily]") {
  const std::string mode = GENERATE("bsp", "async");
  const bool bsp = mode == "bsp";
  const JobSpec spec = Spec(mode);
  const InputIndex two = Index({{"1", 8}, {"2", 6}});
  const TrainedData first = TrainedDataOf(spec, two, two);
  CHECK(first.first_file() == 0);
  CHECK(first.end().steps() == (bsp ? 3 * 7 : 3 * 14));
  CHECK(first.end().tasks() == (bsp ? 0 : 3 * 4));
  CHECK(first.end().lines() == 3 * 14);

  const InputIndex four = Index({{"1", 8}, {"2", 6}, {"3", 10}, {"4", 2}});
  auto files = FindFilesToRead(first, four);
  REQUIRE(files.ok());
  CHECK((files->first == 2 && files->more));
  const InputIndex reads = IndexToRead(four, *files);
  CHECK(reads.files_size() == 2);
  CHECK(reads.lines() == 12);
  REQUIRE(reads.tasks_size() == 4);
  CHECK(reads.tasks(0).file() == 0);
  CHECK(reads.tasks(3).file() == 1);
  CHECK(TotalSteps(spec, reads) == first.end().steps() + (bsp ? 3 * 6 : 3 * 12));
  CHECK(TotalTasks(spec, reads) == first.end().tasks() + 3 * 4);
  CHECK(TotalLines(spec, reads) == 3 * 26);
  if (bsp) CHECK(LinesBy(spec, reads, first.end().steps()) == 3 * 14);
  if (bsp) CHECK(LinesBy(spec, reads, first.end().steps() + 2) == 3 * 14 + 4);
  CHECK(FilesToReadText(*files, four) ==
        "2 training files were read before; reads 2: /d/3 to /d/4");

  // The second run's checkpoints: with the same files they go on where they were, with more behind.
  const TrainedData second = TrainedDataOf(spec, four, reads);
  CHECK(second.first_file() == 2);
  CHECK(second.before().SerializeAsString() == first.end().SerializeAsString());
  files = FindFilesToRead(second, four);
  REQUIRE(files.ok());
  CHECK((files->first == 2 && !files->more));
  CHECK(files->before.SerializeAsString() == first.end().SerializeAsString());
  const InputIndex five = Index({{"1", 8}, {"2", 6}, {"3", 10}, {"4", 2}, {"5", 1}});
  files = FindFilesToRead(second, five);
  REQUIRE(files.ok());
  CHECK((files->first == 4 && files->more));
  CHECK(files->before.SerializeAsString() == second.end().SerializeAsString());
}

TEST_CASE("more files need that the others were read to the end", "[scheduler][daily]") {
  const std::string mode = GENERATE("bsp", "async");
  const bool bsp = mode == "bsp";
  const InputIndex one = Index({{"1", 8}});
  const TrainedData saved = TrainedDataOf(Spec(mode), one, one);
  const InputIndex two = Index({{"1", 8}, {"2", 6}});
  CheckpointRecord at;
  at.set_folder("/c");
  at.set_step(bsp ? saved.end().steps() : 77);
  at.set_closed_below(bsp ? 0 : saved.end().tasks());
  const auto more = FindFilesToRead(saved, two), same = FindFilesToRead(saved, one);
  REQUIRE((more.ok() && same.ok()));
  CHECK(CheckReadToEnd(*more, saved, two, at, bsp).ok());
  at.set_step(at.step() - 1);
  if (!bsp) at.set_closed_below(at.closed_below() - 1);
  CHECK_THAT(std::string(CheckReadToEnd(*more, saved, two, at, bsp).message()),
             Catch::Contains("/d/2 is new, but checkpoint /c has not read the 1 training file"));
  CHECK(CheckReadToEnd(*same, saved, one, at, bsp).ok());
}

TEST_CASE("files of the checkpoint that are not as they were are named", "[scheduler][daily]") {
  const InputIndex two = Index({{"1", 8}, {"2", 6}});
  const TrainedData saved = TrainedDataOf(Spec("bsp"), two, two);
  const auto why = [&](const InputIndex& now) {
    const auto files = FindFilesToRead(saved, now);
    REQUIRE(files.status().code() == absl::StatusCode::kFailedPrecondition);
    return std::string(files.status().message());
  };
  CHECK_THAT(why(Index({{"2", 6}, {"1", 8}, {"3", 5}})),
             Catch::Contains("/d/1, number 1 of the checkpoint to resume from, is number 2 now"));
  CHECK_THAT(why(Index({{"1", 8}, {"2", 7}, {"3", 5}})),
             Catch::Contains("/d/2, number 2") && Catch::Contains("it had 60 bytes and has 70"));
  CHECK_THAT(why(Index({{"1", 8}, {"3", 5}})),
             Catch::Contains("/d/2, number 2") && Catch::Contains("is not among the job's files"));
  CHECK_THAT(why(Index({{"1", 8}})), Catch::Contains("/d/2, number 2"));
  InputIndex other = two;
  other.mutable_files(1)->set_fingerprint(9);
  CHECK_THAT(why(other), Catch::Contains("it had 60 bytes and has 60, other ones"));
  // Wherever they lie.
  InputIndex moved = two;
  moved.mutable_files(1)->set_path("/e/2");
  CHECK(FindFilesToRead(saved, moved).ok());
  // A checkpoint that lists nothing says nothing.
  CHECK(FindFilesToRead({}, two)->first == 0);
}

}  // namespace
}  // namespace strata::scheduler
