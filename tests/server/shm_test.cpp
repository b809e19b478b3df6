// Servers and clients by shared memory: what a call may be, and what becomes of it when either process is killed.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <signal.h>
#include <string>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "tests/connection/peer.hpp"
#include "tests/server/engines.hpp"
#include "tests/transport/shm_fixture.hpp"
#include "wirecall/client.hpp"
#include "wirecall/server.hpp"
#include "wirecall/stream.hpp"

namespace wirecall::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr const char* kUri = "shm://calls";

ClientOptions client_options(std::uint32_t spin_us = 0) {
  ClientOptions options;
  options.reconnect_min_ms = options.reconnect_max_ms = 1;
  options.spin_us = spin_us;
  return options;
}

class Shm : public EngineTest {
 protected:
  static void provide(Server& server) {
    server.method("subtract", [](int a, int b) { return a - b; });
    server.method("echo", [](std::string text) { return text; });
    server.method("who", [](const Context& context) { return context.peer_credentials().value().pid; });
    server.method("count", [](int n) -> Stream<int> {
      for (int i = 0; i < n; ++i) co_yield i;
    });
  }
  transport::RuntimeFolder folder;
};

TEST_P(Shm, calls_of_any_size_are_answered_whether_the_ends_spin_or_sleep) {
  for (const std::uint32_t spin_us : {0U, 200U}) {
    Options given = options(1);
    given.spin_us = spin_us;
    Server server{given};
    provide(server);
    EXPECT_EQ(server.listen(kUri).uri(), kUri);
    const RunningServer running{server};
    Client client{kUri, client_options(spin_us)};
    for (int i = 0; i != 1000; ++i) ASSERT_EQ(client.call<int>("subtract", i, 23), i - 23);
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{65'500}, std::size_t{65'536}, std::size_t{5'000'000}}) {
      const std::string text(bytes, 'x');
      EXPECT_EQ(client.call<std::string>("echo", text), text);
    }
    EXPECT_EQ(client.call<int>("who"), ::getpid());
    int sum = 0;
    for (const int item : client.stream<int>("count", 1000)) sum += item;
    EXPECT_EQ(sum, 499'500);
  }
}

TEST_P(Shm, several_threads_serve_many_clients_at_once) {
  Options given = options(3);
  given.spin_us = 20;
  Server server{given};
  provide(server);
  server.listen(kUri);
  const RunningServer running{server};
  std::vector<std::thread> callers;
  for (int at = 0; at != 6; ++at) {
    callers.emplace_back([at] {
      Client client{kUri, client_options(at % 2 == 0 ? 0 : 50)};
      for (int i = 0; i != 300; ++i) ASSERT_EQ(client.call<int>("subtract", i, at), i - at);
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST_P(Shm, a_slow_handler_holds_up_nobody_else) {
  Options given = options(1);
  given.takeover_ms = 1;
  given.slow_handler_ms = 0;
  Server server{given};
  provide(server);
  std::atomic<bool> begun{false};
  std::atomic<bool> go_on{false};
  server.method("slow", [&](std::string text) {
    begun.store(true);
    begun.notify_all();
    go_on.wait(false);
    return text;  // which was read from what the stream has lent
  });
  server.listen(kUri);
  const RunningServer running{server};
  const std::string text(40'000, 'y');
  std::thread caller{[&] {
    Client client{kUri, client_options()};
    EXPECT_EQ(client.call<std::string>("slow", text), text);
  }};
  begun.wait(false);
  Client client{kUri, client_options()};
  for (int i = 0; i != 100; ++i) EXPECT_EQ(client.call<std::string>("echo", text), text);
  go_on.store(true);
  go_on.notify_all();
  caller.join();
}

TEST_P(Shm, a_server_that_spins_answers_at_once_by_other_ways_as_well) {
  Options given = options(1);
  given.spin_us = 1'000'000;
  Server server{given};
  provide(server);
  server.listen(kUri);
  const std::string tcp = server.listen("tcp://127.0.0.1:0").uri();
  const RunningServer running{server};
  Client one{kUri, client_options(100)};
  Client other{tcp, client_options()};
  for (int i = 0; i != 200; ++i) {
    ASSERT_EQ(one.call<int>("subtract", i, 1), i - 1);
    ASSERT_EQ(other.call<int>("subtract", i, 2), i - 2);
  }
}

// Connects as a client does, and then does all that it can to whatever is shared with it.
class HostileClient {
 public:
  HostileClient() : socket_(transport::connect_to_path(kEndpoint, transport::shm_socket_path(kEndpoint), kTimeout)) {
    take_hello();
    for (std::size_t i = 1; i < received_.size(); ++i) {  // whatever comes beside the memory
      constexpr std::uint64_t kMost = ~std::uint64_t{0} - 1;
      static_cast<void>(::write(received_[i].get(), &kMost, sizeof kMost));
      ::fcntl(received_[i].get(), F_SETFL, 0);
    }
    ::fcntl(socket_.get(), F_SETFL, 0);
  }
  HostileClient(HostileClient&&) = delete;
  ~HostileClient() { ::munmap(memory_, kSegmentBytes); }

  void fill_socket() {
    const std::string many(1000, 'x');
    while (::send(socket_.get(), many.data(), many.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
  }
  // Has the server answer, and wake this client for it, which never takes note.
  void ask() {
    constexpr std::string_view kRequest = "{\"jsonrpc\":\"2.0\",\"method\":\"subtract\",\"params\":[2,1],\"id\":1}\n";
    at<std::uint32_t>(kReaderWaits).store(1);
    at<std::uint64_t>(kServerRead).store(at<std::uint64_t>(kServerWritten).load());
    for (const char byte : kRequest) memory_[kClientBytes + written_++ % transport::kShmRingBytes] = byte;
    at<std::uint64_t>(kClientWritten).store(written_);
    static_cast<void>(::send(socket_.get(), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL));
  }
  [[nodiscard]] std::uint64_t answered() { return at<std::uint64_t>(kServerWritten).load(); }

 private:
  static constexpr milliseconds kTimeout{5000};
  static inline const Endpoint kEndpoint{kUri};
  // Offsets in the memory, by docs/transports.md.
  static constexpr std::size_t kServerWritten = 0;
  static constexpr std::size_t kServerRead = 128;
  static constexpr std::size_t kReaderWaits = 256;
  static constexpr std::size_t kClientWritten = 512;
  static constexpr std::size_t kClientBytes = 4096 + transport::kShmRingBytes;
  static constexpr std::size_t kSegmentBytes = kClientBytes + transport::kShmRingBytes;

  void take_hello() {
    char bytes[sizeof(transport::ShmHello)];
    iovec part{.iov_base = bytes, .iov_len = sizeof bytes};
    alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    EXPECT_EQ(::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC), static_cast<ssize_t>(sizeof bytes));
    const cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    for (std::size_t i = 0; i != (rights->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(rights) + i * sizeof descriptor, sizeof descriptor);
      received_.emplace_back(descriptor);
    }
    memory_ = static_cast<char*>(
        ::mmap(nullptr, kSegmentBytes, PROT_READ | PROT_WRITE, MAP_SHARED, received_.front().get(), 0));
  }
  template <class Number>
  std::atomic<Number>& at(std::size_t offset) {
    return *reinterpret_cast<std::atomic<Number>*>(memory_ + offset);
  }

  runtime::Descriptor socket_;
  std::vector<runtime::Descriptor> received_;
  char* memory_ = nullptr;
  std::uint64_t written_ = 0;
};

TEST_P(Shm, a_client_that_fills_and_never_reads_what_it_shares_blocks_nobody_else) {
  Server server{options(1)};
  provide(server);
  server.listen(kUri);
  const RunningServer running{server};
  Client client{kUri, client_options()};
  HostileClient hostile;
  for (int i = 0; i != 1000; ++i) {
    hostile.ask();
    if (i % 10 == 0) hostile.fill_socket();
    const auto result = client.request<int>("subtract", i, 23).timeout(milliseconds{20'000}).try_call();
    ASSERT_TRUE(result) << "at the hostile client's call " << i;
    ASSERT_EQ(*result, i - 23);
  }
  EXPECT_GT(hostile.answered(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Each, Shm, kEachEngine, engine_name);

// ---- killed at random moments ----

// A thousand in a soak.
int kills() {
  const char* const given = std::getenv("WIRECALL_KILLS");
  return given != nullptr ? std::atoi(given) : 200;
}

// A process of its own, which is killed.
class Process {
 public:
  explicit Process(const std::function<void()>& run) : pid_(::fork()) {
    if (pid_ != 0) return;
    run();
    ::_exit(0);
  }
  Process(Process&&) = delete;
  ~Process() { kill(); }
  void kill() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    join();
  }
  void join() {
    if (pid_ <= 0) return;
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_;
};

class Moments {
 public:
  explicit Moments(unsigned seed) : random_(seed) {}
  void wait() { std::this_thread::sleep_for(std::chrono::microseconds{random_() % 3000}); }

 private:
  std::minstd_rand random_;
};

template <class Done>
bool within_a_second(const Done& done) {
  const auto until = steady_clock::now() + milliseconds{1000};
  while (!done()) {
    if (steady_clock::now() > until) return false;
    std::this_thread::sleep_for(milliseconds{1});
  }
  return true;
}

std::size_t mappings() {
  std::FILE* const file = std::fopen("/proc/self/maps", "re");
  std::size_t count = 0;
  char line[1024];
  while (std::fgets(line, sizeof line, file) != nullptr)
    count += std::string_view{line}.contains("memfd:wirecall") ? 1 : 0;
  std::fclose(file);
  return count;
}

TEST(ShmKilled, a_client_that_is_killed_at_any_moment_is_missed_within_a_second_and_leaves_no_memory) {
  if (kThreadSanitizer) GTEST_SKIP() << "it cannot follow a fork of a program with threads";
  const transport::RuntimeFolder folder;
  // Forked from a process that has no other thread, one after the other as they are asked for.
  int asks[2];
  ASSERT_EQ(::pipe2(asks, O_CLOEXEC), 0);
  const int count = kills() / 2;
  Process forking{[&] {
    ::close(asks[1]);
    char seed;
    for (unsigned n = 1; ::read(asks[0], &seed, 1) == 1; ++n) {
      Process calling{[&] {
        ClientOptions options = client_options(n % 2 == 0 ? 0 : 100);
        Client client{kUri, options};
        const std::string text(n % 3 == 0 ? 200'000 : 20, 'z');
        for (;;) static_cast<void>(client.call<std::string>("echo", text));
      }};
      Moments{n}.wait();
    }
  }};
  Server server{threads(1)};
  server.method("echo", [](std::string text) { return text; });
  server.listen(kUri);
  const RunningServer running{server};
  for (int i = 0; i != count; ++i) {
    ASSERT_EQ(::write(asks[1], "x", 1), 1);
    Client other{kUri, client_options()};
    ASSERT_EQ(other.call<std::string>("echo", "still there"), "still there");
  }
  ::close(asks[1]);
  forking.join();
  EXPECT_TRUE(within_a_second([&] { return server.stats().connections_open == 0; }));
  EXPECT_TRUE(within_a_second([] { return mappings() == 0; }));
  ::close(asks[0]);
}

TEST(ShmKilled, a_server_that_is_killed_at_any_moment_is_missed_within_a_second_and_replaced) {
  if (kThreadSanitizer) GTEST_SKIP() << "it cannot follow a fork of a program with threads";
  const transport::RuntimeFolder folder;
  const int count = kills() / 2;
  Moments moments{1};
  const auto serve = [] {
    Server server{threads(1)};
    server.method("echo", [](std::string text) { return text; });
    server.listen(kUri);
    server.run();
  };
  ClientOptions options = client_options();
  options.connect_attempts = 1;  // so that no call waits for the next server
  Client client{kUri, options};
  const auto answers = [&] {
    try {
      return client.call<std::string>("echo", "there") == "there";
    } catch (const Error&) {
      return false;  // it does not listen yet
    }
  };
  for (int i = 0; i != count; ++i) {
    Process server{serve};
    const auto until = steady_clock::now() + milliseconds{20'000};
    while (!answers()) ASSERT_LT(steady_clock::now(), until) << "the socket of the last one is not taken over";
    std::atomic<bool> told{false};
    steady_clock::time_point lost;
    std::thread calling{[&] {
      const std::string text(i % 3 == 0 ? 200'000 : 20, 'z');
      try {
        for (;;) static_cast<void>(client.call<std::string>("echo", text));
      } catch (const Error&) {
        lost = steady_clock::now();
        told.store(true);
      }
    }};
    moments.wait();
    const auto killed = steady_clock::now();
    server.kill();
    calling.join();
    EXPECT_LT(lost - killed, milliseconds{1000});
  }
}

}  // namespace
}  // namespace wirecall::net
