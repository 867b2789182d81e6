// A client of a metrics port that may be slow, odd, or another than it says.
#ifndef STRATA_TESTS_PROTO_RUNTIME_METRICS_SCRAPER_H_
#define STRATA_TESTS_PROTO_RUNTIME_METRICS_SCRAPER_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace strata::testing {

inline constexpr char kScrape[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

// Whether it is an answer with status 200.
bool IsOk(const std::string& answer);

// A connection to 127.0.0.1:PORT. Nothing here waits longer than the server does.
class Connected {
 public:
  explicit Connected(uint16_t port);
  ~Connected();
  Connected(const Connected&) = delete;
  Connected& operator=(const Connected&) = delete;

  int socket() const { return socket_; }
  void Send(absl::string_view text);
  // Until the server ends; what came till then where it broke off.
  std::string Receive();

 private:
  const int socket_;
};

struct TlsClient {
  std::string folder;  // of its certificate and key; empty: it shows none
  bool tls12 = false;  // it speaks no newer one
  // As Prometheus: the server's certificate is of this CA (a file), good at that time (of Unix),
  // and has the name of this host. Empty: whatever the server shows.
  std::string ca_file;
  std::string host;
  int64_t time = 0;
  std::string request = kScrape;
};
struct TlsAnswer {
  std::string text;        // empty: it was not let in
  std::string serial;      // of the server's certificate; empty: no handshake
  std::string error;       // of OpenSSL, where it was not let in
  bool resumable = false;  // the server gave what a later connection begins with instead
};
TlsAnswer ScrapeByTls(uint16_t port, const TlsClient& client);

}  // namespace strata::testing

#endif  // STRATA_TESTS_PROTO_RUNTIME_METRICS_SCRAPER_H_
