// The ceiling of a server over a unix socket: it parses nothing. It is told how many bytes a request has and what the
// reply is, and answers what has come of whole requests with one send. What a server spends beyond this is its own.
//
//   ceiling_unix PATH REQUEST_BYTES REPLY_FILE
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

namespace {

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(2);
}

int listen_at(const char* path) {
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (std::strlen(path) >= sizeof address.sun_path) fail(path);
  std::strcpy(address.sun_path, path);
  ::unlink(path);
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fail(path);
  if (::listen(listener, 4096) != 0) fail("listen");
  return listener;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: ceiling_unix PATH REQUEST_BYTES REPLY_FILE\n");
    return 2;
  }
  const std::size_t request_bytes = std::strtoul(argv[2], nullptr, 10);
  std::ifstream file{argv[3], std::ios::binary};
  const std::string reply{std::istreambuf_iterator<char>{file}, {}};
  if (request_bytes == 0 || reply.empty()) fail(argv[3]);

  std::vector<char> input(std::size_t{1} << 18);
  std::string replies;  // as many as the input can ask for
  for (std::size_t i = 0; i <= input.size() / request_bytes; ++i) replies += reply;
  std::vector<std::size_t> unfinished;  // bytes of a request that is not whole, by descriptor

  const int listener = listen_at(argv[1]);
  const int poll = ::epoll_create1(EPOLL_CLOEXEC);
  const auto watch = [poll](int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    ::epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event);
  };
  watch(listener);
  for (;;) {
    epoll_event events[256];
    const int count = ::epoll_wait(poll, events, 256, -1);
    for (int i = 0; i < count; ++i) {
      const int fd = events[i].data.fd;
      if (fd == listener) {
        for (int peer; (peer = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)) >= 0; watch(peer)) {
          if (static_cast<std::size_t>(peer) >= unfinished.size())
            unfinished.resize(static_cast<std::size_t>(peer) + 1);
          unfinished[static_cast<std::size_t>(peer)] = 0;
        }
        continue;
      }
      const ssize_t got = ::recv(fd, input.data(), input.size(), MSG_DONTWAIT);
      if (got <= 0) {
        ::close(fd);
        continue;
      }
      std::size_t& bytes = unfinished[static_cast<std::size_t>(fd)];
      bytes += static_cast<std::size_t>(got);
      const std::size_t answers = bytes / request_bytes;
      bytes %= request_bytes;
      if (answers != 0) (void)::send(fd, replies.data(), answers * reply.size(), MSG_NOSIGNAL);
    }
  }
}
