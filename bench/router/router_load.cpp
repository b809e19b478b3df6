// A load for what passes messages between clients, and the same for two of them: a broker of ours by lines of JSON-RPC,
// and nats-server by its own text protocol. It is caller and responder, publisher and subscribers in one thread, so
// that both routers see the same clients; only what is written and how a message ends differs.
//
//     router_load wirecall|nats PORT calls CONNECTIONS IN_FLIGHT SECONDS
//     router_load wirecall|nats PORT events SUBSCRIBERS BYTES SECONDS
//
// PORT may be two, as 8545,8546, of brokers that are one: the responder, and half of the subscribers, are at the
// second. Prints one line of JSON: messages delivered, seconds, and the median and 99th percentile of a call's time in
// us.
#include <algorithm>
#include <arpa/inet.h>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string>
#include <string_view>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::exit(1);
}

constexpr std::string_view kPayload = R"(["0123456789"])";

// One connection: what it has been sent and not looked at, and what it has to say.
struct Peer {
  int fd = -1;
  std::size_t number = 0;
  std::string in;
  std::string out;
  std::vector<Clock::time_point> sent;  // of a caller, by slot in flight

  explicit Peer(int port) : fd(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) give_up("connect");
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  Peer(Peer&&) = delete;
  ~Peer() { ::close(fd); }
  void flush() {
    std::string_view left = out;
    while (!left.empty()) {
      const ssize_t taken = ::send(fd, left.data(), left.size(), MSG_NOSIGNAL);
      if (taken <= 0) give_up("send");
      left.remove_prefix(static_cast<std::size_t>(taken));
    }
    out.clear();
  }
  bool receive() {
    char bytes[64 * 1024];
    const ssize_t count = ::recv(fd, bytes, sizeof bytes, 0);
    if (count <= 0) return false;
    in.append(bytes, static_cast<std::size_t>(count));
    return true;
  }
};

// What differs. `take` calls `use` with each whole message of `in`, and drops it there.
struct Protocol {
  virtual ~Protocol() = default;
  virtual void respond_to_calls(Peer& peer) = 0;
  virtual void subscribe(Peer& peer) = 0;
  virtual void begin_caller(Peer& peer) = 0;
  virtual void call(Peer& peer, std::size_t slot) = 0;
  virtual void publish(Peer& peer, std::string_view payload) = 0;
  /// Answers all calls that have come.
  virtual void answer(Peer& peer) = 0;
  /// The slots of the replies that have come.
  virtual void replies(Peer& peer, std::vector<std::size_t>& slots) = 0;
  /// How many events have come.
  virtual std::size_t events(Peer& peer) = 0;

 protected:
  static std::size_t number_at(std::string_view text, std::size_t at) {
    std::size_t number = 0;
    std::from_chars(text.data() + at, text.data() + text.size(), number);
    return number;
  }
};

struct JsonRpc final : Protocol {
  void respond_to_calls(Peer& peer) override {
    peer.out += R"({"jsonrpc":"2.0","method":"rpc.register","params":{"method":"echo"},"id":0})"
                "\n";
    settle(peer);
  }
  void subscribe(Peer& peer) override {
    peer.out += R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":"news"},"id":0})"
                "\n";
    settle(peer);
  }
  void begin_caller(Peer&) override {}
  void call(Peer& peer, std::size_t slot) override {
    peer.out.append(R"({"jsonrpc":"2.0","method":"echo","params":)").append(kPayload).append(R"(,"id":)");
    peer.out.append(std::to_string(slot)).append("}\n");
  }
  void publish(Peer& peer, std::string_view payload) override {
    peer.out.append(R"({"jsonrpc":"2.0","method":"news","params":[")").append(payload).append("\"]}\n");
  }
  void answer(Peer& peer) override {
    each(peer, [&](std::string_view line) {
      const std::size_t at = line.rfind(':') + 1;
      peer.out.append(R"({"jsonrpc":"2.0","result":)").append(kPayload).append(R"(,"id":)");
      peer.out.append(line.substr(at)).push_back('\n');
    });
  }
  void replies(Peer& peer, std::vector<std::size_t>& slots) override {
    each(peer, [&](std::string_view line) { slots.push_back(number_at(line, line.rfind(':') + 1)); });
  }
  std::size_t events(Peer& peer) override {
    std::size_t count = 0;
    each(peer, [&](std::string_view) { ++count; });
    return count;
  }

 private:
  template <class Use>
  static void each(Peer& peer, const Use& use) {
    std::size_t at = 0;
    for (std::size_t end = 0; (end = peer.in.find('\n', at)) != std::string::npos; at = end + 1) {
      use(std::string_view{peer.in}.substr(at, end - at));
    }
    peer.in.erase(0, at);
  }
  static void settle(Peer& peer) {
    peer.flush();
    while (peer.in.find('\n') == std::string::npos) {
      if (!peer.receive()) give_up("recv");
    }
    peer.in.clear();
  }
};

struct Nats final : Protocol {
  void respond_to_calls(Peer& peer) override { settle(peer, "SUB echo 1\r\n"); }
  void subscribe(Peer& peer) override { settle(peer, "SUB news 1\r\n"); }
  void begin_caller(Peer& peer) override { settle(peer, "SUB _INBOX." + std::to_string(peer.number) + ".* 1\r\n"); }
  void call(Peer& peer, std::size_t slot) override {
    peer.out.append("PUB echo _INBOX.").append(std::to_string(peer.number)).append(".");
    peer.out.append(std::to_string(slot)).append(" ").append(std::to_string(kPayload.size())).append("\r\n");
    peer.out.append(kPayload).append("\r\n");
  }
  void publish(Peer& peer, std::string_view payload) override {
    peer.out.append("PUB news ").append(std::to_string(payload.size())).append("\r\n").append(payload).append("\r\n");
  }
  void answer(Peer& peer) override {
    each(peer, [&](std::string_view head) {  // MSG echo 1 _INBOX.<caller>.<slot> 14
      const std::size_t size_at = head.rfind(' ');
      const std::size_t to = head.rfind(' ', size_at - 1) + 1;
      peer.out.append("PUB ").append(head.substr(to, size_at - to)).append(head.substr(size_at)).append("\r\n");
      peer.out.append(kPayload).append("\r\n");
    });
  }
  void replies(Peer& peer, std::vector<std::size_t>& slots) override {
    each(peer, [&](std::string_view head) {  // MSG _INBOX.<caller>.<slot> 1 14
      slots.push_back(number_at(head, head.find('.', 11) + 1));
    });
  }
  std::size_t events(Peer& peer) override {
    std::size_t count = 0;
    each(peer, [&](std::string_view) { ++count; });
    return count;
  }

 private:
  template <class Use>
  static void each(Peer& peer, const Use& use) {
    std::size_t at = 0;
    for (;;) {
      const std::size_t end = peer.in.find("\r\n", at);
      if (end == std::string::npos) break;
      const std::string_view head = std::string_view{peer.in}.substr(at, end - at);
      if (!head.starts_with("MSG ")) {
        if (head == "PING") peer.out += "PONG\r\n";
        at = end + 2;
        continue;
      }
      const std::size_t size = number_at(head, head.rfind(' ') + 1);
      if (peer.in.size() < end + 2 + size + 2) break;
      use(head);
      at = end + 2 + size + 2;
    }
    peer.in.erase(0, at);
  }
  static void settle(Peer& peer, const std::string& words) {
    peer.out = "CONNECT {\"verbose\":false,\"pedantic\":false,\"protocol\":1}\r\n" + words + "PING\r\n";
    peer.flush();
    while (peer.in.find("PONG\r\n") == std::string::npos) {
      if (!peer.receive()) give_up("recv");
    }
    peer.in.clear();
  }
};

struct Load {
  std::unique_ptr<Protocol> protocol;
  int port;
  int other_port;
  int epoll = ::epoll_create1(0);
  std::vector<std::unique_ptr<Peer>> peers;

  Peer& connect(bool at_other = false) {
    Peer& peer = *peers.emplace_back(std::make_unique<Peer>(at_other ? other_port : port));
    peer.number = peers.size();
    return peer;
  }
  // Until one broker knows of what was said at the other.
  void settle() const {
    if (port != other_port) std::this_thread::sleep_for(std::chrono::milliseconds{200});
  }
  void watch() {
    for (const auto& peer : peers) {
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.ptr = peer.get();
      ::epoll_ctl(epoll, EPOLL_CTL_ADD, peer->fd, &event);
    }
  }
  template <class Use>
  void serve_until(Clock::time_point end, const Use& use) {
    epoll_event events[256];
    while (Clock::now() < end) {
      const int count = ::epoll_wait(epoll, events, 256, 100);
      for (int i = 0; i < count; ++i) {
        Peer& peer = *static_cast<Peer*>(events[i].data.ptr);
        if (!peer.receive()) give_up("recv");
        use(peer);
        if (!peer.out.empty()) peer.flush();
      }
    }
  }
};

void print(std::size_t count, double seconds, std::vector<double>& times) {
  std::ranges::sort(times);
  const auto at = [&](double part) {
    return times.empty() ? 0.0 : times[static_cast<std::size_t>(part * static_cast<double>(times.size() - 1))];
  };
  std::printf(R"({"count":%zu,"seconds":%.3f,"p50_us":%.1f,"p99_us":%.1f})"
              "\n",
              count, seconds, at(0.5), at(0.99));
}

void calls(Load& load, std::size_t connections, std::size_t in_flight, double seconds) {
  Peer& responder = load.connect(true);
  load.protocol->respond_to_calls(responder);
  load.settle();
  for (std::size_t i = 0; i < connections; ++i) load.protocol->begin_caller(load.connect());
  load.watch();
  const auto begin = Clock::now();
  for (const auto& peer : load.peers) {
    if (peer.get() == &responder) continue;
    peer->sent.assign(in_flight, begin);
    for (std::size_t slot = 0; slot < in_flight; ++slot) load.protocol->call(*peer, slot);
    peer->flush();
  }
  std::size_t count = 0;
  std::vector<double> times;
  std::vector<std::size_t> slots;
  load.serve_until(begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)),
                   [&](Peer& peer) {
                     if (&peer == &responder) return load.protocol->answer(peer);
                     slots.clear();
                     load.protocol->replies(peer, slots);
                     const auto now = Clock::now();
                     for (const std::size_t slot : slots) {
                       times.push_back(std::chrono::duration<double, std::micro>(now - peer.sent.at(slot)).count());
                       peer.sent[slot] = now;
                       load.protocol->call(peer, slot);
                     }
                     count += slots.size();
                   });
  print(count, seconds, times);
}

// So many events are on their way at once: the publisher says the next ones when all subscribers have had these.
void events(Load& load, std::size_t subscribers, std::size_t bytes, double seconds) {
  constexpr std::size_t kAtOnce = 16;
  for (std::size_t i = 0; i < subscribers; ++i) load.protocol->subscribe(load.connect(i % 2 != 0));
  load.settle();
  Peer publisher{load.port};
  load.protocol->begin_caller(publisher);
  load.watch();
  const std::string payload(bytes, 'x');
  std::size_t count = 0;
  std::size_t due = 0;
  const auto publish = [&] {
    for (std::size_t i = 0; i < kAtOnce; ++i) load.protocol->publish(publisher, payload);
    publisher.flush();
    due += kAtOnce * subscribers;
  };
  publish();
  load.serve_until(Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)),
                   [&](Peer& peer) {
                     count += load.protocol->events(peer);
                     if (count == due) publish();
                   });
  std::vector<double> none;
  print(count, seconds, none);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) {
    std::fprintf(stderr, "router_load wirecall|nats PORT calls|events N M SECONDS\n");
    return 2;
  }
  const char* const other = std::strchr(argv[2], ',');
  Load load{.protocol = nullptr,
            .port = std::atoi(argv[2]),
            .other_port = std::atoi(other != nullptr ? other + 1 : argv[2]),
            .peers = {}};
  if (std::strcmp(argv[1], "nats") == 0) {
    load.protocol = std::make_unique<Nats>();
  } else {
    load.protocol = std::make_unique<JsonRpc>();
  }
  const auto first = static_cast<std::size_t>(std::atoll(argv[4]));
  const auto second = static_cast<std::size_t>(std::atoll(argv[5]));
  const double seconds = std::atof(argv[6]);
  if (std::strcmp(argv[3], "calls") == 0) {
    calls(load, first, second, seconds);
  } else {
    events(load, first, second, seconds);
  }
}
