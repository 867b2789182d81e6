#include "server/job/job_note.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "proto/strata/control.pb.h"
#include "server/job/job_folder.h"
#include "tests/temp_folder.h"

namespace strata::server {
namespace {

namespace fs = std::filesystem;

constexpr JobIdentity kMine = {{1, 2}, {3, 4}};

KeptJob Note(uint64_t generation) {
  ServerJobDirective directive;
  directive.mutable_spec()->mutable_metadata()->set_name("job");
  directive.mutable_shape()->set_fields(3);
  directive.set_generation(generation);
  directive.set_map_epoch(4);
  directive.add_shards()->set_server(1);
  directive.set_server_index(1);
  directive.set_start_step(7);
  directive.set_index_fingerprint(0xffffffffffffffff);
  directive.set_given_up_through(8);
  directive.set_closed_below(9);
  return NoteOf(directive);
}

// The generation's folder, with its note.
std::string Make(const std::string& root, uint64_t generation, bool opened) {
  const Generation number(generation);
  const std::string folder = GenerationFolder(root, kMine, number);
  fs::create_directories(folder);
  REQUIRE(WriteJobNote(folder, Note(generation)).ok());
  JobFolderRecord owner;
  owner.set_cluster_id(kMine.cluster.text());
  owner.set_job_uid(kMine.job.text());
  if (opened) REQUIRE(WriteOpen(root, owner, number).ok());
  return folder;
}

TEST_CASE("the note of the newest generation that was opened is read", "[job_note]") {
  const TempFolder folder;
  CHECK(absl::IsNotFound(ReadJobNote(folder.path(), kMine).status()));
  Make(folder.path(), 9, true);
  Make(folder.path(), 10, true);
  fs::create_directories(GenerationFolder(folder.path(), kMine, Generation(11)));  // begun
  const auto note = ReadJobNote(folder.path(), kMine);
  REQUIRE(note.ok());
  CHECK(note->DebugString() == Note(10).DebugString());
}

TEST_CASE("at level memory no generation says that it was opened, and the newest counts",
          "[job_note]") {
  const TempFolder folder;
  Make(folder.path(), 1, false);
  Make(folder.path(), 2, false);
  CHECK(ReadJobNote(folder.path(), kMine)->generation() == 2);
}

TEST_CASE("a note that is damaged, missing or another's is none", "[job_note]") {
  const TempFolder folder;
  const std::string path = Make(folder.path(), 3, true) + "/NOTE";
  const auto code = [&] {
    const absl::Status s = ReadJobNote(folder.path(), kMine).status();
    CHECK(absl::StrContains(s.message(), path));
    return s.code();
  };
  SECTION("damaged") {
    fs::resize_file(path, fs::file_size(path) - 3);
    CHECK(code() == absl::StatusCode::kDataLoss);
    // The next opening writes it again.
    REQUIRE(WriteJobNote(fs::path(path).parent_path(), Note(3)).ok());
    CHECK(ReadJobNote(folder.path(), kMine).ok());
  }
  SECTION("missing") {
    fs::remove(path);
    CHECK(code() == absl::StatusCode::kNotFound);
  }
  SECTION("another generation's") {
    REQUIRE(WriteJobNote(fs::path(path).parent_path(), Note(4)).ok());
    CHECK(code() == absl::StatusCode::kDataLoss);
  }
}

}  // namespace
}  // namespace strata::server
