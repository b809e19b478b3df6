// The ceiling of a TLS server: OpenSSL over memory BIOs on epoll, and no parsing. It knows the size of a request and
// answers each with REPLY and a line feed; what one receive brings, of a handshake or of requests, is answered by one
// send. The context has the options of the measured server's: versions, ciphers, groups, one ticket, no session cache,
// buffers released. What that server takes beyond this ceiling, of CPU time or of memory, is its own. One thread.
//
//   tls_ceiling CERTIFICATE KEY REQUEST_BYTES REPLY
//
// It listens on a free port of 127.0.0.1 and prints its URI to stderr.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdexcept>
#include <string>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

#include "transport/endpoint_socket.hpp"
#include "wirecall/endpoint.hpp"

namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 16;

SSL_CTX* make_context(const char* certificate, const char* key) {
  SSL_CTX* const context = SSL_CTX_new(TLS_server_method());
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20");
  SSL_CTX_set1_groups_list(context, "X25519:P-256:P-384");
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 1);
  const unsigned char name = 0;
  SSL_CTX_set_session_id_context(context, &name, 1);
  if (SSL_CTX_use_certificate_chain_file(context, certificate) != 1 ||
      SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1) {
    throw std::runtime_error{std::string{certificate} + " or " + key + " cannot be used"};
  }
  return context;
}

class Connection {
 public:
  Connection(SSL_CTX* context, int fd)
      : fd_(fd), ssl_(SSL_new(context)), in_(BIO_new(BIO_s_mem())), out_(BIO_new(BIO_s_mem())) {
    SSL_set_bio(ssl_, in_, out_);
    SSL_set_accept_state(ssl_);
  }
  Connection(Connection&&) = delete;
  ~Connection() {
    SSL_free(ssl_);
    ::close(fd_);
  }

  // One receive and one send. Returns false when the connection is over.
  bool serve(std::vector<char>& bytes, std::size_t request_bytes, const std::string& reply) {
    const ssize_t got = ::recv(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got <= 0) return false;
    BIO_write(in_, bytes.data(), static_cast<int>(got));
    std::size_t some = 0;
    int result = 0;
    while ((result = SSL_read_ex(ssl_, bytes.data(), bytes.size(), &some)) == 1) unfinished_ += some;
    const int error = SSL_get_error(ssl_, result);
    for (; unfinished_ >= request_bytes; unfinished_ -= request_bytes) {
      SSL_write_ex(ssl_, reply.data(), reply.size(), &some);
    }
    if (error == SSL_ERROR_ZERO_RETURN) SSL_shutdown(ssl_);  // says its own end, as RFC 8446 wants it
    const bool flushed = flush();
    if (error == SSL_ERROR_WANT_READ) return flushed;
    ERR_clear_error();
    return false;
  }

 private:
  bool flush() {
    char* from = nullptr;
    const long size = BIO_get_mem_data(out_, &from);
    if (size <= 0) return true;
    const bool all = ::send(fd_, from, static_cast<std::size_t>(size), MSG_NOSIGNAL | MSG_DONTWAIT) == size;
    static_cast<void>(BIO_reset(out_));
    return all;
  }

  int fd_;
  SSL* ssl_;
  BIO* in_;
  BIO* out_;
  std::size_t unfinished_ = 0;  // bytes of requests not answered yet
};

class Ceiling {
 public:
  Ceiling(SSL_CTX* context, std::size_t request_bytes, std::string reply)
      : context_(context),
        request_bytes_(request_bytes),
        reply_(std::move(reply)),
        bound_(wirecall::transport::listen_on(wirecall::Endpoint{"tcp://127.0.0.1:0"})) {
    watch(bound_.descriptor);
    std::fprintf(stderr, "%s\n", bound_.endpoint.uri().c_str());
  }

  [[noreturn]] void run() {
    for (;;) {
      epoll_event events[256];
      const int count = ::epoll_wait(poll_, events, 256, -1);
      for (int i = 0; i < count; ++i) {
        const int fd = events[i].data.fd;
        if (fd == bound_.descriptor) {
          accept();
          continue;
        }
        auto& connection = connections_[static_cast<std::size_t>(fd)];
        if (!connection->serve(bytes_, request_bytes_, reply_)) connection.reset();
      }
    }
  }

 private:
  void watch(int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    ::epoll_ctl(poll_, EPOLL_CTL_ADD, fd, &event);
  }

  void accept() {
    for (int fd; (fd = ::accept4(bound_.descriptor, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      const int on = 1;
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      const auto at = static_cast<std::size_t>(fd);
      if (at >= connections_.size()) connections_.resize(at + 1);
      connections_[at] = std::make_unique<Connection>(context_, fd);
      watch(fd);
    }
  }

  SSL_CTX* context_;
  const std::size_t request_bytes_;
  const std::string reply_;
  const wirecall::transport::BoundSocket bound_;
  std::vector<std::unique_ptr<Connection>> connections_;  // by descriptor
  std::vector<char> bytes_ = std::vector<char>(kReadBytes);
  const int poll_ = ::epoll_create1(EPOLL_CLOEXEC);
};

}  // namespace

int main(int argc, char** argv) {
  const std::size_t request_bytes = argc == 5 ? std::strtoul(argv[3], nullptr, 10) : 0;
  if (request_bytes == 0) {
    std::fprintf(stderr, "usage: tls_ceiling CERTIFICATE KEY REQUEST_BYTES REPLY\n");
    return 2;
  }
  try {
    Ceiling{make_context(argv[1], argv[2]), request_bytes, std::string{argv[4]} + '\n'}.run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tls_ceiling: %s\n", error.what());
    return 2;
  }
}
