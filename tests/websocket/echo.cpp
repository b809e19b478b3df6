// An echo of WebSocket messages over the framing that wirecall uses, and its handshake, for suites that others have
// written: what there is of sessions is not theirs to test.
//   echo serve                     listens on a free port of 127.0.0.1, prints it, and echoes until its input ends
//   echo connect HOST PORT PATH    connects there and echoes until the server closes; prints the messages that came
#include <algorithm>
#include <arpa/inet.h>
#include <cstdio>
#include <cstdlib>
#include <netinet/tcp.h>
#include <optional>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "framing/http1.hpp"
#include "framing/websocket.hpp"
#include "http/websocket.hpp"
#include "http/websocket_deflate.hpp"
#include "http/zlib_deflate.hpp"

namespace {

using wirecall::Buffer;
using wirecall::framing::Ending;
using wirecall::framing::Find;
using wirecall::framing::Found;
using wirecall::framing::WebSocket;

constexpr std::string_view kKey = "dGhlIHNhbXBsZSBub25jZQ==";

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  Socket(Socket&&) = delete;
  ~Socket() { ::close(fd_); }

  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  // Nothing at the end.
  std::string receive() const {
    std::string bytes(65536, '\0');
    const ssize_t got = ::recv(fd_, bytes.data(), bytes.size(), 0);
    bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return bytes;
  }
  // Up to the end of a head; what follows it stays in `rest`.
  std::string receive_head(std::string& rest) const {
    std::size_t end;
    while ((end = rest.find("\r\n\r\n")) == std::string::npos) {
      const std::string more = receive();
      if (more.empty()) return {};
      rest += more;
    }
    std::string head = rest.substr(0, end + 4);
    rest.erase(0, end + 4);
    return head;
  }
  void finish() const { ::shutdown(fd_, SHUT_WR); }

 private:
  int fd_;
};

void append_message(WebSocket& framing, Buffer& out, std::string_view message, bool text) {
  const std::size_t begin = out.size();
  static_cast<void>(out.reserve(framing.head_bytes()));
  out.grow(framing.head_bytes());
  out.append(message);
  framing.seal(out, begin, text);
}

// Until the connection ends, beginning with the bytes that have come; returns the messages.
std::vector<std::string> echo(const Socket& socket, WebSocket& framing, std::string bytes) {
  std::vector<std::string> messages;
  std::string kept;
  bool over = false;
  do {
    Buffer out;
    for (std::span<char> input{bytes.data(), bytes.size()}; !input.empty() && !over;) {
      const Found found = framing.next(input);
      kept.append(input.data() + found.skip, found.size);
      input = input.subspan(found.skip + found.size);
      switch (found.find) {
        case Find::nothing:
        case Find::part: break;
        case Find::text:
        case Find::message:
          append_message(framing, out, kept, found.find == Find::text);
          messages.push_back(std::exchange(kept, {}));
          break;
        case Find::packed: {
          Buffer whole;
          const auto outcome = framing.unpack(std::exchange(kept, {}), wirecall::Limits{}.max_message_size, whole);
          const Find unpacked = framing.unpacked(outcome, whole.view());
          over = unpacked != Find::text && unpacked != Find::message;
          if (over) {
            out.append(framing.farewell(Ending::failed));
          } else {
            append_message(framing, out, whole.view(), unpacked == Find::text);
          }
          break;
        }
        case Find::due: out.append(framing.take_due()); break;
        default: over = true; out.append(framing.farewell(Ending::failed));
      }
    }
    if (!socket.send(out.view())) break;
    if (over) socket.finish();
    bytes = socket.receive();
  } while (!bytes.empty());
  return messages;
}

void serve_one(int fd) {
  const Socket socket{fd};
  std::string rest;
  const std::string text = socket.receive_head(rest);
  wirecall::framing::HttpHead head;
  if (text.empty() || read_http_head(text, text.size(), head).size == 0) return;
  const std::string accept = wirecall::net::websocket_accept(head.find("sec-websocket-key").value_or(""));
  wirecall::net::ZlibDeflate deflate;
  WebSocket::Packing packing;
  std::string extensions;
  const auto agreed = wirecall::net::agree_on_deflate(wirecall::net::join_field(head, "sec-websocket-extensions"));
  if (!agreed) return;
  if (*agreed) {
    packing = {.deflate = &deflate, .window_bits = (*agreed)->window_bits, .bytes_min = 0};
    extensions = "\r\nSec-WebSocket-Extensions: " + (*agreed)->answer;
  }
  if (!socket.send("HTTP/1.1 101 Switching Protocols\r\nServer: wirecall\r\nConnection: Upgrade\r\n"
                   "Upgrade: websocket\r\nSec-WebSocket-Accept: " +
                   accept + extensions + "\r\n\r\n"))
    return;
  const wirecall::Limits limits;
  WebSocket framing{WebSocket::Role::server, limits, packing};
  echo(socket, framing, std::move(rest));
}

int serve() {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  socklen_t size = sizeof address;
  if (::bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener, 64) != 0 ||
      ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return 1;
  std::printf("%d\n", ntohs(address.sin_port));
  std::fflush(stdout);
  std::thread{[listener] {
    for (;;) {
      const int fd = ::accept(listener, nullptr, nullptr);
      if (fd >= 0) std::thread{serve_one, fd}.detach();
    }
  }}.detach();
  while (std::getchar() != EOF) {
  }
  std::_Exit(0);
}

int connect(const char* host, const char* port, const char* path) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{.sin_family = AF_INET,
                      .sin_port = htons(static_cast<std::uint16_t>(std::atoi(port))),
                      .sin_addr = {},
                      .sin_zero = {}};
  if (::inet_pton(AF_INET, host, &address.sin_addr) != 1 ||
      ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    return 1;
  const Socket socket{fd};
  const std::string request = std::string{"GET "} + path + " HTTP/1.1\r\nHost: " + host + ":" + port +
                              "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                              "Sec-WebSocket-Key: " +
                              std::string{kKey} +
                              "\r\nSec-WebSocket-Extensions: " + std::string{wirecall::net::kDeflateOffer} + "\r\n\r\n";
  std::string rest;
  if (!socket.send(request)) return 1;
  const std::string text = socket.receive_head(rest);
  wirecall::framing::HttpFields head;
  if (text.find(wirecall::net::websocket_accept(kKey)) == std::string::npos) return 1;
  head.block = std::string_view{text}.substr(text.find("\r\n") + 2);
  const auto agreed = wirecall::net::takes_deflate(wirecall::net::join_field(head, "sec-websocket-extensions"));
  if (!agreed) return 1;
  wirecall::net::ZlibDeflate deflate;
  WebSocket::Packing packing;
  if (*agreed) packing = wirecall::net::client_packing(deflate, **agreed);
  if (packing.bytes_min < 1024) packing.bytes_min = 0;  // of short messages, too
  const wirecall::Limits limits;
  WebSocket framing{WebSocket::Role::client, limits, packing};
  for (const std::string& message : echo(socket, framing, std::move(rest))) std::printf("%s\n", message.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> words{argv + 1, argv + argc};
  if (words.size() == 1 && words[0] == "serve") return serve();
  if (words.size() == 4 && words[0] == "connect") return connect(argv[2], argv[3], argv[4]);
  std::fputs("usage: echo serve | echo connect HOST PORT PATH\n", stderr);
  return 2;
}
