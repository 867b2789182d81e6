#include "server/data_service.h"

#include <catch2/catch.hpp>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/core/ids.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/strata/data.pb.h"
#include "proto/wire/buffer.h"
#include "proto/wire/message.h"
#include "proto/wire/message_codec.h"
#include "tests/seed.h"
#include "tests/server/job/bench.h"
#include "tests/server/shard/shard_fixture.h"

namespace strata::server {
namespace {

TEST_CASE("push, commit, pull: current, pre-image, waiting, too old", "[service]") {
  const auto references = References(1, 2, 4);
  JobBench bench(2);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  bench.CheckServed(*bench.Pull(1, 0), references[0]);
  REQUIRE(bench.Outcome(*bench.Pull(2, 0)).outcome == wire::PullOutcome::kNotYet);
  auto waiting = bench.Pull(2, 1000);
  REQUIRE_FALSE(waiting->has_value());
  auto first = bench.PushStep(1, 1, {{0, 1}});
  REQUIRE(first.ok());
  REQUIRE_FALSE(first->repeated);
  REQUIRE_FALSE(waiting->has_value());
  auto repeated = bench.PushStep(1, 1, {{0, 1}});
  REQUIRE(repeated->repeated);
  REQUIRE(bench.PushStep(1, 1, {{1, 2}}).ok());
  bench.CheckServed(*waiting, references[1]);
  bench.CheckServed(*bench.Pull(1, 0), references[0]);
  bench.CheckServed(*bench.Pull(0, 0), references[1]);
  REQUIRE(bench.PushStep(1, 1, {{0, 2}})->repeated);
  REQUIRE(absl::IsFailedPrecondition(bench.PushStep(1, 3, {{0, 2}}).status()));
  REQUIRE(bench.PushStep(1, 2, {{0, 2}}).ok());
  auto old = bench.Outcome(*bench.Pull(1, 0));
  REQUIRE(old.outcome == wire::PullOutcome::kTooOld);
  REQUIRE(old.state.clock == Step(2));
  auto expires = bench.Pull(4, 50);
  REQUIRE_FALSE(expires->has_value());
  bench.timer_.Advance(absl::Milliseconds(50));
  bench.pool_.RunAll();
  REQUIRE(bench.Outcome(*expires).outcome == wire::PullOutcome::kNotYet);
  REQUIRE(bench.Outcome(*expires).state.clock == Step(2));
  REQUIRE(bench.Hash(2) == references[2].Hash());
}

TEST_CASE("pulls that wait share one alarm of each shard, served ones leave none", "[service]") {
  constexpr size_t kShards = 3;
  const auto references = References(1, 1, 1);
  JobBench bench(1);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  const absl::Time start = bench.timer_.Now();
  std::vector<std::shared_ptr<JobBench::Answer>> waiting;
  for (uint32_t i = 0; i < 10; ++i) waiting.push_back(bench.Pull(2, 5000 + i));
  CHECK(bench.timer_.alarms() == kShards);
  CHECK(bench.timer_.next() == start + absl::Seconds(5));
  waiting.push_back(bench.Pull(2, 1000));
  CHECK(bench.timer_.alarms() == kShards);
  CHECK(bench.timer_.next() == start + absl::Seconds(1));
  REQUIRE(bench.PushStep(1, 1, {{0, 1}}).ok());
  for (const auto& answer : waiting) bench.CheckServed(*answer, references[1]);

  // What waits for the next step has the alarms of those.
  const auto first = bench.Pull(3, 2000), second = bench.Pull(3, 3000);
  CHECK(bench.timer_.alarms() == kShards);
  const auto pass = [&bench](absl::Time when) {
    bench.timer_.AdvanceTo(when);
    bench.pool_.RunAll();
  };
  pass(start + absl::Seconds(1));
  CHECK_FALSE(first->has_value());
  CHECK(bench.timer_.alarms() == kShards);
  CHECK(bench.timer_.next() == start + absl::Seconds(2));
  pass(start + absl::Seconds(2));
  CHECK(bench.Outcome(*first).outcome == wire::PullOutcome::kNotYet);
  CHECK_FALSE(second->has_value());
  CHECK(bench.timer_.next() == start + absl::Seconds(3));
  pass(start + absl::Seconds(3));
  CHECK(bench.Outcome(*second).outcome == wire::PullOutcome::kNotYet);
  CHECK(bench.timer_.alarms() == 0);
}

// Shards 0 and 1 of the job's server 0, and shard 2 of its server 1, answered for by one process,
// as after a failover.
struct TwoHeads {
  explicit TwoHeads(bool synchronous = true) : job(1, synchronous), other(1, synchronous) {
    other.plan().server_index = 1;
    job.plan().shards.pop_back();
    other.plan().shards.erase(other.plan().shards.begin(), other.plan().shards.begin() + 2);
    job.Start();
    other.Start();
    job.service_.Add(other.service_.Find(JobId(1), 1));
  }
  ~TwoHeads() { job.service_.Remove(JobId(1), 1); }

  absl::StatusOr<Buffer> Call(DataMethod method, Buffer request) {
    const auto answer = job.Call(method, std::move(request));
    while (other.pool_.RunAll() + job.pool_.RunAll() > 0) {
    }
    REQUIRE(answer->has_value());
    return **answer;
  }
  // Of no server's.
  absl::Status Pull(const std::vector<ShardId>& shards) {
    return Call(DataMethod::kPull, *wire::EncodePullRequest(job.header(), Step(1), 0, shards, {}))
        .status();
  }
  absl::StatusOr<Buffer> Push(const std::vector<ShardId>& shards) {
    const std::vector<wire::PushContribution> nothing = {{{0, 1}, 1, {}}};
    wire::PushFields fields;
    fields.header = job.header();
    fields.sequence = job.NextSequence();
    fields.step = Step(1);
    auto encoder = wire::PushRequestEncoder::Make(shards, nothing);
    REQUIRE(encoder.ok());
    return Call(DataMethod::kPush, encoder->Finish(fields));
  }

  absl::Status Open(uint32_t server) {
    const wire::Header header = job.header().To(server);
    return Call(DataMethod::kOpenSession,
                wire::EncodeOpenSessionRequest(wire::OpenSessionFor(header, job.identity())))
        .status();
  }

  JobBench job, other;
};

TEST_CASE("a call that names no server goes to the one whose shards it names", "[service]") {
  TwoHeads heads;
  REQUIRE(heads.job.OpenSession().ok());  // with all of them
  for (const std::vector<ShardId>& shards :
       {std::vector{ShardId(2)}, std::vector{ShardId(0), ShardId(1)}, std::vector{ShardId(1)}}) {
    INFO("shard " << shards[0].value);
    CHECK(heads.Pull(shards).ok());
    const std::vector<wire::KeyGroup> none;
    CHECK(heads
              .Call(DataMethod::kPrefetch,
                    *wire::EncodePrefetchRequest(heads.job.header(), Step(1), shards, none))
              .ok());
  }
  CHECK(heads.Push({ShardId(2)}).ok());
  CHECK(heads.Push({ShardId(0), ShardId(1)}).ok());
  CHECK(absl::IsFailedPrecondition(heads.Pull({ShardId(3)})));
  const absl::Status both = heads.Pull({ShardId(1), ShardId(2)});
  CHECK(absl::IsInvalidArgument(both));
  CHECK(
      both.message() ==
      "header.server 0: shards 1 and 2 of job 1 are of two of its servers, 0 and 1, which are both "
      "here; ask each on its own");
}

TEST_CASE("a call that names neither server nor shards is for all that are here",
          "[service][async]") {
  TwoHeads heads;
  REQUIRE(heads.job.OpenSession().ok());
  REQUIRE(heads.Push({ShardId(0), ShardId(1)}).ok());  // step 1 here, and not there
  auto opened =
      heads.Call(DataMethod::kOpenSession, wire::EncodeOpenSessionRequest(wire::OpenSessionFor(
                                               heads.job.header(), heads.job.identity())));
  REQUIRE(opened.ok());
  CHECK(wire::ParseOpenSessionReply(opened->span())->state.clock == Step(0));  // the lowest
  REQUIRE(heads.Push({ShardId(2)}).ok());
  opened = heads.Call(DataMethod::kOpenSession, wire::EncodeOpenSessionRequest(wire::OpenSessionFor(
                                                    heads.job.header(), heads.job.identity())));
  REQUIRE(opened.ok());
  CHECK(wire::ParseOpenSessionReply(opened->span())->state.clock == Step(1));

  TwoHeads marked(/*synchronous=*/false);
  const auto mark = [&] {
    return marked
        .Call(DataMethod::kMark,
              wire::EncodeMarkRequest({marked.job.header(), marked.job.NextSequence()}))
        .status();
  };
  REQUIRE(marked.Open(0).ok());
  CHECK(absl::IsFailedPrecondition(mark()));  // the other one knows no such session
  REQUIRE(marked.Open(1).ok());
  CHECK(mark().ok());
}

struct Request {
  const char* what;
  DataMethod method;
  Buffer message;
  bool of_session;  // only of one that is open
  absl::StatusCode answer = absl::StatusCode::kOk;
};

// A good request of every kind.
std::vector<Request> GoodRequests(JobBench& bench) {
  const bool synchronous = bench.plan().synchronous;
  const Step step(synchronous ? 1 : 0);
  const std::vector<ShardId> shards = {ShardId(0)};
  const std::vector<Key> keys = bench.KeysOf(bench.plan().shards[0]);
  const std::vector<wire::KeyGroup> groups = {{TableId(0), shards[0], keys}};
  wire::PushFields fields;
  fields.step = step;
  fields.task = TaskId(synchronous ? 0 : 1);
  const wire::Header header = bench.header();
  return {
      {"open", DataMethod::kOpenSession,
       wire::EncodeOpenSessionRequest(wire::OpenSessionFor(header, bench.identity())), false},
      {"pull", DataMethod::kPull, *wire::EncodePullRequest(header, step, 0, shards, groups), false},
      {"pull for a ticket", DataMethod::kPull,
       *wire::EncodePullRequest(header, step, 0, shards, groups, {.want_ticket = true}), true},
      {"prefetch", DataMethod::kPrefetch,
       *wire::EncodePrefetchRequest(header, step, shards, groups), true},
      {"push", DataMethod::kPush, bench.PushMessage(1, 1, {{0, 1}}, fields), true},
      {"mark", DataMethod::kMark, wire::EncodeMarkRequest({header, bench.NextSequence()}), true,
       synchronous ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kOk}};
}

TEST_CASE("every method checks for whom and from whom a request is", "[service][input][async]") {
  using C = absl::StatusCode;
  for (const bool synchronous : {true, false}) {
    JobBench bench(2, synchronous);
    bench.Start();
    REQUIRE(bench.OpenSession().ok());
    const std::vector<Request> requests = GoodRequests(bench);
    for (const Request& r : requests) {
      INFO(r.what << (synchronous ? ", bsp" : ", async"));
      const auto refused = [&](C code, const std::string& field, auto change) {
        wire::Header header = bench.header();
        change(header);
        const auto answer = bench.Call(r.method, *wire::WithHeader(r.message, header));
        REQUIRE(answer->has_value());
        CHECK((*answer)->status().code() == code);
        CHECK(std::string((*answer)->status().message()).rfind(field, 0) == 0);
      };
      refused(C::kNotFound, "header.job 2", [](auto& h) { h.job = JobId(2); });
      for (const uint64_t other : {2, 7}) {
        refused(C::kFailedPrecondition, "header.generation " + std::to_string(other),
                [&](auto& h) { h.generation = Generation(other); });
      }
      for (const uint64_t other : {4, 6}) {
        refused(C::kFailedPrecondition, "header.map_epoch " + std::to_string(other),
                [&](auto& h) { h.map_epoch = MapEpoch(other); });
      }
      if (!r.of_session) continue;
      refused(C::kFailedPrecondition, "header.session 4",
              [](auto& h) { h.session = SessionId(4); });
    }
    // Nothing of it counted, and nothing else was wrong with it.
    bench.CheckServed(*bench.Pull(0, 0), References(1, 2, 0)[0]);
    for (const Request& r : requests) {
      INFO(r.what << (synchronous ? ", bsp" : ", async"));
      const auto answer = bench.Call(r.method, r.message);
      REQUIRE(answer->has_value());
      CHECK((*answer)->status().code() == r.answer);
      if (r.method == DataMethod::kPush) {
        CHECK_FALSE(wire::ParsePushReply((*answer)->value().span())->repeated);
      }
    }
  }
}

TEST_CASE("a session is opened for the very job that is here", "[service][identity]") {
  JobBench bench(2);
  bench.Start();
  const JobIdentity here = bench.identity();
  const auto open = [&](const wire::OpenSessionRequest& request) {
    return (*bench.Call(DataMethod::kOpenSession, wire::EncodeOpenSessionRequest(request)))
        ->status();
  };
  const JobIdentity others[] = {{{9, 9}, here.job}, {here.cluster, {9, 9}}, {here.cluster, {}}, {}};
  for (const JobIdentity& other : others) {
    const absl::Status s = open(wire::OpenSessionFor(bench.header(), other));
    CHECK(s.code() == absl::StatusCode::kNotFound);
    for (const JobIdentity& both : {here, other}) {  // the text names both
      CHECK(std::string(s.message()).find(both.cluster.text()) != std::string::npos);
      CHECK(std::string(s.message()).find(both.job.text()) != std::string::npos);
    }
  }
  CHECK(open({bench.header()}).code() == absl::StatusCode::kNotFound);
  CHECK(open({bench.header(), std::string(5000, '\xff'), "x"}).message().size() < 1000);
  CHECK(open(wire::OpenSessionFor(bench.header(), here)).ok());
}

TEST_CASE("what is wrong with a request is told, and changes nothing", "[service][input]") {
  JobBench bench(2);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  wire::PushFields fields;
  fields.step = Step(1);
  const auto code = [&](Buffer b, DataMethod m = DataMethod::kPush) {
    return bench.Call(m, std::move(b))->value().status().code();
  };
  using C = absl::StatusCode;
  REQUIRE(code(bench.PushMessage(1, 1, {{0, 3}}, fields)) == C::kInvalidArgument);
  REQUIRE(code(bench.PushMessage(1, 1, {}, fields)) == C::kInvalidArgument);
  fields.step = Step(0);
  REQUIRE(code(bench.PushMessage(1, 1, {{0, 1}}, fields)) == C::kInvalidArgument);
  fields.step = Step(1);
  Sums stray;  // a dense key that is no tensor's row
  stray[1][Position(7)] = {1, 1, 1, 1};
  REQUIRE(code(bench.PushMessage(1, 1, {{0, 1}}, fields, &stray)) == C::kInvalidArgument);
  REQUIRE(code(wire::EncodeMarkRequest({bench.header(), bench.NextSequence()}),
               DataMethod::kMark) == C::kInvalidArgument);
  // Nothing of it was held: a full push commits, and is the whole step.
  REQUIRE(bench.PushStep(1, 1, {{0, 2}}).ok());
  REQUIRE(bench.Hash(1) == References(1, 2, 1)[1].Hash());
}

// The message with another number.
Buffer WithSequence(const Buffer& push, uint64_t sequence) {
  PushRequest request;
  REQUIRE(request.ParseFromArray(push.data(), static_cast<int>(push.size())));
  request.set_sequence(sequence);
  const std::string bytes = request.SerializeAsString();
  return Buffer::CopyOf({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

TEST_CASE("a session's number names one work: its retry, and nothing else", "[service][input]") {
  JobBench bench(4);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  wire::PushFields fields;
  fields.step = Step(1);
  const auto push = [&](uint64_t sequence, std::vector<LaneNode> nodes) {
    return bench
        .Call(DataMethod::kPush,
              WithSequence(bench.PushMessage(1, fields.step.value, nodes, fields), sequence))
        ->value();
  };
  const auto refused = [](const absl::StatusOr<Buffer>& answer) {
    REQUIRE(absl::IsInvalidArgument(answer.status()));
    return std::string(answer.status().message());
  };
  REQUIRE(refused(push(0, {{0, 1}})) == "push.sequence 0: numbers count from 1");
  // What is refused for another reason uses up no number.
  REQUIRE(push(5, {{0, 3}}).status().message().find("is not a node") != std::string::npos);
  REQUIRE(push(5, {{0, 1}, {1, 2}}).ok());
  REQUIRE(wire::ParsePushReply(push(5, {{0, 1}, {1, 2}})->span())->repeated);
  const std::string text = refused(push(5, {{2, 3}}));
  REQUIRE(text.find("push.sequence 5 named other work in session 9") == 0);
  refused(push(5, {{0, 1}}));
  refused(push(5, {{1, 2}, {0, 1}}));
  refused(push(5, {{0, 2}}));
  // The same lanes in another grouping take another number; the ancestor replaces its children.
  REQUIRE(push(6, {{0, 2}}).ok());
  REQUIRE(wire::ParsePushReply(push(7, {{0, 1}})->span())->repeated);
  fields.step = Step(2);
  refused(push(6, {{0, 2}}));
  fields.step = Step(1);
  // Nothing of what was refused was held.
  REQUIRE(push(3, {{2, 4}}).ok());
  REQUIRE(bench.Hash(1) == References(1, 4, 1)[1].Hash());
  // A restarted server knows no numbers, as it knows no sessions.
  bench.Restart();
  REQUIRE(bench.OpenSession().ok());
  fields.step = Step(2);
  REQUIRE(push(6, {{0, 2}}).ok());
}

TEST_CASE("asynchronous pushes and marks are in one count", "[service][input][async]") {
  JobBench bench(2, /*synchronous=*/false);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  const auto push = [&](uint64_t sequence, uint64_t task, uint64_t window) {
    wire::PushFields f;
    f.task = TaskId(task);
    f.window = window;
    return bench
        .Call(DataMethod::kPush,
              WithSequence(bench.PushMessage(1, 10 * task + window, {{0, 1}}, f), sequence))
        ->value()
        .status();
  };
  const auto mark = [&](uint64_t sequence, uint32_t lane, uint64_t cut) {
    const wire::MarkRequest m = {
        bench.header(), Sequence(sequence), LaneId(lane), cut, TaskId(1), 2};
    return bench.Call(DataMethod::kMark, wire::EncodeMarkRequest(m))->value().status();
  };
  REQUIRE(absl::IsInvalidArgument(mark(0, 0, 1)));
  REQUIRE(push(1, 1, 0).ok());
  REQUIRE(push(1, 1, 0).ok());
  REQUIRE(absl::IsInvalidArgument(push(1, 1, 1)));
  REQUIRE(absl::IsInvalidArgument(push(1, 2, 0)));
  REQUIRE(absl::IsInvalidArgument(mark(1, 0, 1)));
  REQUIRE(mark(2, 0, 1).ok());
  REQUIRE(mark(2, 0, 1).ok());
  REQUIRE(absl::IsInvalidArgument(mark(2, 1, 1)));
  REQUIRE(absl::IsInvalidArgument(mark(2, 0, 2)));
  REQUIRE(absl::IsInvalidArgument(push(2, 1, 1)));
  REQUIRE(push(3, 1, 1).ok());
}

TEST_CASE("no bytes crash the service", "[service][input][seeds]") {
  const uint64_t seed = GENERATE(from_range(Seeds("service_bytes", 4)));
  CAPTURE(seed);
  JobBench bench(2);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  wire::PushFields fields;
  fields.step = Step(1);
  const Buffer good = bench.PushMessage(1, 1, {{0, 1}}, fields);
  std::mt19937_64 random(seed);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::vector<uint8_t> bytes(good.span().begin(), good.span().end());
    if (i % 3 == 0) bytes.resize(random() % bytes.size());
    for (int k = 0; k < i % 4 && !bytes.empty(); ++k) {
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    }
    const auto method = static_cast<DataMethod>(random() % kDataMethods);
    auto answer = bench.Call(method, Buffer::CopyOf(bytes));
    if (!answer->has_value()) continue;  // a pull that waits
    refused += !(*answer)->ok();
  }
  REQUIRE(refused > 1000);
  bench.timer_.Advance(absl::Hours(1));
  bench.pool_.RunAll();
  REQUIRE(bench.memory_.used() < (uint64_t{1} << 20));
}

TEST_CASE("requests beyond the limit are refused, and the limit comes back", "[service]") {
  JobBench bench(2);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  auto hog = bench.memory_.Take((uint64_t{64} << 20) - 100);
  REQUIRE(hog.ok());
  REQUIRE(absl::IsResourceExhausted(bench.PushStep(1, 1, {{0, 2}}).status()));
  hog->reset();
  REQUIRE(bench.PushStep(1, 1, {{0, 2}}).ok());
  REQUIRE(bench.memory_.used() == 0);
}

TEST_CASE("a full disk delays a commit, and pulls wait for it", "[service][faults]") {
  const auto references = References(1, 1, 1);
  JobBench bench(1);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  auto waiting = [&] {
    ScopedFailpoint full("server.commit.append",
                         {.act = FailWith(absl::ResourceExhaustedError("disk full"))});
    REQUIRE(bench.PushStep(1, 1, {{0, 1}}).ok());
    auto pull = bench.Pull(2, 10000);
    REQUIRE_FALSE(pull->has_value());
    bench.timer_.Advance(absl::Milliseconds(200));
    bench.pool_.RunAll();
    bench.CheckServed(*bench.Pull(1, 0), references[0]);  // reads go on
    return pull;
  }();
  REQUIRE_FALSE(waiting->has_value());
  bench.timer_.Advance(absl::Milliseconds(200));
  bench.pool_.RunAll();
  bench.CheckServed(*waiting, references[1]);
}

}  // namespace
}  // namespace strata::server
