// Indicative throughput of the data plane over gRPC on loopback: one server process, one client,
// pulls of N keys answered with rows of 64 bytes, four in flight, everything that a real pull
// does with bytes (encode, check, gather by copy, checksum, parse) but no table behind it.
//   wire_speed [keys] [seconds] [raw]     raw: no codec, the transport alone
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "proto/runtime/daemon/allocator.h"
#include "proto/runtime/transport/grpc_transport.h"
#include "proto/runtime/transport/transport.h"
#include "proto/wire/message_codec.h"

namespace strata {
namespace {

constexpr uint32_t kDim = 16;
constexpr size_t kRowBytes = kDim * sizeof(float);

double Seconds(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

TableSpec Table() {
  TableSpec table;
  table.segments.push_back({.name = "w", .dim = kDim});
  return table;
}

class Server : public DataHandler {
 public:
  Server(size_t keys, bool raw) : raw_(raw), rows_(keys * kDim, 0.5f) {}

  void Handle(const Caller&, DataMethod, Buffer request, DataReply reply) override {
    if (raw_) {
      reply(Buffer::CopyOf({reinterpret_cast<const uint8_t*>(rows_.data()), rows_.size() * 4}));
      return;
    }
    const auto view = wire::ParsePullRequest(request.span());
    if (!view.ok()) return reply(view.status());
    std::vector<wire::ValueGroup> groups;
    for (const wire::GroupView& g : view->groups) {
      std::vector<Position> positions(g.keys());
      const absl::Status good = wire::CheckRequestGroup(g, table_, wire::GroupValues::kNone,
                                                        Position(0), Position(~0ull), positions);
      if (!good.ok()) return reply(good);
      groups.push_back({g.table, g.shard, g.keys(), kDim});
    }
    auto encoder = wire::PullReplyEncoder::Make(groups);
    if (!encoder.ok()) return reply(encoder.status());
    for (size_t i = 0; i < groups.size(); ++i) {
      const std::span<float> out = encoder->values(i);
      std::memcpy(out.data(), rows_.data(), out.size_bytes());
    }
    reply(encoder->Finish({}, wire::PullOutcome::kServed));
  }

 private:
  const bool raw_;
  const TableSpec table_ = Table();
  const std::vector<float> rows_;
};

int Serve(size_t keys, bool raw, int out) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  Server server(keys, raw);
  const auto transport = MakeGrpcTransport({.server_threads = 1});
  const auto listener = transport->Listen("127.0.0.1:0", &server);
  if (!listener.ok()) return 1;
  const std::string address = (*listener)->address() + "\n";
  if (write(out, address.data(), address.size()) < 0) return 1;
  for (;;) pause();
}

// Keeps one call in flight until told to stop.
struct Caller {
  DataChannel* channel;
  const std::vector<Key>* keys;
  bool raw;
  std::atomic<bool>* stop;
  std::atomic<uint64_t>* bytes;
  absl::BlockingCounter* ended;

  void Next() {
    const std::span<const uint8_t> key_bytes(reinterpret_cast<const uint8_t*>(keys->data()),
                                             keys->size() * 8);
    const wire::KeyGroup group{TableId(0), ShardId(0), *keys};
    Buffer request =
        raw ? Buffer::CopyOf(key_bytes) : *wire::EncodePullRequest({}, Step(1), 0, {}, {&group, 1});
    channel->Call(DataMethod::kPull, std::move(request), absl::Seconds(60),
                  [this](absl::StatusOr<Buffer> reply) { Take(std::move(reply)); });
  }

  void Take(absl::StatusOr<Buffer> reply) {
    absl::Status status = reply.status();
    if (status.ok() && !raw) {
      const auto view = wire::ParsePullReply(reply->span());
      status = view.ok() ? wire::CheckReplyGroup(view->groups[0], TableId(0), ShardId(0),
                                                 keys->size(), kDim)
                         : view.status();
    }
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      _exit(1);
    }
    *bytes += keys->size() * (8 + kRowBytes);
    if (*stop) {
      ended->DecrementCount();
    } else {
      Next();
    }
  }
};

int Main(int argc, char** argv) {
  TuneAllocator();
  const size_t n = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 100'000;
  const unsigned seconds = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 3;
  const bool raw = argc > 3;
  int out[2];
  if (pipe(out) != 0) return 1;
  const pid_t server = fork();
  if (server == 0) _exit(Serve(n, raw, out[1]));
  std::string address;
  for (char c; read(out[0], &c, 1) == 1 && c != '\n';) address += c;

  const TableSpec table = Table();
  std::vector<Key> keys(n);
  for (size_t i = 0; i < n; ++i) keys[i] = Key(i * 1000);
  std::sort(keys.begin(), keys.end(),
            [&](Key a, Key b) { return table.PositionOfKey(a) < table.PositionOfKey(b); });
  const auto transport = MakeGrpcTransport();
  const auto channel = transport->Connect({address, "s"}, Caller::Nobody());
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> bytes{0};
  constexpr int kInFlight = 4;
  absl::BlockingCounter ended(kInFlight);
  Caller caller{channel.get(), &keys, raw, &stop, &bytes, &ended};
  for (int i = 0; i < kInFlight; ++i) caller.Next();
  usleep(300'000);  // warm
  clockid_t server_clock;
  clock_getcpuclockid(server, &server_clock);
  const auto sample = [&] {
    return std::vector<double>{Seconds(CLOCK_MONOTONIC), Seconds(CLOCK_PROCESS_CPUTIME_ID),
                               Seconds(server_clock), static_cast<double>(bytes) * 1e-9};
  };
  const std::vector<double> before = sample();
  sleep(seconds);
  const std::vector<double> after = sample();
  stop = true;
  ended.Wait();
  kill(server, SIGKILL);
  waitpid(server, nullptr, 0);
  const double gb = after[3] - before[3];
  std::printf("%s N=%zu  %.2f GB/s  %.1f Mkeys/s  cpu-s/GB: client %.3f server %.3f\n",
              raw ? "raw  " : "codec", n, gb / (after[0] - before[0]),
              gb / (8 + kRowBytes) * 1e3 / (after[0] - before[0]), (after[1] - before[1]) / gb,
              (after[2] - before[2]) / gb);
  return 0;
}

}  // namespace
}  // namespace strata

int main(int argc, char** argv) { return strata::Main(argc, argv); }
