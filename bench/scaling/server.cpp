// The server that measure.py loads, at the endpoint and with as many threads as its arguments say: `echo`, which costs
// little, and `compute`, which takes so many microseconds of processor.
#include <cstdlib>
#include <ctime>

#include "wirecall/wirecall.hpp"

static std::int64_t processor_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000 + now.tv_nsec / 1000;
}

static int echo(int value) { return value; }

static void compute(int us) {
  for (const std::int64_t end = processor_us() + us; processor_us() < end;) {
  }
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  wirecall::Options options;
  options.thread_count = static_cast<std::uint32_t>(std::atoi(argv[2]));
  wirecall::Server server{options};
  server.method("echo", echo, {"value"});
  server.method("compute", compute, {"us"});
  server.listen(argv[1]);
  server.run();
}
