// Loads an EchoService: coroutines call Echo, each again and again, and a line a second says how many calls have ended,
// how many of them failed, and how long they took. Exits with 1 when a call has failed.
//     coroutines_stress [ENDPOINT [CALLS [COROUTINES]]], which are tcp://127.0.0.1:6688 1000000 100 unless given
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "echo.pb.h"
#include "wirecall/protobuf.hpp"
#include "wirecall/wirecall.hpp"

namespace {

using Clock = std::chrono::steady_clock;

// All coroutines run on the thread of Client::run, so what they share needs no lock.
struct Load {
  wirecall::protobuf::Channel channel;
  long calls_left;
  bool has_failed = false;

  // What the next line tells of.
  Clock::time_point begin = Clock::now();
  std::vector<double> times_us{};
  long failures = 0;

  void report() {
    const double seconds = std::chrono::duration<double>{Clock::now() - begin}.count();
    const auto [shortest, longest] = std::ranges::minmax(times_us);
    const double calls = static_cast<double>(times_us.size());
    std::printf("%.0f calls, %.0f a second, %ld failed; mean %.0f us, longest %.0f us, shortest %.0f us\n", calls,
                calls / seconds, failures, std::reduce(times_us.begin(), times_us.end()) / calls, longest, shortest);
    has_failed = has_failed || failures > 0;
    begin = Clock::now();
    times_us.clear();
    failures = 0;
  }
};

wirecall::Task<void> call_again_and_again(Load& load) {
  echo::EchoRequest request;
  request.set_message("hello");
  while (load.calls_left-- > 0) {
    const Clock::time_point sent = Clock::now();
    echo::EchoResponse response;
    try {
      response = co_await load.channel.call<&echo::EchoService_Stub::Echo>(request);
    } catch (const wirecall::Error&) {  // counted below
    }
    load.times_us.push_back(std::chrono::duration<double, std::micro>{Clock::now() - sent}.count());
    load.failures += response.response() != "echo of hello";
    if (Clock::now() - load.begin >= std::chrono::seconds{1}) load.report();
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const long calls = argc > 2 ? std::atol(argv[2]) : 1'000'000;
  const int count = argc > 3 ? std::atoi(argv[3]) : 100;
  if (calls < 1 || count < 1) return std::fputs("CALLS and COROUTINES are numbers from 1\n", stderr), 2;
  wirecall::Client client{argc > 1 ? argv[1] : "tcp://127.0.0.1:6688"};
  client.connect();  // throws where no server is
  Load load{wirecall::protobuf::Channel{client}, calls};
  std::vector<wirecall::Task<void>> coroutines;
  for (int i = 0; i < count; ++i) coroutines.push_back(call_again_and_again(load));
  client.run(wirecall::when_all(std::move(coroutines)));
  if (!load.times_us.empty()) load.report();
  return load.has_failed ? 1 : 0;
} catch (const wirecall::Error& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
