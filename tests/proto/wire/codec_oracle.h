// Protobuf's generated classes as the oracle of the message codec.
#ifndef STRATA_TESTS_PROTO_WIRE_CODEC_ORACLE_H_
#define STRATA_TESTS_PROTO_WIRE_CODEC_ORACLE_H_

#include <cstdint>
#include <span>
#include <string>

#include "proto/strata/data.pb.h"
#include "proto/wire/message.h"

namespace strata::testing {

enum class MessageKind {
  kOpenSessionRequest,
  kOpenSessionReply,
  kPullRequest,
  kPullReply,
  kPushRequest,
  kPushReply,
  kMarkRequest,
  kMarkReply,
  kPrefetchRequest,
  kPrefetchReply,
  kForwardRequest,
  kForwardReply,
};
inline constexpr int kMessageKinds = 12;

// The generated class's object with the same content.
OpenSessionRequest ToProto(const wire::OpenSessionRequest& m);
OpenSessionReply ToProto(const wire::OpenSessionReply& m);
PullRequest ToProto(const wire::PullRequestView& m);
PullReply ToProto(const wire::PullReplyView& m);
PushRequest ToProto(const wire::PushRequestView& m);
PushReply ToProto(const wire::PushReply& m);
MarkRequest ToProto(const wire::MarkRequest& m);
MarkReply ToProto(const wire::MarkReply& m);
PrefetchRequest ToProto(const wire::PrefetchRequestView& m);
PrefetchReply ToProto(const wire::PrefetchReply& m);
ForwardRequest ToProto(const wire::ForwardRequestView& m);
ForwardReply ToProto(const wire::ForwardReply& m);

struct Verdict {
  bool accepted = false;  // by our parser
  // Empty when the promises hold: what our parser accepts, protobuf accepts with the same content;
  // and encoded again by our encoders, protobuf still reads the same content.
  std::string complaint;
  std::string error;  // our parser's, when it refused
};
Verdict Judge(MessageKind kind, std::span<const uint8_t> bytes);

}  // namespace strata::testing

#endif  // STRATA_TESTS_PROTO_WIRE_CODEC_ORACLE_H_
