// Makes TLS 1.3 handshakes with a server, AT_ONCE at a time. Each connection makes a handshake, sends REQUEST, waits
// for ANSWER, sends close_notify and closes. A resumed handshake uses the last ticket that the server has issued. Exits
// with 1 when an answer differs or when a handshake is not of the requested kind. Prints one line of JSON: handshakes
// and seconds. One thread.
//
//   tls_load PORT full|resumed AT_ONCE HANDSHAKES REQUEST ANSWER
//
// REQUEST and ANSWER are lines, without the line feed.
#include <arpa/inet.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string>
#include <string_view>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "tls_load: %s\n", what.c_str());
  std::exit(1);
}

SSL_SESSION* last_session = nullptr;

int keep_session(SSL*, SSL_SESSION* session) {
  SSL_SESSION_free(std::exchange(last_session, session));
  return 1;
}

struct Load {
  SSL_CTX* context;
  sockaddr_in server{};
  bool resumed;
  std::string request;
  std::string answer;
  std::vector<char> bytes = std::vector<char>(std::size_t{1} << 16);
  int poll = ::epoll_create1(0);
};

// One handshake and one call.
class Connection {
 public:
  explicit Connection(Load& load)
      : load_(load),
        fd_(::socket(AF_INET, SOCK_STREAM, 0)),
        ssl_(SSL_new(load.context)),
        in_(BIO_new(BIO_s_mem())),
        out_(BIO_new(BIO_s_mem())) {
    if (::connect(fd_, reinterpret_cast<sockaddr*>(&load.server), sizeof load.server) != 0) give_up("cannot connect");
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    SSL_set_bio(ssl_, in_, out_);
    SSL_set_connect_state(ssl_);
    if (load.resumed && last_session != nullptr) SSL_set_session(ssl_, last_session);
    SSL_do_handshake(ssl_);
    flush();
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = this;
    ::epoll_ctl(load.poll, EPOLL_CTL_ADD, fd_, &event);
  }
  Connection(Connection&&) = delete;
  ~Connection() {
    SSL_shutdown(ssl_);
    flush();
    SSL_free(ssl_);
    ::close(fd_);
  }

  // Reads what has come and answers it. Returns true once ANSWER has come.
  bool proceed() {
    const ssize_t got = ::recv(fd_, load_.bytes.data(), load_.bytes.size(), MSG_DONTWAIT);
    if (got <= 0) give_up("the server has closed");
    BIO_write(in_, load_.bytes.data(), static_cast<int>(got));
    if (!SSL_is_init_finished(ssl_)) {
      if (const int result = SSL_do_handshake(ssl_); result != 1) {
        if (SSL_get_error(ssl_, result) != SSL_ERROR_WANT_READ) give_up("the handshake has failed");
        flush();
        return false;
      }
      if ((SSL_session_reused(ssl_) == 1) != load_.resumed && last_session != nullptr) {
        give_up(load_.resumed ? "a session was not resumed" : "a session was resumed");
      }
      std::size_t taken = 0;
      SSL_write_ex(ssl_, load_.request.data(), load_.request.size(), &taken);
      flush();
    }
    std::size_t some = 0;
    while (SSL_read_ex(ssl_, load_.bytes.data(), load_.bytes.size(), &some) == 1) {
      answer_.append(load_.bytes.data(), some);
    }
    if (answer_.size() < load_.answer.size()) return false;
    if (answer_ != load_.answer) give_up("another answer: " + answer_);
    return true;
  }

 private:
  void flush() {
    char* from = nullptr;
    const long size = BIO_get_mem_data(out_, &from);
    if (size <= 0) return;
    if (::send(fd_, from, static_cast<std::size_t>(size), MSG_NOSIGNAL) != size) give_up("cannot send");
    static_cast<void>(BIO_reset(out_));
  }

  Load& load_;
  int fd_;
  SSL* ssl_;
  BIO* in_;
  BIO* out_;
  std::string answer_;
};

void run(Load& load, std::size_t at_once, std::size_t handshakes) {
  std::vector<std::unique_ptr<Connection>> connections;
  std::size_t begun = 0;
  for (; begun < std::min(at_once, handshakes); ++begun) connections.push_back(std::make_unique<Connection>(load));
  for (std::size_t done = 0; done < handshakes;) {
    epoll_event events[64];
    const int count = ::epoll_wait(load.poll, events, 64, 10'000);
    if (count <= 0) give_up("the server does not answer");
    for (int i = 0; i < count; ++i) {
      auto* const ready = static_cast<Connection*>(events[i].data.ptr);
      if (!ready->proceed()) continue;
      ++done;
      for (auto& connection : connections) {
        if (connection.get() != ready) continue;
        connection.reset();
        if (begun == handshakes) break;
        ++begun;
        connection = std::make_unique<Connection>(load);
        break;
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view kind = argc == 7 ? argv[2] : "";
  if (kind != "full" && kind != "resumed") {
    std::fprintf(stderr, "usage: tls_load PORT full|resumed AT_ONCE HANDSHAKES REQUEST ANSWER\n");
    return 2;
  }
  const std::size_t at_once = std::strtoul(argv[3], nullptr, 10);
  const std::size_t handshakes = std::strtoul(argv[4], nullptr, 10);
  Load load{.context = SSL_CTX_new(TLS_client_method()),
            .resumed = kind == "resumed",
            .request = std::string{argv[5]} + '\n',
            .answer = std::string{argv[6]} + '\n'};
  load.server.sin_family = AF_INET;
  load.server.sin_port = htons(static_cast<std::uint16_t>(std::atoi(argv[1])));
  load.server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  SSL_CTX_set_min_proto_version(load.context, TLS1_3_VERSION);
  SSL_CTX_set_session_cache_mode(load.context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(load.context, &keep_session);
  run(load, 1, 1);  // brings the first ticket
  if (last_session == nullptr) give_up("the server gives no ticket");
  const Clock::time_point begin = Clock::now();
  run(load, at_once, handshakes);
  const std::chrono::duration<double> took = Clock::now() - begin;
  std::printf("{\"handshakes\":%zu,\"seconds\":%.3f}\n", handshakes + 1, took.count());
}
