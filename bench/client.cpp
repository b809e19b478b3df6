// What a call costs at the client's end: the time of one that blocks, and the rate of many at once in each of the
// other ways, over one connection with 100 in flight. The server is in the same program, on a thread of its own; it is
// measured first by a peer that only writes prepared bytes and counts lines, which is the ceiling.
//     bench_client [seconds]
#include "wirecall/client.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <functional>
#include <future>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "transport/endpoint_socket.hpp"
#include "wirecall/server.hpp"
#include "wirecall/task.hpp"

namespace {

using namespace wirecall;
using Clock = std::chrono::steady_clock;

constexpr int kInFlight = 100;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

double thread_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double median_us(std::vector<double>& times) {
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
}

// One call after the other, each timed.
double round_trip_us(double seconds, const std::function<void()>& call) {
  for (int i = 0; i < 200; ++i) call();
  std::vector<double> times;
  const Clock::time_point begin = Clock::now();
  while (seconds_since(begin) < seconds) {
    const Clock::time_point sent = Clock::now();
    call();
    times.push_back(seconds_since(sent) * 1e6);
  }
  return median_us(times);
}

// The ceiling of that: write prepared bytes, read until a newline.
double bare_round_trip_us(double seconds, const Endpoint& endpoint) {
  const int fd = transport::connect_to(endpoint, std::chrono::milliseconds{1000}).release_socket();
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  const std::string request = R"({"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1})"
                              "\n";
  char reply[256];
  const double us = round_trip_us(seconds, [&] {
    if (::send(fd, request.data(), request.size(), MSG_NOSIGNAL) < 0) std::abort();
    const ssize_t got = ::recv(fd, reply, sizeof reply, 0);
    if (got <= 0 || reply[got - 1] != '\n') std::abort();
  });
  ::close(fd);
  return us;
}

// Starts the next call when one has ended, until the time is up.
class Callers {
 public:
  double cpu_ns = 0;  // of the client's thread, a call; after `rate`, where that is the caller's

  Callers(Client& client, double seconds) : client_(&client), seconds_(seconds) {}
  double rate() {
    std::vector<Task<void>> callers;
    for (int i = 0; i < kInFlight; ++i) callers.push_back(awaiting());
    begin_ = Clock::now();
    const double cpu = thread_seconds();
    client_->run(when_all(std::move(callers)));
    cpu_ns = (thread_seconds() - cpu) * 1e9 / static_cast<double>(calls_);
    return static_cast<double>(calls_) / seconds_since(begin_);
  }
  double callback_rate() {
    begin_ = Clock::now();
    for (int i = 0; i < kInFlight; ++i) again();
    done_.get_future().wait();
    return static_cast<double>(calls_) / seconds_since(begin_);
  }
  double future_rate() {
    begin_ = Clock::now();
    std::vector<std::future<int>> futures(kInFlight);
    for (std::future<int>& future : futures) future = client_->request<int>("subtract", 42, 23).future();
    while (!over()) {
      for (std::future<int>& future : futures) {
        if (future.get() != 19) std::abort();
        ++calls_;
        future = client_->request<int>("subtract", 42, 23).future();
      }
    }
    for (std::future<int>& future : futures) future.wait();
    return static_cast<double>(calls_) / seconds_since(begin_);
  }

 private:
  // The clock is looked at now and then.
  bool over() { return over_ = over_ || (calls_ % 64 == 0 && seconds_since(begin_) >= seconds_); }

  Task<void> awaiting() {
    while (!over()) {
      const int difference = co_await client_->request<int>("subtract", 42, 23);
      if (difference != 19) std::abort();
      ++calls_;
    }
  }
  void again() {
    static_cast<void>(client_->request<int>("subtract", 42, 23).then([this](std::expected<int, Error> result) {
      if (result != 19) std::abort();
      ++calls_;
      if (!over()) return again();
      if (++ended_ == kInFlight) done_.set_value();
    }));
  }

  Client* client_;
  double seconds_;
  Clock::time_point begin_;
  std::uint64_t calls_ = 0;
  int ended_ = 0;
  bool over_ = false;
  std::promise<void> done_;
};

}  // namespace

int main(int count, char** words) {
  const double seconds = count > 1 ? std::atof(words[1]) : 1;
  Server server;
  server.method("subtract", [](int a, int b) { return a - b; });
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  std::thread serving{[&] { server.run(); }};

  std::printf("%-44s %10s\n", "one call at a time", "p50");
  const double ceiling = bare_round_trip_us(seconds, endpoint);
  std::printf("%-44s %7.1f us\n", "ceiling: prepared bytes", ceiling);
  {
    Client client{endpoint.uri()};
    const double us = round_trip_us(seconds, [&] {
      if (client.call<int>("subtract", 42, 23) != 19) std::abort();
    });
    std::printf("%-44s %7.1f us   %.2f of the ceiling\n", "client.call<int>", us, us / ceiling);
  }
  std::printf("\n%-44s %10s\n", "100 in flight on one connection", "calls/s");
  {
    Client client{endpoint.uri()};
    Callers awaiting{client, seconds};
    const double rate = awaiting.rate();
    std::printf("%-44s %10.0f   %.0f ns of the client's processor a call\n", "co_await inside client.run", rate,
                awaiting.cpu_ns);
    std::printf("%-44s %10.0f\n", "callbacks", Callers{client, seconds}.callback_rate());
    std::printf("%-44s %10.0f\n", "futures", Callers{client, seconds}.future_rate());
  }
  server.stop();
  serving.join();
}
