// The transport's own limit: a process that receives and sends messages of given sizes and does
// nothing.
#ifndef STRATA_TOOLS_BENCH_WIRE_ECHO_SERVER_H_
#define STRATA_TOOLS_BENCH_WIRE_ECHO_SERVER_H_

#include <cstddef>
#include <string>

namespace strata::bench {

// Serves until SIGTERM; writes its address to `address_file`. Every call is answered with
// `reply_bytes`.
int RunEchoServer(const std::string& address_file, size_t reply_bytes);

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_WIRE_ECHO_SERVER_H_
