// What a call costs through shared memory, beside the unix socket and beside two bare loops that hand a number to each
// other; and by TCP where both ends spin. The client is this process, on the first processor that it may use, and the
// server one that it forks, on the second.
//     bench_shm [seconds]
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <new>
#include <sched.h>
#include <signal.h>
#include <string>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "wirecall/client.hpp"
#include "wirecall/server.hpp"
#include "wirecall/task.hpp"

namespace {

using namespace wirecall;
using Clock = std::chrono::steady_clock;

constexpr int kInFlight = 100;
constexpr std::uint32_t kSpinUs = 1000;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// The n-th of the processors that this process may use.
void pin(int n) {
  static const cpu_set_t all = [] {
    cpu_set_t allowed;
    ::sched_getaffinity(0, sizeof allowed, &allowed);
    return allowed;
  }();
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &all) && n-- == 0) CPU_SET(cpu, &one);
  }
  if (::sched_setaffinity(0, sizeof one, &one) != 0) std::perror("this needs two processors");
}

// The median of the time that one takes, in microseconds.
double round_trip_us(double seconds, const std::function<void()>& call) {
  for (int i = 0; i < 1000; ++i) call();
  std::vector<double> times;
  times.reserve(1 << 22);
  for (const Clock::time_point begin = Clock::now(); seconds_since(begin) < seconds;) {
    const Clock::time_point sent = Clock::now();
    call();
    times.push_back(seconds_since(sent) * 1e6);
  }
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
}

// A process on the second processor, killed with this object.
class Child {
 public:
  explicit Child(const std::function<void()>& run) : pid_(::fork()) {
    if (pid_ != 0) return;
    pin(1);
    run();
    ::_exit(0);
  }
  Child(Child&&) = delete;
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_;
};

// Two numbers, each on a line of its own.
struct Table {
  alignas(128) std::atomic<std::uint64_t> asked{0};
  alignas(128) std::atomic<std::uint64_t> answered{0};
};

double ping_pong_us(double seconds) {
  void* const memory = ::mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto& table = *new (memory) Table;
  const Child other{[&] {
    for (std::uint64_t n = 1;; ++n) {
      while (table.asked.load(std::memory_order_acquire) != n) __builtin_ia32_pause();
      table.answered.store(n, std::memory_order_release);
    }
  }};
  std::uint64_t n = 0;
  return round_trip_us(seconds, [&] {
    table.asked.store(++n, std::memory_order_release);
    while (table.answered.load(std::memory_order_acquire) != n) __builtin_ia32_pause();
  });
}

// What the socket itself costs: a server that waits by epoll and parses nothing, a client that blocks.
double bare_tcp_us(double seconds) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener, 1) != 0) std::abort();
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  const auto without_delay = [](int fd) {
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
  };
  const Child server{[&] {
    const int fd = without_delay(::accept(listener, nullptr, nullptr));
    const int epoll = ::epoll_create1(0);
    epoll_event event{};
    event.events = EPOLLIN;
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    char bytes[256];
    while (::epoll_wait(epoll, &event, 1, -1) == 1 && ::recv(fd, bytes, sizeof bytes, 0) > 0)
      static_cast<void>(::send(fd, "{\"jsonrpc\":\"2.0\",\"result\":19,\"id\":1}\n", 37, MSG_NOSIGNAL));
  }};
  const int fd = without_delay(::socket(AF_INET, SOCK_STREAM, 0));
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), size) != 0) std::abort();
  const std::string request = "{\"jsonrpc\":\"2.0\",\"method\":\"subtract\",\"params\":[42,23],\"id\":1}\n";
  char reply[256];
  const double us = round_trip_us(seconds, [&] {
    if (::send(fd, request.data(), request.size(), MSG_NOSIGNAL) < 0 || ::recv(fd, reply, sizeof reply, 0) <= 0)
      std::abort();
  });
  ::close(fd);
  ::close(listener);
  return us;
}

// A server there, as long as it lives, and a client of it.
class Pair {
  static ClientOptions client_options(std::uint32_t spin_us) {
    ClientOptions options;
    options.reconnect_min_ms = options.reconnect_max_ms = 1;  // the server has yet to start
    options.spin_us = spin_us;
    return options;
  }

 public:
  Pair(const std::string& uri, std::uint32_t spin_us)
      : server_([&] {
          Options options;
          options.spin_us = spin_us;
          Server server{options};
          server.method("subtract", [](int a, int b) { return a - b; });
          server.listen(uri);
          server.run();
        }),
        client_(uri, client_options(spin_us)) {}

  double round_trip_us(double seconds) {
    return ::round_trip_us(seconds, [this] {
      if (client_.call<int>("subtract", 42, 23) != 19) std::abort();
    });
  }
  // With so many in flight, each begun when one has ended.
  double calls_a_second(double seconds) {
    std::uint64_t calls = 0;
    bool over = false;
    Clock::time_point begin;
    const auto caller = [&]() -> Task<void> {
      while (!over) {
        if (co_await client_.request<int>("subtract", 42, 23) != 19) std::abort();
        if (++calls % 64 == 0) over = seconds_since(begin) >= seconds;
      }
    };
    std::vector<Task<void>> callers;
    for (int i = 0; i < kInFlight; ++i) callers.push_back(caller());
    begin = Clock::now();
    client_.run(when_all(std::move(callers)));
    return static_cast<double>(calls) / seconds_since(begin);
  }

 private:
  Child server_;
  Client client_;
};

void line(const char* what, double figure, const char* unit, double ratio = 0, const char* of = "") {
  std::printf("%-46s %10.3f %s", what, figure, unit);
  if (ratio != 0) std::printf("   %.2f of %s", ratio, of);
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** words) {
  const double seconds = count > 1 ? std::atof(words[1]) : 1;
  const std::string name = std::to_string(::getpid());
  const std::string shm = "shm://bench-" + name;
  const std::string unix_socket = "unix:///tmp/wirecall-bench-" + name + ".sock";
  const std::string tcp = "tcp://127.0.0.1:" + std::to_string(20'000 + ::getpid() % 10'000);
  pin(0);

  const double bare = ping_pong_us(seconds);
  line("a number there and back, bare", bare, "us");
  const double spinning = Pair{shm, kSpinUs}.round_trip_us(seconds);
  line("shm, one call at a time, both spin", spinning, "us");
  line("  more than bare", spinning - bare, "us");
  const double unix_us = Pair{unix_socket, 0}.round_trip_us(seconds);
  line("unix, both sleep", unix_us, "us");
  const double asleep = Pair{shm, 0}.round_trip_us(seconds);
  line("shm, both sleep", asleep, "us", asleep / unix_us, "unix");
  const double bare_tcp = bare_tcp_us(seconds);
  line("tcp, prepared bytes, both sleep", bare_tcp, "us");
  const double tcp_us = Pair{tcp, kSpinUs}.round_trip_us(seconds);
  line("tcp, both spin", tcp_us, "us", tcp_us / bare_tcp, "prepared bytes");
  const double unix_rate = Pair{unix_socket, 0}.calls_a_second(seconds) / 1e6;
  line("unix, 100 in flight", unix_rate, "million calls/s");
  const double rate = Pair{shm, kSpinUs}.calls_a_second(seconds) / 1e6;
  line("shm, 100 in flight, both spin", rate, "million calls/s", rate / unix_rate, "unix");
  const double rate_asleep = Pair{shm, 0}.calls_a_second(seconds) / 1e6;
  line("shm, 100 in flight, both sleep", rate_asleep, "million calls/s", rate_asleep / unix_rate, "unix");
  std::remove(unix_socket.c_str() + std::string_view{"unix://"}.size());
}
