// Loads an EchoService: coroutines call Echo, each again and again, and a line a second says how many calls were
// answered, how many of them failed, and how long they took.
//     coroutines_stress [ENDPOINT [CALLS [COROUTINES]]]
// ENDPOINT is tcp://127.0.0.1:6688, CALLS 1000000 and COROUTINES 100 unless they are given. Exits with 1 when a call
// has failed.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "echo.pb.h"
#include "wirecall/protobuf.hpp"
#include "wirecall/wirecall.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

// What one line tells of.
struct Interval {
  Clock::time_point begin = Clock::now();
  long calls = 0;
  long failures = 0;
  Microseconds sum{0};
  Microseconds longest{0};
  Microseconds shortest = Microseconds::max();
};

// All coroutines run on the thread of Client::run, so what they share needs no lock.
struct Load {
  wirecall::protobuf::Channel channel;
  long calls_left;
  long failures = 0;
  Interval interval{};

  void report() {
    const Interval& of = interval;
    std::printf("%ld calls, %.0f a second, %ld failed; mean %.0f us, longest %.0f us, shortest %.0f us\n", of.calls,
                static_cast<double>(of.calls) / std::chrono::duration<double>{Clock::now() - of.begin}.count(),
                of.failures, of.sum.count() / static_cast<double>(of.calls), of.longest.count(), of.shortest.count());
    failures += of.failures;
    interval = {};
  }
};

wirecall::Task<void> call_again_and_again(Load& load) {
  echo::EchoRequest request;
  request.set_message("hello");
  while (load.calls_left-- > 0) {
    const Clock::time_point sent = Clock::now();
    std::string answer;
    try {
      const echo::EchoResponse response = co_await load.channel.call<&echo::EchoService_Stub::Echo>(request);
      answer = response.response();
    } catch (const wirecall::Error&) {  // counted below
    }
    const Microseconds took = Clock::now() - sent;
    Interval& interval = load.interval;
    ++interval.calls;
    if (answer != "echo of hello") ++interval.failures;
    interval.sum += took;
    interval.longest = std::max(interval.longest, took);
    interval.shortest = std::min(interval.shortest, took);
    if (Clock::now() - interval.begin >= std::chrono::seconds{1}) load.report();
  }
}

}  // namespace

int main(int argc, char** argv) {
  wirecall::Client client{argc > 1 ? argv[1] : "tcp://127.0.0.1:6688"};
  Load load{wirecall::protobuf::Channel{client}, argc > 2 ? std::atol(argv[2]) : 1'000'000};
  std::vector<wirecall::Task<void>> coroutines;
  for (int i = argc > 3 ? std::atoi(argv[3]) : 100; i > 0; --i) coroutines.push_back(call_again_and_again(load));
  client.run(wirecall::when_all(std::move(coroutines)));
  if (load.interval.calls > 0) load.report();
  return load.failures == 0 ? 0 : 1;
}
