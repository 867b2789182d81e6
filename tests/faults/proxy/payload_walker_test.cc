#include "tests/faults/proxy/payload_walker.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "proto/strata/data.pb.h"
#include "tests/faults/proxy/network_fault.h"

namespace strata::testing {
namespace {

// Occurs alone in what a CRC32C covers.
constexpr char kPayload = '\xee';

void Fill(Group& group, size_t keys) {
  group.set_table(1);
  group.set_shard(3);
  group.set_keys(std::string(8 * keys, kPayload));
  group.set_values(std::string(12 * keys, kPayload));
  group.set_crc32c(0x01020304);
}

std::string Push(size_t keys) {
  PushRequest push;
  push.mutable_header()->set_job(3);
  push.mutable_header()->set_session(0x1122334455667788);
  push.set_sequence(300);
  push.set_task(70'000);
  push.set_window(5);
  push.add_shards(2);
  push.add_shards(3);
  for (int c = 0; c < 2; ++c) {
    Contribution& contribution = *push.add_contributions();
    contribution.set_node_end(4);
    contribution.set_examples(64);
    for (int g = 0; g < 3; ++g) Fill(*contribution.add_groups(), keys * static_cast<size_t>(g));
    contribution.mutable_ticket()->set_number(9);
  }
  return push.SerializeAsString();
}

std::string Pull(size_t keys) {
  PullRequest pull;
  pull.mutable_header()->set_generation(1);
  pull.set_step(1000);
  pull.add_shards(1);
  pull.add_shards(2);
  for (int g = 0; g < 2; ++g) Fill(*pull.add_groups(), keys);
  pull.set_want_ticket(true);
  return pull.SerializeAsString();
}

std::string Forward(size_t bytes) {
  ForwardRequest forward;
  forward.mutable_header()->set_job(3);
  forward.set_cluster_id("cluster");
  forward.set_job_uid("uid");
  forward.set_chain_epoch(70'000);
  forward.set_from_log_id(std::string(32, '\x1a'));  // would be fields 3 of a group
  forward.set_log_id("log");
  for (const uint32_t shard : {0, 3}) {
    ForwardEntry& entry = *forward.add_entries();
    entry.set_shard(shard);
    entry.set_header(std::string(48, kPayload));
    entry.set_payload(std::string(bytes, kPayload));
    entry.set_crc32c(0x01020304);
    ForwardImage& image = *forward.add_images();
    image.set_shard(shard);
    image.set_image(0x1122334455667788);
    image.set_offset(1000);
    image.set_data(std::string(3 * bytes, kPayload));
    image.set_crc32c(0x01020304);
    image.set_bytes(1 << 20);
  }
  forward.set_wait_ms(1000);
  return forward.SerializeAsString();
}

std::string Reply(size_t keys) {
  PullReply reply;
  reply.mutable_state()->set_clock(12);
  reply.set_outcome(SERVED);
  for (int g = 0; g < 2; ++g) Fill(*reply.add_groups(), keys);
  reply.mutable_ticket()->set_keys(keys);
  return reply.SerializeAsString();
}

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& data) {
  std::string frame;
  for (const int shift : {16, 8, 0}) frame.push_back(static_cast<char>(data.size() >> shift));
  frame.push_back(static_cast<char>(type));
  frame.push_back(static_cast<char>(flags));
  for (const int shift : {24, 16, 8, 0}) frame.push_back(static_cast<char>(stream >> shift));
  return frame + data;
}

std::string Message(const std::string& message) {
  std::string framed(1, '\0');
  for (const int shift : {24, 16, 8, 0}) {
    framed.push_back(static_cast<char>(message.size() >> shift));
  }
  return framed + message;
}

// Two streams whose frames come in turns, each of `size` bytes at most, among frames of other
// types.
std::string Streams(const std::vector<std::string>& messages, size_t size) {
  std::string out;
  std::vector<size_t> at(messages.size());
  for (bool more = true; more;) {
    more = false;
    for (size_t m = 0; m < messages.size(); ++m) {
      const std::string whole = Message(messages[m]);
      if (at[m] >= whole.size()) continue;
      const std::string part = whole.substr(at[m], size);
      if (at[m] == 0) out += Frame(1, 4, static_cast<uint32_t>(2 * m + 1), std::string(30, '\x82'));
      at[m] += part.size();
      const bool last = at[m] == whole.size();
      out += Frame(0, last ? 1 : 0, static_cast<uint32_t>(2 * m + 1), part);
      out += Frame(8, 0, 0, std::string(4, '\x01'));
      more = true;
    }
  }
  return out;
}

TEST_CASE("payload is found wherever frames and pieces end, and nothing else is", "[proxy]") {
  std::mt19937_64 random(1);
  for (const Way way : {Way::kRequests, Way::kReplies}) {
    for (const size_t frame : {1, 7, 100, 16384}) {
      const std::vector<std::string> messages =
          way == Way::kRequests ? std::vector<std::string>{Push(5), Pull(3),   Forward(700),
                                                           Push(0), Push(400), Forward(0)}
                                : std::vector<std::string>{Reply(2), Reply(0), Reply(300)};
      std::string bytes = way == Way::kRequests ? "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" : "";
      bytes += Frame(4, 0, 0, std::string(6, '\x03')) + Streams(messages, frame);
      const auto wanted = static_cast<size_t>(std::count(bytes.begin(), bytes.end(), kPayload));
      REQUIRE(wanted > 1000);
      PayloadWalker walker(way);
      size_t found = 0, wrong = 0;
      for (size_t at = 0; at < bytes.size();) {
        const size_t piece = std::min(bytes.size() - at, 1 + random() % 50);
        walker.Walk({reinterpret_cast<uint8_t*>(bytes.data()) + at, piece}, [&](uint8_t& byte) {
          ++found;
          wrong += static_cast<char>(byte) != kPayload;
        });
        at += piece;
      }
      INFO("frames of " << frame);
      CHECK(found == wanted);
      CHECK(wrong == 0);
    }
  }
}

}  // namespace
}  // namespace strata::testing
