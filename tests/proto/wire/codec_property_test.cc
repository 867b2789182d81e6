// Properties of the message codec against protobuf's generated classes, on random messages.
#include <google/protobuf/descriptor.h>

#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "proto/strata/data.pb.h"
#include "tests/proto/wire/codec_oracle.h"
#include "tests/proto/wire/wire_generator.h"
#include "tests/seed.h"

namespace strata::testing {
namespace {

std::span<const uint8_t> BytesOf(const std::string& s) {
  return {reinterpret_cast<const uint8_t*>(s.data()), s.size()};
}

// Exactly sized heap memory, so that AddressSanitizer sees a read past the end.
Verdict JudgeCopy(MessageKind kind, const std::string& message) {
  const std::vector<uint8_t> copy(message.begin(), message.end());
  return Judge(kind, copy);
}

TEST_CASE("whatever order and form protobuf allows is read as protobuf reads it",
          "[codec][seeds]") {
  const std::vector<uint64_t> seeds = Seeds("codec_forms", 0, 4000);
  for (int k = 0; k < kMessageKinds; ++k) {
    const auto kind = static_cast<MessageKind>(k);
    for (const uint64_t seed : seeds) {
      WireGenerator generator(seed * kMessageKinds + static_cast<uint64_t>(k));
      const std::string message = generator.Message(kind);
      const Verdict verdict = JudgeCopy(kind, message);
      INFO("kind " << k << ", seed " << seed << ": " << verdict.error << verdict.complaint);
      REQUIRE(verdict.accepted);
      REQUIRE(verdict.complaint.empty());
    }
  }
}

TEST_CASE("damaged messages never crash the codec, nor are they read otherwise than by protobuf",
          "[codec][fuzz][seeds]") {
  constexpr uint64_t kRounds = 40'000;  // per kind: 480,000 in all
  const std::vector<uint64_t> seeds = Seeds("codec_damage", 0, kRounds);
  size_t accepted = 0;
  size_t refused = 0;
  for (int k = 0; k < kMessageKinds; ++k) {
    const auto kind = static_cast<MessageKind>(k);
    for (const uint64_t seed : seeds) {
      WireGenerator generator(~(seed * kMessageKinds + static_cast<uint64_t>(k)));
      std::string message = generator.Message(kind);
      generator.Mutate(message);
      const Verdict verdict = JudgeCopy(kind, message);
      INFO("kind " << k << ", seed " << seed);
      REQUIRE(verdict.complaint == "");
      (verdict.accepted ? accepted : refused) += 1;
      if (!verdict.accepted) REQUIRE(!verdict.error.empty());
    }
  }
  if (SeedsAreGiven()) return;
  // The test is worth something only while both happen often.
  CHECK(accepted > kRounds);
  CHECK(refused > kRounds);
}

TEST_CASE("random bytes never crash the codec", "[codec][fuzz]") {
  WireGenerator generator(77);
  for (int round = 0; round < 40'000; ++round) {
    std::string message(generator.Below(40), '\0');
    for (char& c : message) c = static_cast<char>(generator.Below(round % 2 == 0 ? 256 : 32));
    for (int k = 0; k < kMessageKinds; ++k) {
      REQUIRE(JudgeCopy(static_cast<MessageKind>(k), message).complaint == "");
    }
  }
}

// Every field of the message gets a value of its own; the codec must bring all of them back.
void FillAll(google::protobuf::Message* m, uint32_t& next) {
  using google::protobuf::FieldDescriptor;
  const auto* reflection = m->GetReflection();
  for (int i = 0; i < m->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* f = m->GetDescriptor()->field(i);
    ++next;
    switch (f->cpp_type()) {
      case FieldDescriptor::CPPTYPE_UINT32:
        if (f->is_repeated()) {
          reflection->AddUInt32(m, f, next);
        } else {
          reflection->SetUInt32(m, f, next);
        }
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        reflection->SetUInt64(m, f, uint64_t{next} << 33);
        break;
      case FieldDescriptor::CPPTYPE_BOOL:
        reflection->SetBool(m, f, true);
        break;
      case FieldDescriptor::CPPTYPE_ENUM:
        if (f->is_repeated()) {
          reflection->AddEnumValue(m, f, 2);
        } else {
          reflection->SetEnumValue(m, f, 2);
        }
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        reflection->SetString(m, f, std::string(8, static_cast<char>(next)));
        break;
      case FieldDescriptor::CPPTYPE_MESSAGE:
        FillAll(f->is_repeated() ? reflection->AddMessage(m, f) : reflection->MutableMessage(m, f),
                next);
        break;
      default:
        FAIL("data.proto has a field of a new type: " << f->full_name());
    }
  }
}

template <typename M>
void CheckAllFields(MessageKind kind) {
  M m;
  uint32_t next = 0;
  FillAll(&m, next);
  const std::string bytes = m.SerializeAsString();
  const Verdict verdict = Judge(kind, BytesOf(bytes));
  INFO(m.GetDescriptor()->full_name() << ": " << verdict.error << verdict.complaint);
  CHECK(verdict.accepted);
  CHECK(verdict.complaint.empty());
}

TEST_CASE("the codec knows every field of data.proto", "[codec]") {
  CheckAllFields<OpenSessionRequest>(MessageKind::kOpenSessionRequest);
  CheckAllFields<OpenSessionReply>(MessageKind::kOpenSessionReply);
  CheckAllFields<PullRequest>(MessageKind::kPullRequest);
  CheckAllFields<PullReply>(MessageKind::kPullReply);
  CheckAllFields<PushRequest>(MessageKind::kPushRequest);
  CheckAllFields<PushReply>(MessageKind::kPushReply);
  CheckAllFields<MarkRequest>(MessageKind::kMarkRequest);
  CheckAllFields<MarkReply>(MessageKind::kMarkReply);
  CheckAllFields<PrefetchRequest>(MessageKind::kPrefetchRequest);
  CheckAllFields<PrefetchReply>(MessageKind::kPrefetchReply);
  CheckAllFields<ForwardRequest>(MessageKind::kForwardRequest);
  CheckAllFields<ForwardReply>(MessageKind::kForwardReply);
}

}  // namespace
}  // namespace strata::testing
