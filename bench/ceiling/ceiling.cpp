// The ceiling of a server: it parses nothing. It is told how many bytes a request has and what is replied, and answers
// what has come of whole requests on a connection with one send. What a server spends beyond this is its own. Not for
// anybody but a load generator that measures it and a server in turns. One thread.
//
//   ceiling [URI REQUEST_BYTES REPLIES_FILE]...
//
// URI is tcp://127.0.0.1:PORT, where 0 lets the system choose, or unix:///path; where it listens goes to stderr. The
// requests at one endpoint have one size. So have the replies, one a line, which a connection is sent in turn.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <fstream>
#include <iterator>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdexcept>
#include <string>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

#include "transport/endpoint_socket.hpp"
#include "wirecall/endpoint.hpp"

namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 18;

struct Endpoint {
  wirecall::transport::BoundSocket bound;
  std::size_t request_bytes;
  std::size_t reply_bytes;
  std::size_t cycle;    // replies until the first comes again
  std::string replies;  // from each of the cycle on, one for every request that a read can end
};

Endpoint endpoint_of(const char* uri, const char* request_bytes, const char* path) {
  std::ifstream file{path, std::ios::binary};
  const std::string lines{std::istreambuf_iterator<char>{file}, {}};
  Endpoint endpoint{.bound = wirecall::transport::listen_on(wirecall::Endpoint{uri}),
                    .request_bytes = std::strtoul(request_bytes, nullptr, 10),
                    .reply_bytes = lines.find('\n') + 1,
                    .cycle = static_cast<std::size_t>(std::ranges::count(lines, '\n')),
                    .replies = {}};
  if (endpoint.request_bytes == 0 || endpoint.cycle == 0 || lines.size() != endpoint.cycle * endpoint.reply_bytes) {
    throw std::runtime_error{std::string{path} + " has no lines of one size, or a request no bytes"};
  }
  const std::size_t needed = endpoint.cycle + kReadBytes / endpoint.request_bytes + 1;
  while (endpoint.replies.size() < needed * endpoint.reply_bytes) endpoint.replies += lines;
  return endpoint;
}

/// What an open descriptor is: the listener of an endpoint, or a connection there.
struct Descriptor {
  const Endpoint* endpoint;
  bool listens;
  std::size_t unfinished;  // bytes of a request that is not whole
  std::size_t next;        // which reply of the cycle
};

class Ceiling {
 public:
  void add(Endpoint endpoint) {
    const Endpoint& added = endpoints_.emplace_back(std::move(endpoint));
    watch(added.bound.descriptor, {&added, true, 0, 0});
    std::fprintf(stderr, "%s\n", added.bound.endpoint.uri().c_str());
  }

  [[noreturn]] void run() {
    for (;;) {
      epoll_event events[256];
      const int count = ::epoll_wait(poll_, events, 256, -1);
      for (int i = 0; i < count; ++i) {
        const int fd = events[i].data.fd;
        Descriptor& ready = descriptors_[static_cast<std::size_t>(fd)];
        if (ready.listens) {
          accept(*ready.endpoint);
        } else {
          answer(fd, ready);
        }
      }
    }
  }

 private:
  void watch(int fd, const Descriptor& descriptor) {
    const auto at = static_cast<std::size_t>(fd);
    if (at >= descriptors_.size()) descriptors_.resize(at + 1);
    descriptors_[at] = descriptor;
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    ::epoll_ctl(poll_, EPOLL_CTL_ADD, fd, &event);
  }

  void accept(const Endpoint& endpoint) {
    for (int fd; (fd = ::accept4(endpoint.bound.descriptor, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      const int on = 1;
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // in vain for a unix socket
      watch(fd, {&endpoint, false, 0, 0});
    }
  }

  void answer(int fd, Descriptor& connection) {
    const ssize_t got = ::recv(fd, input_.data(), input_.size(), MSG_DONTWAIT);
    if (got <= 0) {
      ::close(fd);
      return;
    }
    const Endpoint& endpoint = *connection.endpoint;
    connection.unfinished += static_cast<std::size_t>(got);
    const std::size_t answers = connection.unfinished / endpoint.request_bytes;
    if (answers == 0) return;
    connection.unfinished %= endpoint.request_bytes;
    (void)::send(fd, endpoint.replies.data() + connection.next * endpoint.reply_bytes, answers * endpoint.reply_bytes,
                 MSG_NOSIGNAL);
    connection.next = (connection.next + answers) % endpoint.cycle;
  }

  std::deque<Endpoint> endpoints_;
  std::vector<Descriptor> descriptors_;  // by number
  std::vector<char> input_ = std::vector<char>(kReadBytes);
  const int poll_ = ::epoll_create1(EPOLL_CLOEXEC);
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4 || argc % 3 != 1) {
    std::fprintf(stderr, "usage: ceiling [URI REQUEST_BYTES REPLIES_FILE]...\n");
    return 2;
  }
  try {
    Ceiling ceiling;
    for (int i = 1; i < argc; i += 3) ceiling.add(endpoint_of(argv[i], argv[i + 1], argv[i + 2]));
    ceiling.run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ceiling: %s\n", error.what());
    return 2;
  }
}
