// Finds the bytes in one direction of an HTTP/2 connection, that carries calls of the data plane,
// which a CRC32C covers, piece by piece as they pass, and nothing else: keys and values of groups,
// records and images that go to copies.
#ifndef STRATA_TESTS_FAULTS_PROXY_PAYLOAD_WALKER_H_
#define STRATA_TESTS_FAULTS_PROXY_PAYLOAD_WALKER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "tests/faults/proxy/network_fault.h"

namespace strata::testing {

// One message of protobuf after another, as gRPC frames them in a stream: five bytes of its own,
// then the message.
class MessageWalker {
 public:
  explicit MessageWalker(Way way) : way_(way) {}
  // Takes the next byte of the stream. True: a CRC32C covers it.
  bool Next(uint8_t byte);

 private:
  // Of data.proto, as far as payload lies in them. A request is a forward from where its field 2
  // is a text on: in those of Pull and Push that is a number, and other requests have no payload.
  enum class Kind { kRequest, kForward, kReply, kContribution, kGroup, kEntry, kImage };
  enum class Part { kPrefix, kTag, kVarint, kLength, kSkip, kPayload };
  struct Open {
    Kind kind;
    uint64_t left;  // bytes of it that come
  };

  bool Varint(uint8_t byte);  // its last one
  void OnTag();
  void OnLength();
  void CloseEnded();

  const Way way_;
  Part part_ = Part::kPrefix;
  uint64_t left_ = 5;  // of kPrefix, kSkip, kPayload
  uint64_t number_ = 0;
  unsigned shift_ = 0;
  uint64_t field_ = 0;
  std::vector<Open> open_;
};

class PayloadWalker {
 public:
  explicit PayloadWalker(Way way);
  // Calls `at` with each byte of `bytes` that is payload; it may change it.
  void Walk(std::span<uint8_t> bytes, const std::function<void(uint8_t&)>& at);

 private:
  void OnHead();

  const Way way_;
  uint64_t skip_;              // of the preface, or of a frame without data
  std::vector<uint8_t> head_;  // nine bytes of a frame
  uint64_t data_ = 0;          // of a frame with data that come
  bool ends_ = false;          // its stream
  uint32_t stream_ = 0;
  std::map<uint32_t, MessageWalker> streams_;
};

}  // namespace strata::testing

#endif  // STRATA_TESTS_FAULTS_PROXY_PAYLOAD_WALKER_H_
