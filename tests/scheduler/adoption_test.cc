#include "scheduler/adoption.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/unknown_field_set.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "scheduler/nodes/hearing.h"
#include "scheduler/state/state.pb.h"

namespace strata::scheduler {
namespace {

constexpr char kMine[] = "mine";

// What the server of that index noted of a job on two servers, of generation 5.
KeptCopy Copy(uint32_t index) {
  KeptCopy copy;
  copy.node = absl::StrCat("s", index);
  copy.kept.set_cluster_id(kMine);
  copy.kept.set_job_uid("uid");
  copy.kept.set_job(7);
  copy.kept.set_name("lost");
  KeptJob& note = copy.note.emplace();
  note.mutable_spec()->mutable_metadata()->set_name("lost");
  JobSpec& spec = *note.mutable_spec()->mutable_spec();
  spec.mutable_training()->set_mode("bsp");
  spec.mutable_replicas()->set_servers(2);
  spec.mutable_storage()->set_durability("logged");
  spec.mutable_checkpoint()->set_directory("/c");
  note.set_generation(5);
  note.set_map_epoch(3);
  for (uint32_t i = 0; i < 2; ++i) {
    ShardAssignment& shard = *note.add_shards();
    shard.set_shard(i);
    shard.set_server(i);
  }
  note.set_server_index(index);
  note.set_index_fingerprint(99);
  return copy;
}

CheckpointRecord Own(uint64_t step, uint64_t generation) {
  CheckpointRecord record;
  record.set_folder(absl::StrCat("/c/step-", step));
  record.set_step(step);
  record.set_generation(generation);
  return record;
}

absl::StatusOr<Adoption> Judge(const std::vector<KeptCopy>& copies,
                               const std::vector<CheckpointRecord>& own = {},
                               const std::string& damaged = "",
                               const absl::Status& other_format = absl::OkStatus()) {
  const auto note = AgreedNote(kMine, copies);
  if (!note.ok()) return note.status();
  return JudgeAdoption(*note, copies, own, damaged, other_format);
}

void CheckRefused(const absl::Status& status, const std::vector<std::string>& parts) {
  INFO(status);
  CHECK(absl::IsFailedPrecondition(status));
  for (const std::string& part : parts) CHECK(absl::StrContains(status.message(), part));
}

TEST_CASE("a bsp job goes on with its servers where each of them kept its shards",
          "[scheduler][adoption]") {
  const auto adoption = Judge({Copy(1), Copy(0)}, {Own(20, 4), Own(40, 5)});
  REQUIRE(adoption.ok());
  CHECK(adoption->servers == std::vector<std::string>{"s0", "s1"});
  CHECK(adoption->generation == 5);
  CHECK_FALSE(adoption->from);
}

TEST_CASE("a job goes on from its newest checkpoint where servers cannot go on",
          "[scheduler][adoption]") {
  std::vector<KeptCopy> copies = {Copy(0), Copy(1)};
  const std::vector<CheckpointRecord> own = {Own(20, 4), Own(40, 5)};
  std::string why;
  SECTION("a server is missing") {
    copies.pop_back();
    why = "part 2 of 2 of its generation 5";
  }
  SECTION("a server has an older generation") {
    copies[1].note->set_generation(4);
    why = "part 2 of 2";
  }
  SECTION("level memory") {
    for (KeptCopy& c : copies) {
      c.note->mutable_spec()->mutable_spec()->mutable_storage()->set_durability("memory");
    }
    why = "durability";
  }
  SECTION("an asynchronous mode") {
    for (KeptCopy& c : copies) {
      c.note->mutable_spec()->mutable_spec()->mutable_training()->set_mode("async");
    }
    why = "mode async";
  }
  const auto adoption = Judge(copies, own);
  REQUIRE(adoption.ok());
  INFO(adoption->text);
  CHECK(adoption->servers.empty());
  CHECK(adoption->from->folder() == "/c/step-40");
  CHECK(adoption->generation == 5 + Hearing::kGenerations);
  CHECK(absl::StrContains(adoption->text, why));
  CHECK(absl::StrContains(adoption->text, "40 is given up"));
  CheckRefused(Judge(copies).status(), {why, "no checkpoint of its own in /c; ", "purge"});
  CheckRefused(Judge(copies, {}, "/c/step-60 (cut off)").status(),
               {why, "no checkpoint of its own in /c that is whole (/c/step-60 (cut off)); "});
}

TEST_CASE("a checkpoint of another version stands in the way of who needs one alone",
          "[scheduler][adoption]") {
  const std::vector<CheckpointRecord> own = {Own(20, 4), Own(40, 5)};
  const std::string what = "/c/step-60 has format 5; move it away";
  const absl::Status other_format = absl::FailedPreconditionError(what);
  const auto adoption = Judge({Copy(0), Copy(1)}, own, "/c/step-60 (format 5)", other_format);
  REQUIRE(adoption.ok());
  CHECK(adoption->servers == std::vector<std::string>{"s0", "s1"});
  CheckRefused(Judge({Copy(0)}, own, "", other_format).status(),
               {"job lost (uid) cannot be adopted: ", "part 2 of 2", ", and " + what});
  CheckRefused(Judge({Copy(0)}, {}, "", other_format).status(), {what});
}

TEST_CASE("servers do not go on with a generation that another one came after",
          "[scheduler][adoption]") {
  const auto adoption = Judge({Copy(0), Copy(1)}, {Own(20, 4), Own(40, 6)});
  REQUIRE(adoption.ok());
  CHECK(adoption->servers.empty());
  CHECK(adoption->generation == 6 + Hearing::kGenerations);
  CHECK(absl::StrContains(adoption->text, "generation 6 came after"));
}

TEST_CASE("a job is adopted only by what all its copies say", "[scheduler][adoption]") {
  std::vector<KeptCopy> copies = {Copy(0), Copy(1)};
  SECTION("of another cluster") {
    copies[1].kept.set_cluster_id("other");
    CheckRefused(Judge(copies).status(), {"cluster other", "cluster mine"});
  }
  SECTION("without a note") {
    copies[1].note.reset();
    copies[1].why = "its checksum does not fit";
    CheckRefused(Judge(copies, {Own(1, 5)}).status(),
                 {"s1", "its checksum does not fit", "strata nodes purge s1"});
  }
  SECTION("that is read yet: nothing is wrong with it") {
    copies[1].note.reset();
    const absl::Status refused = Judge(copies, {Own(1, 5)}).status();
    CheckRefused(refused, {"server s1 reads its note of it yet", "adopt it again"});
    CHECK_FALSE(absl::StrContains(refused.message(), "purge"));
  }
  SECTION("without a word on the data") {
    copies[1].note->set_index_fingerprint(0);
    CheckRefused(Judge(copies).status(), {"s1"});
  }
  SECTION("that this scheduler knows all of") {
    LabelConfig& label = *copies[1].note->mutable_spec()->mutable_spec()->add_labels();
    label.GetReflection()->MutableUnknownFields(&label)->AddVarint(12345, 1);
    CheckRefused(Judge(copies).status(), {"server s1 is newer than this scheduler",
                                          "field 12345 of spec.spec.labels[0] of its note"});
  }
  SECTION("another spec") {
    copies[1].note->mutable_spec()->mutable_spec()->mutable_training()->set_seed(8);
    CheckRefused(Judge(copies).status(), {"s0", "s1", "different"});
  }
  SECTION("other data") {
    copies[1].note->set_index_fingerprint(98);
    CheckRefused(Judge(copies).status(), {"s0", "s1", "different"});
  }
  SECTION("another shard map of the same generation") {
    copies[1].note->mutable_shards(0)->set_server(1);
    CheckRefused(Judge(copies).status(), {"s0", "s1", "different"});
  }
}

}  // namespace
}  // namespace strata::scheduler
