#include "tests/e2e/cluster/metrics.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace strata::testing {
namespace {

// What an HTTP server at 127.0.0.1:PORT answers to GET /metrics; empty: nothing.
std::string Scrape(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string text;
  const std::string request = "GET /metrics HTTP/1.0\r\nHost: x\r\n\r\n";
  if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0 &&
      send(fd, request.data(), request.size(), MSG_NOSIGNAL) > 0) {
    char bytes[4096];
    for (ssize_t n; (n = recv(fd, bytes, sizeof bytes, 0)) > 0;) {
      text.append(bytes, static_cast<size_t>(n));
    }
  }
  close(fd);
  return text;
}

}  // namespace

double ScrapeOne(const std::string& address, const std::string& metric) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return -1;
  const std::string text = Scrape(std::atoi(address.c_str() + colon + 1));
  const std::string name = absl::StrCat("\n", metric, " ");
  const size_t at = text.find(name);
  return at == std::string::npos ? -1 : std::atof(text.c_str() + at + name.size());
}

}  // namespace strata::testing
