#include "tests/faults/proxy/connection.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace strata::testing {
namespace {

constexpr size_t kPiece = 16 << 10;
// On its way in one direction, beside what sockets hold: kQueued + kPiece at most.
constexpr size_t kQueued = 256 << 10;
// Written at once where bytes a second are limited.
constexpr size_t kSlowPiece = 2 << 10;

void Prepare(int fd) {
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

void CloseWithReset(int fd) {
  const linger now = {1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close(fd);
}

}  // namespace

Connection::Connection(int fd, const NetworkLink& link, Dialer dial)
    : link_(link), dial_(std::move(dial)), fds_{fd, -1} {
  Prepare(fd);
}

Connection::~Connection() {
  for (const int fd : fds_) {
    if (fd >= 0) close(fd);
  }
}

std::string Connection::TakeHead() {
  if (head_bytes_ == 0) return "";
  while (head_.size() < head_bytes_) {
    char byte = 0;
    const ssize_t got = read(fds_[0], &byte, 1);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return "";
    if (got <= 0) {
      over_ = true;
      return "";
    }
    head_.push_back(byte);
  }
  head_bytes_ = 0;
  return std::exchange(head_, "");
}

void Connection::Add(ActiveFault* fault) {
  Under& under = under_[fault->id];
  under.fault = fault;
  if (fault->fault.flip_every > 0) {
    under.next_flip = fault->random() % (2 * fault->fault.flip_every);
  }
}

void Connection::End(ActiveFault* fault) {
  const auto it = under_.find(fault->id);
  if (it == under_.end()) return;
  // A stream that lacks something in its midst cannot go on.
  const bool lacks = it->second.swallowed > 0;
  const FaultKind kind = fault->fault.kind;
  if (lacks || kind == FaultKind::kDrop || kind == FaultKind::kReset) {
    ++fault->met.resets;
    Count(it->second, 0);
    Reset(/*both=*/!lacks);
  }
  under_.erase(it);
}

bool Connection::Held(size_t way) const {
  return std::any_of(under_.begin(), under_.end(), [way](const auto& u) {
    const NetworkFault& f = u.second.fault->fault;
    return f.kind == FaultKind::kBlackHole || f.kind == FaultKind::kDrop ||
           (f.kind == FaultKind::kOneWay && f.way == static_cast<Way>(way));
  });
}

bool Connection::Reads(size_t way) const {
  return fds_[way] >= 0 && fds_[1] >= 0 && !ways_[way].ended && ways_[way].queued < kQueued &&
         !Held(way);
}

absl::Duration Connection::Want(absl::Time now, std::vector<pollfd>& polls) const {
  absl::Duration wait = absl::InfiniteDuration();
  if (head_bytes_ > 0) {
    polls.push_back({fds_[0], POLLIN, 0});
    return wait;
  }
  if (fds_[1] < 0 && !Held(0) && !Held(1)) return absl::ZeroDuration();
  for (size_t way = 0; way < 2; ++way) {
    if (Reads(way)) polls.push_back({fds_[way], POLLIN, 0});
    const OneWay& w = ways_[way];
    if (w.pieces.empty() || Held(way)) continue;
    const absl::Time due = std::max(w.pieces.front().due, w.next);
    if (due > now) {
      wait = std::min(wait, due - now);
    } else {
      polls.push_back({fds_[1 - way], POLLOUT, 0});
    }
  }
  return wait;
}

void Connection::Dial() {
  fds_[1] = dial_(link_.to);
  if (fds_[1] < 0) return Reset(/*both=*/true);
  Prepare(fds_[1]);
}

void Connection::Move(absl::Time now) {
  if (over_ || head_bytes_ > 0) return;
  for (auto& [id, under] : under_) {
    if (Held(0) || Held(1)) Count(under, 0);
  }
  if (fds_[1] < 0 && !Held(0) && !Held(1)) Dial();
  for (size_t way = 0; way < 2 && !over_; ++way) {
    if (Reads(way)) Read(way, now);
    if (!over_ && fds_[1] >= 0 && !Held(way)) Write(way, now);
  }
  if (!over_) LookForReset();
  if (ways_[0].shut && ways_[1].shut) over_ = true;
}

void Connection::Read(size_t way, absl::Time now) {
  OneWay& w = ways_[way];
  std::vector<uint8_t> bytes(kPiece);
  const ssize_t got = read(fds_[way], bytes.data(), bytes.size());
  if (got < 0) {
    if (errno != EAGAIN && errno != EINTR) Reset(/*both=*/true);
    return;
  }
  if (got == 0) {
    w.ended = true;
    return;
  }
  bytes.resize(static_cast<size_t>(got));
  absl::Time due = w.pieces.empty() ? now : std::max(now, w.pieces.back().due);
  bool swallowed = false;
  // What a fault finds must not depend on those before it: the walker sees every byte.
  uint64_t flips = 0;
  for (auto& [id, under] : under_) {
    ActiveFault& active = *under.fault;
    const NetworkFault& f = active.fault;
    if (f.kind == FaultKind::kDelay) {
      const auto spread = static_cast<uint64_t>(absl::ToInt64Microseconds(f.spread));
      const absl::Duration late = f.delay + absl::Microseconds(active.random() % (spread + 1));
      due = std::max(due, now + late);
      Count(under, bytes.size());
    }
    if (f.kind == FaultKind::kSlow) Count(under, bytes.size());
    if (f.kind == FaultKind::kRepeat && way == 1) {
      under.swallowed += bytes.size();
      swallowed = true;
      Count(under, 0);
    }
    if (f.kind == FaultKind::kFlip && flips++ == 0) Flip(way, bytes, under);
  }
  if (flips == 0) w.walker.Walk(bytes, [](uint8_t&) {});
  for (auto& [id, under] : under_) {
    if (under.fault->fault.kind == FaultKind::kDamage) Damage(way, now, bytes, under);
  }
  if (swallowed) return;
  w.queued += bytes.size();
  w.pieces.push_back({std::move(bytes), due});
}

void Connection::Flip(size_t way, std::vector<uint8_t>& bytes, Under& under) {
  ActiveFault& active = *under.fault;
  ways_[way].walker.Walk(bytes, [&](uint8_t& byte) {
    ++active.met.bytes;
    if (under.next_flip-- > 0) return;
    byte = static_cast<uint8_t>(byte ^ (1U << active.random() % 8));
    ++active.met.flips;
    Count(under, 0);
    under.next_flip = 1 + active.random() % (2 * active.fault.flip_every);
  });
}

void Connection::Damage(size_t way, absl::Time now, std::vector<uint8_t>& bytes, Under& under) {
  ActiveFault& active = *under.fault;
  const NetworkFault& f = active.fault;
  if (f.way != static_cast<Way>(way) || under.bit_turned || now > active.until - f.lasts / 2)
    return;
  const uint64_t at = f.after_bytes - under.seen;
  if (at >= bytes.size()) {
    under.seen += bytes.size();
    return;
  }
  bytes[at] = static_cast<uint8_t>(bytes[at] ^ (1U << active.random() % 8));
  under.bit_turned = true;
  ++active.met.flips;
  Count(under, bytes.size());
}

void Connection::NoteOver() {
  for (auto& [id, under] : under_) under.fault->met.closed += under.bit_turned;
}

void Connection::Write(size_t way, absl::Time now) {
  OneWay& w = ways_[way];
  uint64_t rate = 0;
  for (const auto& [id, under] : under_) {
    if (under.fault->fault.kind == FaultKind::kSlow) rate = under.fault->fault.bytes_a_second;
  }
  while (!w.pieces.empty() && w.pieces.front().due <= now && (rate == 0 || w.next <= now)) {
    Piece& piece = w.pieces.front();
    size_t size = piece.bytes.size() - piece.sent;
    if (rate > 0) size = std::min(size, kSlowPiece);
    const ssize_t sent = send(fds_[1 - way], piece.bytes.data() + piece.sent, size, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno != EAGAIN && errno != EINTR) Reset(/*both=*/true);
      return;
    }
    const auto passed = static_cast<size_t>(sent);
    w.passed += passed;
    w.queued -= passed;
    piece.sent += passed;
    if (rate > 0) w.next = now + absl::Seconds(1) * (static_cast<double>(passed) / rate);
    if (way == 0) {
      for (auto& [id, under] : under_) under.requests += passed;
    }
    if (piece.sent == piece.bytes.size()) w.pieces.pop_front();
  }
  if (!w.ended || w.shut || !w.pieces.empty()) return;
  shutdown(fds_[1 - way], SHUT_WR);
  w.shut = true;
}

void Connection::LookForReset() {
  for (auto& [id, under] : under_) {
    const NetworkFault& f = under.fault->fault;
    const bool repeat = f.kind == FaultKind::kRepeat && under.swallowed > 0;
    if ((f.kind != FaultKind::kReset && !repeat) || under.requests < f.after_bytes) continue;
    ++under.fault->met.resets;
    Count(under, 0);
    return Reset(/*both=*/!repeat);
  }
}

void Connection::Count(Under& under, uint64_t bytes) {
  if (!std::exchange(under.counted, true)) ++under.fault->met.connections;
  under.fault->met.bytes += bytes;
}

void Connection::Reset(bool both) {
  if (over_) return;
  over_ = true;
  CloseWithReset(std::exchange(fds_[0], -1));
  const int other = std::exchange(fds_[1], -1);
  if (other < 0) return;
  if (both) {
    CloseWithReset(other);
  } else {
    close(other);  // it reads to the end
  }
}

}  // namespace strata::testing
