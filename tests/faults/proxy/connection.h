// A connection through the proxy: two sockets, what is on its way between them in each direction,
// and the faults that it is under. Touched under the proxy's lock alone.
#ifndef STRATA_TESTS_FAULTS_PROXY_CONNECTION_H_
#define STRATA_TESTS_FAULTS_PROXY_CONNECTION_H_

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/faults/proxy/network_fault.h"
#include "tests/faults/proxy/payload_walker.h"

namespace strata::testing {

struct ActiveFault {
  ActiveFault(uint64_t number, const NetworkFault& what, absl::Time now)
      : id(number), fault(what), until(now + what.lasts), random(what.seed) {}
  const uint64_t id;
  const NetworkFault fault;
  const absl::Time until;
  std::mt19937_64 random;
  FaultMet met;
};

class Connection {
 public:
  using Dialer = std::function<int(const std::string& to)>;

  // Owns `fd`, of who connected. `dial` gives the other end's, as soon as no fault keeps it.
  Connection(int fd, const NetworkLink& link, Dialer dial);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // So many bytes come first that are not passed on.
  void AwaitHead(size_t bytes) { head_bytes_ = bytes; }
  // Those bytes, once, when they are there.
  std::string TakeHead();
  void SetLink(const NetworkLink& link) { link_ = link; }
  const NetworkLink& link() const { return link_; }

  void Add(ActiveFault* fault);
  // What the end of a fault does to a connection that was under it.
  void End(ActiveFault* fault);

  // Adds what it waits for. How long until it has something to do by itself.
  absl::Duration Want(absl::Time now, std::vector<pollfd>& polls) const;
  // Reads and writes what can be.
  void Move(absl::Time now);

  bool over() const { return over_; }
  // Tells its faults that it is.
  void NoteOver();
  uint64_t passed(size_t way) const { return ways_[way].passed; }

 private:
  struct Piece {
    std::vector<uint8_t> bytes;
    absl::Time due;
    size_t sent = 0;
  };
  struct OneWay {
    explicit OneWay(Way way) : walker(way) {}
    std::deque<Piece> pieces;
    size_t queued = 0;
    bool ended = false;  // its sender has closed
    bool shut = false;   // and its receiver was told
    uint64_t passed = 0;
    absl::Time next;  // when it may write again
    PayloadWalker walker;
  };
  struct Under {
    ActiveFault* fault;
    bool counted = false;  // in met.connections
    uint64_t requests = 0, swallowed = 0;
    uint64_t next_flip = 0;
    uint64_t seen = 0;  // kDamage: bytes before `bit_turned`
    bool bit_turned = false;
  };

  bool Held(size_t way) const;
  bool Reads(size_t way) const;
  void Dial();
  void Read(size_t way, absl::Time now);
  void Write(size_t way, absl::Time now);
  void Flip(size_t way, std::vector<uint8_t>& bytes, Under& under);
  void Damage(size_t way, absl::Time now, std::vector<uint8_t>& bytes, Under& under);
  // Looks whether a fault resets it now.
  void LookForReset();
  void Count(Under& under, uint64_t bytes);
  // RST to who connected, and to the other end as well unless that is to read what it was sent.
  void Reset(bool both);

  NetworkLink link_;
  const Dialer dial_;
  size_t head_bytes_ = 0;
  std::string head_;
  int fds_[2];  // who connected, whom
  OneWay ways_[2] = {OneWay(Way::kRequests), OneWay(Way::kReplies)};
  std::map<uint64_t, Under> under_;
  bool over_ = false;
};

}  // namespace strata::testing

#endif  // STRATA_TESTS_FAULTS_PROXY_CONNECTION_H_
